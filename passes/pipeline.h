// The road from an imported model to the graphs of a plan's entry points. The order is a list in pipeline.cc, each line ending in "because ...".
#pragma once

#include <string>
#include <vector>

#include "base/recipe.h"
#include "ir/own_training.h"
#include "ir/samples.h"
#include "passes/adapters.h"
#include "passes/choice.h"
#include "passes/passes.h"

namespace hone {

/// What becomes of a graph's all_reduce nodes.
enum class Exchange : std::uint8_t {
  kNone,  ///< a replica that is alone: they are gone
  kAll,   ///< with the other replicas
};

/// An entry point of the plan: its name (runtime/plan/plan.h) and its graph. One that exchanges nothing, but has all_reduce nodes, is there for several replicas, too
/// (backends/compile.cc).
struct EntryGraph {
  std::string name;
  Graph graph;
  Exchange exchange = Exchange::kNone;
};

struct TrainingReport {
  std::vector<TrainedWeight> trained;    ///< weights that a gradient reaches, by value of the imported graph
  std::vector<std::string> unreached;    ///< chosen, but no gradient reaches them
  std::vector<Adapter> adapters;         ///< of matrices that are not trained themselves
  std::vector<NarrowedWeight> narrowed = {};  ///< frozen weights that are kept in less, trained ones that are kept in more
  std::vector<std::string> dropped_after;  ///< nodes after which the recipe put dropout
  std::vector<std::string> attention = {};  ///< passes/fuse_attention.h, of the entry that predicts
  std::vector<std::string> recurrences = {};  ///< passes/fuse_recurrences.h, of the same
};

/// The entry points that the recipe, or else the model itself, asks for: predict always; train_step, train_step_norms and eval_step if there is a loss; accumulate_step if
/// gradients are to be accumulated; merged_weights if there are adapters. `imported` may still have
/// ops of meaning `lower`. `target`, if given: what it has rows for as a whole is not taken apart. Throws Error kRecipeModel, kNoGradient, kNothingToTrain.
std::vector<EntryGraph> build_entries(const Graph& imported, const Recipe& recipe, TrainingReport& report, const OwnTraining* own = nullptr, const Target* target = nullptr);

/// What other formats can say of training.
struct ExportedStep {
  /// The step that build_entries() makes of the recipe, before anything is differentiated: `gradient` nodes stand for the backward pass, the loss is the mean, called "loss",
  /// metrics are means under their names, and updates count whatever the loss is.
  Graph step;
  Graph forward;  ///< the imported graph, expanded in the same way
};
/// Throws what build_entries() does.
ExportedStep build_exported_step(const Graph& imported, const Recipe& recipe);

class PassLog;  // passes/pass_log.h

/// What every target wants: constants folded, rules applied, equal nodes merged, dead ones dropped; as far as those passes are chosen. `log`, if given, hears what became of a node.
void optimize(Graph& graph, const PassChoice& passes = {}, PassLog* log = nullptr);

}  // namespace hone
