#include "runtime/pipeline/stack.h"

#include <algorithm>
#include <utility>

namespace hone {

bool are_alike(const Example& a, const Example& b) {
  return std::ranges::equal(a, b, [](const auto& one, const auto& other) {
    return one.first == other.first and one.second.dtype() == other.second.dtype() and one.second.shape() == other.second.shape();
  });
}

Tensor stack_column(std::vector<Example>& examples, std::size_t column, std::int64_t begin, std::int64_t rows) {
  const Tensor& first = examples[0][column].second;
  const std::size_t row_bytes = first.byte_count();
  std::vector<std::int64_t> shape = first.shape();
  shape.insert(shape.begin(), rows);
  return Tensor::make(first.dtype(), std::move(shape), [&](std::span<std::byte> to) {  // zeros
    to = to.subspan(static_cast<std::size_t>(begin) * row_bytes);
    for (Example& example : examples) {
      std::ranges::copy(std::exchange(example[column].second, {}).bytes(), to.begin());
      to = to.subspan(row_bytes);
    }
  });
}

}  // namespace hone
