// NumPy's .npy files, versions 1 to 3: the header on its own, rows of a file larger than memory, whole arrays, and writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/files.h"
#include "base/tensor.h"

namespace hone {

/// What a .npy header says, checked against the length of the file.
struct NpyInfo {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::size_t data_offset = 0;  ///< where the elements begin
  std::size_t data_bytes = 0;   ///< how many bytes they take
  bool column_major = false;    ///< fortran_order: the first axis varies fastest
  bool byte_swapped = false;    ///< big-endian elements of more than one byte
};

/// Reads the header of a .npy file's bytes. `name` is what messages call it. Throws kDataFormat (not a .npy file, a damaged header, fewer bytes
/// than the shape needs), kDataType (objects, strings, records, complex numbers: each named), kTooLarge. When `bytes` are only the start of
/// the file, `file_bytes` says how long all of it is.
NpyInfo read_npy_header(std::span<const std::byte> bytes, const std::string& name, std::optional<std::uint64_t> file_bytes = std::nullopt);

/// The array in a .npy file's bytes, in row-major order and this machine's byte order.
Tensor parse_npy(std::span<const std::byte> bytes, const std::string& name);
/// The array in the file at `path`.
Tensor read_npy(const std::string& path);

/// A .npy file read row by row (a row: everything under one index of the first axis), nothing more of it in memory than is looked at.
class NpyFile {
 public:
  /// As read_npy_header(); also throws kFileOpen and kDataShape for a scalar, which has no rows.
  explicit NpyFile(const std::string& path);

  const NpyInfo& info() const { return info_; }
  const std::string& path() const { return file_.path(); }
  std::int64_t row_count() const { return info_.shape[0]; }
  std::size_t row_bytes() const { return row_bytes_; }
  /// Copies row `row` (0 <= row < row_count()) to `destination` (row_bytes() bytes), in row-major order and this machine's byte order.
  void read_row(std::int64_t row, std::span<std::byte> destination) const;

 private:
  MappedFile file_;
  NpyInfo info_;
  std::size_t row_bytes_ = 0;
};

/// The header that NumPy writes for such an array, padded so that the elements begin at a multiple of 64. Types that
/// NumPy has no name for are written as the integers that hold them: bf16 as uint16, floats of 8 and 4 bits as uint8, i4 and i2 as int8, u4 and u2 as uint8.
std::string npy_header(DType dtype, std::span<const std::int64_t> shape);
/// Writes the array atomically. Throws kFileOpen, kFileWrite.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace hone
