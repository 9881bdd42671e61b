// Numbers out of CSV files, of any length: the file is gone through twice, in bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "formats/csv_records.h"

namespace hone {

/// Some columns of a CSV file. The first line is a header when the columns are chosen by name, when none of their fields in it is a number (nor says that a number is missing), or when the numbers
/// in it count its columns (0, 1, 2, ... as pandas names them) and there is a word, in whose column the second line has a number: "label,0,1,2".
class CsvTable {
 public:
  /// `columns`: names, numbers from 0 (from the end: -1) and ranges of either, both ends included, with commas between: "age,3,5..7,-1"; "" for all.
  /// Goes through the whole file. Throws kDataName for a column that is not there, naming the nearest one, and for a name that several have; kDataFormat, naming the line, for rows of different
  /// numbers of fields and for fields that are no numbers; kDataLength for a file without rows; and what CsvRecords throws. The file outlives this.
  CsvTable(const StreamedFile& file, const std::string& columns);

  std::int64_t row_count() const { return row_count_; }
  /// Which columns, in the order in which they were asked for.
  const std::vector<std::size_t>& columns() const { return columns_; }
  /// i64 when every field is an integer that fits, else f64.
  DType dtype() const { return dtype_; }
  /// Is the first row 0, 1, 2, ... (or from 1), though it was not taken for a header? It may be one.
  bool begins_with_count() const { return begins_with_count_; }
  /// The line on which the row begins, from 1. Goes through the file up to there.
  std::int64_t line_of(std::int64_t row) const;
  /// Goes through the file again and gives the numbers row by row, in blocks of whole rows.
  void read(const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  void choose_columns(const std::string& columns, const CsvRecords& first);
  std::size_t position_of(std::string_view column, const std::vector<std::string>& header);
  bool first_is_header(const std::vector<std::string>& fields) const;
  bool second_has_number_below_word(const std::vector<std::string>& first) const;
  void check_record(const CsvRecords& records);
  [[noreturn]] void refuse_field(const CsvRecords& records, std::size_t column) const;

  const StreamedFile& file_;
  std::vector<std::size_t> columns_;
  std::vector<std::string> names_;  // of all columns; empty without a header
  bool by_name_ = false;
  bool has_header_ = false;
  bool begins_with_count_ = false;
  std::size_t field_count_ = 0;
  std::int64_t row_count_ = 0;
  DType dtype_ = DType::kI64;
};

}  // namespace hone
