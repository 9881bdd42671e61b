#include "runtime/data/array.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/diag.h"
#include "base/text.h"
#include "formats/idx.h"
#include "formats/npy.h"
#include "formats/npz.h"

namespace hone {

namespace {

std::string label_of(const DataSource& source) { return source.part.empty() or source.kind == FileKind::kRaw ? source.path : source.path + ":" + source.part; }

/// "60000x784"
std::vector<std::int64_t> shape_from(const std::string& text, const DataSource& source) {
  std::vector<std::int64_t> shape;
  for (const std::string& extent : split(text, 'x')) {
    std::int64_t number = -1;
    const auto [end, error] = std::from_chars(extent.data(), extent.data() + extent.size(), number);
    if (error != std::errc{} or end != extent.data() + extent.size() or number < 0)
      throw Error(Code::kUsage, fmt::format("{}: {} is no shape", quoted(source.path + ":" + source.part), quoted(text)), {},
                  {"write a raw file as FILE.bin:f32:60000x784"});
    shape.push_back(number);
  }
  return shape;
}

}  // namespace

Array::Array(std::string label, Tensor tensor)
    : label_(std::move(label)), dtype_(tensor.dtype()), shape_(tensor.shape()), element_count_(tensor.element_count()), owner_(std::move(tensor)) {
  data_ = std::get<Tensor>(owner_).bytes().data();
}

Array::Array(std::string label, MappedFile file, DType dtype, std::vector<std::int64_t> shape, std::size_t offset)
    : label_(std::move(label)), dtype_(dtype), shape_(std::move(shape)), element_count_(checked_element_count(shape_)), owner_(std::move(file)) {
  data_ = std::get<MappedFile>(owner_).bytes().data() + offset;
}

Array Array::open_npy(const DataSource& source) {
  MappedFile file(source.path);
  const NpyInfo info = read_npy_header(file.bytes(), source.path);
  const bool aligned = info.data_offset % size_of(info.dtype) == 0;
  if (info.column_major or info.byte_swapped or not aligned) return {label_of(source), parse_npy(file.bytes(), source.path)};
  return {label_of(source), std::move(file), info.dtype, info.shape, info.data_offset};
}

/// Without a key: the only array, or the one that is called as the input is.
Array Array::open_npz(const DataSource& source) {
  if (not source.part.empty()) return {label_of(source), read_npz(source.path, source.part)};
  std::vector<std::string> keys;
  for (const NpzEntry& entry : list_npz(source.path)) keys.push_back(entry.key);
  DataSource chosen = source;
  chosen.part = keys.size() == 1 ? keys[0] : source.name;
  if (keys.size() != 1 and std::find(keys.begin(), keys.end(), source.name) == keys.end())
    throw Error(Code::kDataName, fmt::format("{} holds {} arrays, and none is called {}", quoted(source.path), keys.size(), quoted(source.name)), {},
                {fmt::format("choose one with {}:KEY; there are {}", source.path, printable(join(keys, ", "), 500))});
  return {label_of(chosen), read_npz(chosen.path, chosen.part)};
}

Array Array::open_raw(const DataSource& source) {
  const std::vector<std::string> parts = split(source.part, ':');
  const auto dtype = dtype_from_name(parts[0]);
  if (not dtype or parts.size() != 2)
    throw Error(Code::kUsage, fmt::format("{}: expected an element type and a shape behind the file's name", quoted(source.path + ":" + source.part)), {},
                {"write FILE.bin:f32:60000x784; element types are f32, f64, f16, bf16, i8 to i64, u8 to u64 and bool"});
  std::vector<std::int64_t> shape = shape_from(parts[1], source);
  MappedFile file(source.path);
  const std::uint64_t expected = static_cast<std::uint64_t>(checked_element_count(shape)) * size_of(*dtype);
  if (file.size() != expected)
    throw Error(Code::kDataFormat,
                fmt::format("{} has {} bytes, and {} of shape {} take {}", quoted(source.path), file.size(), parts[0], shape_text(shape), expected), {},
                {"correct the type or the shape behind the file's name"});
  return {label_of(source), std::move(file), *dtype, std::move(shape), 0};
}

void Array::keep_rows(const DataSource& source) {
  if (source.first_row == 0 and not source.end_row) return;
  const std::int64_t rows = shape_.empty() ? 0 : shape_[0];
  const std::int64_t end = source.end_row.value_or(rows);
  if (source.first_row >= end or end > rows)
    throw Error(Code::kDataLength, fmt::format("{} has {} rows, and rows {} to {} are asked for", quoted(label_), rows, source.first_row, end), {},
                {"rows count from 0, and the last one named is left out: FILE[0:8000]"});
  const std::int64_t row_elements = element_count_ / rows;
  data_ += static_cast<std::size_t>(source.first_row * row_elements) * size_of(dtype_);
  shape_[0] = end - source.first_row;
  element_count_ = shape_[0] * row_elements;
  first_row_ = source.first_row;
}

/// A file's bytes need not be 0 or 1, and a bool of any other value is undefined.
void Array::normalize_bools() {
  owner_ = Tensor::make(DType::kBool, shape_, [&](std::span<std::byte> to) {
    std::transform(data_, data_ + to.size(), to.begin(), [](std::byte byte) { return std::byte{byte != std::byte{0}}; });
  });
  data_ = std::get<Tensor>(owner_).bytes().data();
}

Array Array::open(const DataSource& source) {
  Array array = open_all(source);
  array.keep_rows(source);
  if (array.dtype() == DType::kBool) array.normalize_bools();
  return array;
}

Array Array::open_all(const DataSource& source) {
  switch (source.kind) {
    case FileKind::kNpy: return open_npy(source);
    case FileKind::kNpz: return open_npz(source);
    case FileKind::kIdx: return {label_of(source), read_idx(source.path)};
    case FileKind::kRaw: return open_raw(source);
    case FileKind::kCsv:
    case FileKind::kSafetensors: break;
  }
  internal_error(__FILE__, __LINE__, "parse_data let a kind of file through that cannot be read");
}

}  // namespace hone
