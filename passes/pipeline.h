// The road from an imported model to the graphs of a plan's entry points. The order is a list in pipeline.cc, each line ending in "because ...".
#pragma once

#include <string>
#include <vector>

#include "base/recipe.h"
#include "passes/passes.h"

namespace hone {

/// An entry point of the plan: its name (runtime/plan/plan.h) and its graph.
struct EntryGraph {
  std::string name;
  Graph graph;
};

struct TrainingReport {
  std::vector<TrainedWeight> trained;    ///< weights that a gradient reaches, by value of the imported graph
  std::vector<std::string> unreached;    ///< chosen, but no gradient reaches them
  std::vector<std::string> dropped_after;  ///< nodes after which the recipe put dropout
};

/// The entry points that the recipe asks for: predict always; train_step, train_step_norms and eval_step if it has a loss. `imported` may still have ops of meaning `lower`.
/// Throws Error kRecipeModel, kNoGradient, kNothingToTrain.
std::vector<EntryGraph> build_entries(const Graph& imported, const Recipe& recipe, TrainingReport& report);

/// The extent of the samples' axis: the first axis of the first fed input that has a symbol there, or of the first one if all are numbers; 0 if there is none.
Dim samples_of(const Graph& imported);

/// What every target wants: constants folded, rules applied, equal nodes merged, dead ones dropped.
void optimize(Graph& graph);

}  // namespace hone
