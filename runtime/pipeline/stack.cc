#include "runtime/pipeline/stack.h"

#include <cstring>
#include <utility>

namespace hone {

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
