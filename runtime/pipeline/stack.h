// Examples that are alike as one, with an axis more.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/pipeline/stage.h"

namespace hone {

/// Have both the same names, in the same order, with tensors of the same types and shapes?
bool are_alike(const Example& a, const Example& b);

/// The tensors number `column` of examples that are alike, one at least, behind each other from row `begin` on: [rows,...], with zeros before and after. Each tensor is let go of when it is copied, so that memory does not hold all of them twice.
Tensor stack_column(std::vector<Example>& examples, std::size_t column, std::int64_t begin, std::int64_t rows);

}  // namespace hone
