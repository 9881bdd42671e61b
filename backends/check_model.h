// hone-compile --check and --check-grad: reports for people, no plan.
#pragma once

#include <string>

#include "base/recipe.h"
#include "ir/graph.h"

namespace hone {

struct CheckReport {
  std::string text;
  bool trainable = false;  ///< no problem found (--check-grad: no gradient is off)
};

/// For each operator how often it occurs, whether it has a gradient, and its kernel; for each weight whether it is trained, and if no gradient reaches it the
/// node that cuts it off; then `warnings` (the importer's) and the recipe's. Without a loss in the recipe the outputs' sum stands for it.
CheckReport check_model(const Graph& imported, std::vector<Diag> warnings, const Recipe& recipe);

/// The gradients of the training graph against central differences in double, at `batch` samples (passes/check_gradients.h).
CheckReport check_model_gradients(const Graph& imported, const Recipe& recipe, std::int64_t batch);

}  // namespace hone
