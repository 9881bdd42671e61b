// Examples that are alike as one, with an axis more.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/pipeline/stage.h"

namespace hone {

/// Where two examples first differ: in how many tensors they have, or in a tensor's name, or in its type or shape.
struct ExampleDifference {
  enum class What : std::uint8_t { kCount, kName, kType } what;
  std::size_t column = 0;  ///< of names and types
};

/// Nothing if the examples are alike, so that they can be stacked.
std::optional<ExampleDifference> difference(const Example& a, const Example& b);

/// The tensors number `column` of examples that are alike, one at least, behind each other from row `begin` on: [rows,...], with zeros before and after. Each tensor is let go of when it is copied, so that memory does not hold all of them twice.
Tensor stack_column(std::vector<Example>& examples, std::size_t column, std::int64_t begin, std::int64_t rows);

}  // namespace hone
