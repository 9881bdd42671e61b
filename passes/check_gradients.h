// The model's own gradients, checked in double with the interpreter: hone-compile --check-grad.
#pragma once

#include <string>
#include <vector>

#include "base/recipe.h"
#include "ir/graph.h"

namespace hone {

/// One node's gradient formula, or the loss's gradient with respect to one weight.
struct GradientRow {
  std::string what;           ///< the op, or "weight"
  std::string where;          ///< the node's Loc as text, or the weight's name
  double relative_error = 0;  ///< between the formula and differences, relative to the sum of the terms' sizes
  bool ok = true;
  std::string remark;  ///< what was left out, and why: "2 of 60 elements are at a kink"
};

struct GradientReport {
  std::vector<GradientRow> rows;  ///< nodes in the graph's order, then weights
  std::string text;               ///< a line a row; the first node that is off is named at the end
  bool ok = false;
};

/// A problem (kGradientMismatch) for each gradient that is off.
std::vector<Diag> mismatches(const GradientReport& report);

/// `imported` with the recipe's loss attached, fed with small random inputs of `batch` samples (every symbolic size is `batch`). For every node between
/// weights and loss its own gradient formula against central differences along random directions; for every trained weight the loss's directional
/// derivative against its gradient. Elements where the slopes to both sides differ, as those of relu at 0 do, are left out, and the row says so.
/// Throws what attach_loss, select_weights and differentiate throw, and kDynamic when a size does not follow from the batch.
GradientReport check_gradients(const Graph& imported, const Recipe& recipe, std::int64_t batch);

}  // namespace hone
