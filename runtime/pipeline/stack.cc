#include "runtime/pipeline/stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/diag.h"
#include "base/text.h"

namespace hone {

namespace {

/// A tensor in the corner of one of that shape.
Tensor padded(const Tensor& tensor, const std::vector<std::int64_t>& shape, double value) {
  return filled("padded_batch", tensor.dtype(), shape, value, [&](std::span<std::byte> to) {
    if (tensor.element_count() == 0) return;
    const std::vector<std::int64_t>& from_shape = tensor.shape();
    const std::size_t rank = shape.size(), row_bytes = static_cast<std::size_t>(from_shape.back()) * size_of(tensor.dtype());
    std::vector<std::int64_t> index(rank, 0);  // of a row along the last axis
    for (std::span<const std::byte> from = tensor.bytes(); not from.empty(); from = from.subspan(row_bytes)) {
      std::int64_t place = 0;
      for (std::size_t axis = 0; axis < rank; ++axis) place = place * shape[axis] + index[axis];
      std::memcpy(to.data() + static_cast<std::size_t>(place) * size_of(tensor.dtype()), from.data(), row_bytes);
      for (std::size_t axis = rank - 1; axis-- > 0;) {
        if (++index[axis] < from_shape[axis]) break;
        index[axis] = 0;
      }
    }
  });
}

/// What the tensors number `column` fit into; nothing where they differ in more than extents.
std::optional<std::vector<std::int64_t>> largest_shape(const std::vector<Example>& examples, std::size_t column) {
  const auto& [name, first] = examples[0][column];
  std::vector<std::int64_t> largest = first.shape();
  for (const Example& example : examples) {
    if (example.size() <= column or example[column].first != name) return std::nullopt;
    const Tensor& tensor = example[column].second;
    if (tensor.dtype() != first.dtype() or tensor.shape().size() != largest.size()) return std::nullopt;
    std::ranges::transform(largest, tensor.shape(), largest.begin(), [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  }
  return largest;
}

}  // namespace

Tensor checked_filler(const char* step, DType dtype, double value) {
  Tensor filler = Tensor::scalar(value).cast(dtype);
  if (not is_float(dtype) and filler.at(0) != value)
    throw Error(Code::kUsage, fmt::format("{}: {} is no {}, which the sequences are", step, value, to_string(dtype)), {}, {"give a value that the type holds, or cast() the sequences first"});
  return filler;
}

void pad_to_largest(std::vector<Example>& examples, const std::map<std::string, double>& padding) {
  for (const auto& [name, value] : padding)
    if (std::ranges::find(examples[0], name, &Example::value_type::first) == examples[0].end())
      throw Error(Code::kDataName, fmt::format("padded_batch: an example has no {}, whose padding is given", quoted(name)), {}, {note_of_names(examples[0])});
  for (std::size_t column = 0; column < examples[0].size(); ++column) {
    const std::optional<std::vector<std::int64_t>> shape = largest_shape(examples, column);
    if (not shape) continue;
    const auto value = padding.find(examples[0][column].first);
    for (Example& example : examples)
      if (Tensor& tensor = example[column].second; tensor.shape() != *shape) tensor = padded(tensor, *shape, value == padding.end() ? 0 : value->second);
  }
}

std::optional<ExampleDifference> difference(const Example& a, const Example& b) {
  using What = ExampleDifference::What;
  if (a.size() != b.size()) return ExampleDifference{What::kCount};
  for (std::size_t column = 0; column < a.size(); ++column) {
    const auto& [name, tensor] = a[column];
    const auto& [other_name, other] = b[column];
    if (name != other_name) return ExampleDifference{What::kName, column};
    if (tensor.dtype() != other.dtype() or tensor.shape() != other.shape()) return ExampleDifference{What::kType, column};
  }
  return std::nullopt;
}

Tensor stack_column(std::vector<Example>& examples, std::size_t column, std::int64_t begin, std::int64_t rows) {
  const Tensor& first = examples[0][column].second;
  const std::size_t row_bytes = first.byte_count();
  std::vector<std::int64_t> shape = first.shape();
  shape.insert(shape.begin(), rows);
  return Tensor::make(first.dtype(), std::move(shape), [&](std::span<std::byte> to) {  // zeros
    to = to.subspan(static_cast<std::size_t>(begin) * row_bytes);
    for (Example& example : examples) {
      if (row_bytes > 0) std::memcpy(to.data(), std::exchange(example[column].second, {}).bytes().data(), row_bytes);
      to = to.subspan(row_bytes);
    }
  });
}

}  // namespace hone
