// An array in a file, whatever its format: rows that can be looked at where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/files.h"
#include "base/tensor.h"
#include "runtime/data/spec.h"

namespace hone {

/// Elements in row-major order and this machine's byte order. Files that hold them so are mapped, not read, and may be larger than memory;
/// others (compressed, big-endian, column-major) are unpacked into memory.
class Array {
 public:
  /// Throws what the readers in formats/ throw, kDataFormat for a raw file of a wrong length, kUsage for its wrong type or shape,
  /// kDataLength for rows that it does not have.
  static Array open(const DataSource& source);
  /// An array that is in memory already; `label` is what messages call it.
  Array(std::string label, Tensor tensor);

  const std::string& label() const { return label_; }  ///< "train.npz:labels"
  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t element_count() const { return element_count_; }
  const std::byte* data() const { return data_; }
  /// The number that row 0 has in the file.
  std::int64_t first_row() const { return first_row_; }

 private:
  Array(std::string label, MappedFile file, DType dtype, std::vector<std::int64_t> shape, std::size_t offset);
  void keep_rows(const DataSource& source);
  void normalize_bools();
  static Array open_all(const DataSource& source);
  static Array open_npy(const DataSource& source);
  static Array open_npz(const DataSource& source);
  static Array open_raw(const DataSource& source);

  std::string label_;
  DType dtype_ = DType::kF32;
  std::vector<std::int64_t> shape_;
  std::int64_t element_count_ = 0;
  std::variant<Tensor, MappedFile> owner_;
  const std::byte* data_ = nullptr;
  std::int64_t first_row_ = 0;
};

}  // namespace hone
