// An array in files, whatever their format: rows that are looked at where they lie, or read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/tensor.h"
#include "runtime/data/row_bytes.h"
#include "runtime/data/spec.h"

namespace hone {

enum class FileReading {
  kMappedIfSmall,  ///< files of more than kMappedBytes are read where they are wanted
  kWhenWanted      ///< all are, if their format allows: none of it stays in memory
};

/// Elements in row-major order and this machine's byte order. Files that hold them so may be larger than memory; others (compressed, big-endian, column-major)
/// are unpacked into memory. Copies share what they read from; several threads may read at once.
class Array {
 public:
  /// Opens what a user has named, see runtime/data/open_array.h for what may be wrong with it.
  static Array open(const DataSource& source, FileReading reading = FileReading::kMappedIfSmall);
  /// An array that is in memory already; `label` is what messages call it.
  Array(std::string label, Tensor tensor);
  /// Rows in several places, one after the other; `shape` counts all of them.
  Array(std::string label, DType dtype, std::vector<std::int64_t> shape, std::vector<RowPart> parts);

  const std::string& label() const { return label_; }  ///< "train.npz:labels"
  /// What is odd about its file, and no error.
  const std::vector<std::string>& notes() const { return notes_; }
  void add_note(std::string note) { notes_.push_back(std::move(note)); }
  /// What messages are to call it.
  void relabel(std::string label) { label_ = std::move(label); }
  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t element_count() const { return element_count_; }
  /// The first extent; a scalar is one row.
  std::int64_t row_count() const { return shape_.empty() ? 1 : shape_[0]; }
  std::int64_t row_elements() const { return row_elements_; }
  std::size_t row_bytes() const { return row_bytes_; }
  /// The number that row 0 has in the file.
  std::int64_t first_row() const { return first_row_; }
  /// Has any of it to be read from a file each time?
  bool is_streamed() const;
  const std::vector<RowPart>& parts() const { return parts_; }

  /// Copies rows [first, first + count), one behind the other. Throws kFileRead.
  void read(std::int64_t first, std::int64_t count, std::byte* to) const;
  /// The same, aligned for the element type, where they lie if they lie so, else in `scratch`. Throws kFileRead.
  const std::byte* rows(std::int64_t first, std::int64_t count, std::vector<std::byte>& scratch) const;

  /// Where rows [first, first + count) lie one behind the other, aligned for the element type; null if they do not, or have to be read.
  const std::byte* where_they_lie(std::int64_t first, std::int64_t count) const;

  struct Place {
    std::int64_t row, element;  ///< the element's number within its row
  };
  /// Shows `search` all elements, block by block, until it returns the number of one within its block. Throws kFileRead.
  using Search = std::function<std::optional<std::size_t>(const std::byte* elements, std::size_t count)>;
  std::optional<Place> find(const Search& search) const;

  /// Leaves rows [first, end) only. Throws kDataLength for rows that are not there.
  void keep_rows(std::int64_t first, std::optional<std::int64_t> end);
  /// What messages are to call row 0.
  void number_rows_from(std::int64_t first) { first_row_ = first; }
  /// For files of text: gives the line of a row of the file, both as messages count them.
  using LineOf = std::function<std::int64_t(std::int64_t row)>;
  void name_lines(LineOf line_of) { line_of_ = std::move(line_of); }
  /// "row 17", or "line 19" where that is known. May go through the file.
  std::string name_of_row(std::int64_t row, std::string_view word = "row") const;

 private:
  const RowPart& part_of(std::int64_t row, std::int64_t* begin) const;
  void find_even_rows();
  std::optional<Place> find_in(const RowPart& part, const Search& search) const;

  std::string label_;
  std::vector<std::string> notes_;
  DType dtype_ = DType::kF32;
  std::vector<std::int64_t> shape_;
  std::int64_t element_count_ = 0;
  std::int64_t row_elements_ = 1;
  std::size_t row_bytes_ = 0;
  std::vector<RowPart> parts_;
  std::vector<std::int64_t> part_ends_;  // the rows up to the end of each part, those left out included
  std::int64_t skipped_ = 0;             // rows of the parts before row 0
  std::int64_t first_row_ = 0;
  LineOf line_of_;
  const std::byte* even_rows_ = nullptr;  // row 0, if all rows can be looked at where they lie, parts_[0].stride bytes apart: so each row of a batch is found at once
};

using NamedArrays = std::vector<std::pair<std::string, Array>>;

/// The rows of all, one array after the other. Throws kDataShape, kDataType when they are of different kinds. There is at least one.
Array join_arrays(std::string label, const std::vector<Array>& arrays);

}  // namespace hone
