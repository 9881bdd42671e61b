// The model's own gradients, checked in double with the interpreter: hone-compile --check-grad.
#pragma once

#include <string>

#include "base/recipe.h"
#include "ir/graph.h"

namespace hone {

struct GradientReport {
  std::string text;  ///< a line a node: op, where, relative error, ok or off; the first node that is off is named at the end
  bool ok = false;
};

/// `imported` with the recipe's loss attached, fed with small random inputs of `batch` samples. For every node between weights and loss its own gradient formula against
/// central differences along random directions; for every trained weight the loss's directional derivative against its gradient.
GradientReport check_gradients(const Graph& imported, const Recipe& recipe, std::int64_t batch);

}  // namespace hone
