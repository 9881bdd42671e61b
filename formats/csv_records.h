// Records of a CSV file: fields between separators, quoted where they hold separators, quotes or line ends (RFC 4180).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/streamed_file.h"

namespace hone {

/// Goes through a file record by record in bounded memory. Blank lines are passed over; lines end in "\n" or "\r\n"; a byte order mark is taken off.
class CsvRecords {
 public:
  /// The separator (comma, semicolon or tab) is the one that the first line has most of. The file outlives this.
  explicit CsvRecords(const StreamedFile& file);

  /// Reads the next record into fields(); false at the end. Throws kDataFormat (a quote without an end, or with text behind it), kTooLarge (a record longer
  /// than 16 MiB), naming the line.
  bool next();
  const std::vector<std::string>& fields() const { return fields_; }
  /// The line on which the record begins, from 1.
  std::int64_t line() const { return line_; }
  char separator() const { return separator_; }

 private:
  static constexpr int kEnd = -1;

  int take();
  int peek();
  bool fill();
  std::string& add_field();
  int read_plain(std::string& field, int c);
  int read_quoted(std::string& field);
  void check_length();

  const StreamedFile& file_;
  std::string block_;
  std::size_t at_ = 0;        // in the block
  std::uint64_t offset_ = 0;  // in the file, of what follows the block
  std::int64_t lines_ = 1;    // where at_ is
  std::int64_t line_ = 0;
  std::size_t record_bytes_ = 0;
  std::size_t field_count_ = 0;
  std::vector<std::string> fields_;  // their memory is used again
  char separator_ = ',';
};

}  // namespace hone
