// hone-compile --precision-report: trains in f32 and in the recipe's precision on the user's data, and says which nodes need f32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/recipe.h"
#include "formats/onnx_file.h"
#include "frontend/onnx/import.h"

namespace hone {

struct PrecisionReportFlags {
  std::vector<std::string> train;  ///< as hone-run's --train
  std::int64_t steps = 50;
  double tolerance = 0.03;
  bool pre_batched = false;
};

/// Prints the report; sentences on the way go to standard error. The exit code is 0, or that of a numeric stop where no choice of nodes is near enough. Throws Error kUsage for flags that do not fit,
/// and what compiling and training throw.
int print_precision_report(const onnx::Imported& model, const Recipe& recipe, const PrecisionReportFlags& flags);

}  // namespace hone
