// The whole pipeline in one call: an imported model and a recipe become a plan.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/memory_limit.h"
#include "base/recipe.h"
#include "formats/onnx_file.h"
#include "ir/graph.h"
#include "passes/gradients_of.h"
#include "passes/pipeline.h"
#include "runtime/plan/plan.h"

namespace hone {

/// What is compiled: an imported graph (its `lower` ops not expanded) and the file that it came from.
struct ModelSource {
  const Graph& graph;
  onnx::ModelProto proto;  ///< by value, because its weights go from it: they are in the graph, and may be large
  std::string name = {};  ///< file name, for people
  const OwnTraining* own = nullptr;  ///< what the model says of its training
};

struct CompileOptions {
  std::vector<std::string> targets = {"cpu"};                        ///< a program for each (backends/targets.h)
  CodeLevels levels = {};
  PassChoice passes = {};                                            ///< of those that may be left out
  bool explain = false;                                              ///< fill Compiled::why
  std::string explain_node = {};                                     ///< with the story of this node of the model alone (backends/node_story.h); "": of all nodes
  std::optional<MemoryLimit> memory_limit = {};                      ///< what does not fit is made again in the backward pass
  std::optional<GradientsOf> gradients = {};                         ///< instead of entries to train and to predict: what `predict` then gives
};

struct Compiled {
  plan::Plan plan;
  TrainingReport training;
  std::vector<Diag> warnings;
  std::string why;  ///< backends/explain.h
  std::optional<LimitedProgram> limited;  ///< what the memory limit changed
};

/// Throws Error for what in model or recipe cannot be compiled.
Compiled compile(ModelSource model, const Recipe& recipe, const CompileOptions& options = {});

/// What was compiled, in a few lines for the person at the terminal: weights trained, kernels and calls, memory at this batch size.
std::string summary(const Compiled& compiled, const std::string& path, std::int64_t batch);

/// Text of one stage of the compilation: imported, training, optimized, kernels, schedule, llvm, asm, ptx; from "optimized" on, but for the last, for the first target. Throws Error kUsage for another name.
std::string emit_stage(const Graph& imported, const Recipe& recipe, const std::string& stage, const OwnTraining* own = nullptr, const CompileOptions& options = {});
const std::vector<std::string>& stage_names();

}  // namespace hone
