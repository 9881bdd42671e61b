// The whole pipeline in one call: an imported model and a recipe become a plan.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/recipe.h"
#include "frontend/onnx/import.h"
#include "passes/pipeline.h"
#include "runtime/plan/plan.h"

namespace hone {

struct CompileOptions {
  std::vector<std::string> targets = {"cpu"};
  std::vector<std::string> cpu_levels = {"x86-64-v3"};  ///< code levels to emit
  bool explain = false;                                 ///< fill Compiled::why
};

struct Compiled {
  plan::Plan plan;
  TrainingReport training;
  std::string why;  ///< a line a node: which kernel it got, and why not a faster one
};

/// Throws Error for what in model or recipe cannot be compiled.
Compiled compile(const onnx::Imported& model, const Recipe& recipe, const std::string& model_name, const CompileOptions& options);

/// Text of one stage of the compilation: imported, training, optimized, kernels, schedule, llvm, asm. Throws Error kUsage for another name.
std::string emit_stage(const onnx::Imported& model, const Recipe& recipe, const std::string& stage);
const std::vector<std::string>& stage_names();

}  // namespace hone
