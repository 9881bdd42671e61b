#include "runtime/data/array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/diag.h"
#include "base/text.h"
#include "formats/elements.h"

namespace hone {

namespace {

constexpr std::uint64_t kScanBlockBytes = std::uint64_t{1} << 20;  // of what is looked at in one go

std::vector<RowPart> only_part(const Tensor& tensor) {
  const std::int64_t rows = tensor.shape().empty() ? 1 : tensor.shape()[0];
  const std::uint64_t stride = rows == 0 ? 0 : tensor.byte_count() / static_cast<std::uint64_t>(rows);
  return {{.bytes = std::make_shared<const RowBytes>(tensor), .row_count = rows, .offset = 0, .stride = stride, .offsets = {}}};
}

}  // namespace

Array::Array(std::string label, Tensor tensor) : Array(std::move(label), tensor.dtype(), tensor.shape(), only_part(tensor)) {}

Array::Array(std::string label, DType dtype, std::vector<std::int64_t> shape, std::vector<RowPart> parts)
    : label_(std::move(label)), dtype_(dtype), shape_(std::move(shape)), element_count_(checked_element_count(shape_)), parts_(std::move(parts)) {
  const std::span<const std::int64_t> extents(shape_);
  row_elements_ = shape_.empty() ? 1 : checked_element_count(extents.subspan(1));
  row_bytes_ = static_cast<std::size_t>(row_elements_) * size_of(dtype_);
  std::int64_t rows = 0;
  for (const RowPart& part : parts_) part_ends_.push_back(rows += part.row_count);
  HONE_CHECK(rows == row_count(), "parts of an array that do not add up");
  find_even_rows();
}

std::string Array::name_of_row(std::int64_t row, std::string_view word) const {
  const std::int64_t in_file = row + first_row_;
  return line_of_ ? fmt::format("line {}", line_of_(in_file)) : fmt::format("{} {}", word, in_file);
}

bool Array::is_streamed() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const RowPart& part) { return part.bytes->data() == nullptr; });
}

/// `row` counts from the first row of the first part; `begin`: the first of the part found.
const RowPart& Array::part_of(std::int64_t row, std::int64_t* begin) const {
  const auto at = static_cast<std::size_t>(std::upper_bound(part_ends_.begin(), part_ends_.end(), row) - part_ends_.begin());
  *begin = at == 0 ? 0 : part_ends_[at - 1];
  return parts_[at];
}

void Array::read(std::int64_t first, std::int64_t count, std::byte* to) const {
  const std::uint64_t bytes = row_bytes();
  if (const std::byte* data = where_they_lie(first, count)) {
    std::memcpy(to, data, static_cast<std::size_t>(count) * bytes);
    return;
  }
  std::byte* const start = to;
  for (std::int64_t row = first + skipped_, end = row + count; row < end and bytes > 0;) {
    std::int64_t begin = 0;
    const RowPart& part = part_of(row, &begin);
    const bool together = part.offsets.empty() and part.stride == bytes;
    const std::int64_t rows = together ? std::min(end, begin + part.row_count) - row : 1;
    const std::uint64_t length = static_cast<std::uint64_t>(rows) * bytes;
    part.bytes->read(part.offset_of(row - begin), {to, length});
    row += rows;
    to += length;
  }
  if (dtype_ == DType::kBool) normalize_bools({start, to});
}

void Array::find_even_rows() {
  even_rows_ = nullptr;
  const bool is_even = parts_.size() == 1 and parts_[0].offsets.empty() and parts_[0].stride % size_of(dtype_) == 0 and row_count() > 0;
  if (is_even) even_rows_ = where_they_lie(0, 1);
}

const std::byte* Array::where_they_lie(std::int64_t first, std::int64_t count) const {
  if (count == 0) return nullptr;
  if (even_rows_ != nullptr and (count == 1 or parts_[0].stride == row_bytes_)) return even_rows_ + static_cast<std::uint64_t>(first) * parts_[0].stride;
  std::int64_t begin = 0;
  const RowPart& part = part_of(first + skipped_, &begin);
  const std::int64_t row = first + skipped_ - begin;
  const bool together = count == 1 or (part.offsets.empty() and part.stride == row_bytes());
  const bool right_bools = dtype_ != DType::kBool or part.bytes->is_tensor();
  if (part.bytes->data() == nullptr or not together or not right_bools or row + count > part.row_count) return nullptr;
  const std::byte* data = part.bytes->data() + part.offset_of(row);
  return reinterpret_cast<std::uintptr_t>(data) % size_of(dtype_) == 0 ? data : nullptr;
}

const std::byte* Array::rows(std::int64_t first, std::int64_t count, std::vector<std::byte>& scratch) const {
  if (const std::byte* data = where_they_lie(first, count)) return data;
  const std::size_t bytes = static_cast<std::size_t>(count) * row_bytes();
  if (scratch.size() < bytes) scratch.resize(bytes);
  read(first, count, scratch.data());
  return scratch.data();
}

/// Rows that touch or overlap are one stretch of elements, each of which is looked at once.
std::optional<Array::Place> Array::find_in(const RowPart& part, const Search& search) const {
  const std::uint64_t size = size_of(dtype_), row_length = row_bytes();
  const bool stretch = part.offsets.empty() and part.stride <= row_length;
  const std::int64_t pieces = stretch ? std::min<std::int64_t>(1, part.row_count) : part.row_count;
  const std::uint64_t length = stretch and part.row_count > 0 ? static_cast<std::uint64_t>(part.row_count - 1) * part.stride + row_length : row_length;
  std::vector<std::byte> block(std::min(length, kScanBlockBytes));
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    for (std::uint64_t at = 0; at < length; at += block.size()) {
      const std::span<std::byte> now = std::span(block).first(std::min<std::uint64_t>(block.size(), length - at));
      part.bytes->read(part.offset_of(piece) + at, now);
      const auto found = search(now.data(), now.size() / size);
      if (not found) continue;
      const auto element = static_cast<std::int64_t>(at / size + *found), step = static_cast<std::int64_t>(part.stride / size);
      const std::int64_t row = not stretch ? piece : element < row_elements_ ? 0 : (element - row_elements_ + step) / step;
      return Place{row, element - (stretch ? row * step : 0)};
    }
  }
  return std::nullopt;
}

std::optional<Array::Place> Array::find(const Search& search) const {
  std::int64_t begin = -skipped_;
  for (const RowPart& part : parts_) {
    RowPart kept = part;  // less the rows that were left out
    const std::int64_t cut = std::clamp<std::int64_t>(-begin, 0, part.row_count);
    kept.row_count = std::max<std::int64_t>(0, std::min(part.row_count, row_count() - begin) - cut);
    kept.offset = part.offset + static_cast<std::uint64_t>(cut) * part.stride;
    if (not kept.offsets.empty()) kept.offsets.erase(kept.offsets.begin(), kept.offsets.begin() + cut);
    if (auto place = find_in(kept, search)) {
      place->row += begin + cut;
      return place;
    }
    begin += part.row_count;
  }
  return std::nullopt;
}

void Array::keep_rows(std::int64_t first, std::optional<std::int64_t> end) {
  if (first == 0 and not end) return;
  const std::int64_t rows = shape_.empty() ? 0 : shape_[0];
  const std::int64_t last = end.value_or(rows);
  if (first >= last or last > rows)
    throw Error(Code::kDataLength, fmt::format("{} has {} rows, and rows {} to {} are asked for", quoted(label_), rows, first, last), {},
                {"rows count from 0, and the last one named is left out: FILE[0:8000]"});
  skipped_ += first;
  first_row_ += first;
  shape_[0] = last - first;
  element_count_ = shape_[0] * row_elements_;
  find_even_rows();
}

Array join_arrays(std::string label, const std::vector<Array>& arrays) {
  std::vector<RowPart> parts;
  std::vector<std::int64_t> shape = arrays[0].shape();
  if (arrays.size() == 1) return arrays[0];
  std::int64_t rows = 0;
  for (const Array& array : arrays) {
    if (array.dtype() != arrays[0].dtype())
      throw Error(Code::kDataType,
                  fmt::format("{} holds {}, and {} holds {}", printable(arrays[0].label()), to_string(arrays[0].dtype()), printable(array.label()),
                              to_string(array.dtype())),
                  {}, {"files that one pattern names are read as one array"});
    std::vector<std::int64_t> as_first = array.shape();
    if (not as_first.empty() and not shape.empty()) as_first[0] = shape[0];
    if (as_first != shape or shape.empty())
      throw Error(Code::kDataShape,
                  fmt::format("{} is {}, and {} is {}", printable(arrays[0].label()), shape_text(shape), printable(array.label()), shape_text(array.shape())),
                  {}, {"files that one pattern names are read as one array, whose rows are of one shape"});
    rows += array.row_count();
    parts.insert(parts.end(), array.parts().begin(), array.parts().end());
  }
  shape[0] = rows;
  Array joined(std::move(label), arrays[0].dtype(), std::move(shape), std::move(parts));
  for (const Array& array : arrays)
    for (const std::string& note : array.notes()) joined.add_note(note);
  return joined;
}

}  // namespace hone
