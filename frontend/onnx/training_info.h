// TrainingInfoProto: how a model says itself that it is trained. Its algorithm is imported together with the model's graph, as one graph, whose updates become aliases.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diag.h"
#include "formats/onnx_file.h"
#include "frontend/onnx/values.h"

namespace hone::onnx {

/// What a TrainingInfoProto says, checked as far as that is possible before anything is imported.
struct TrainingInfo {
  /// The model's graph and the algorithm's one after the other, initializers without data. Outputs: those of the algorithm, updates, what may be the loss.
  GraphProto step;
  GraphProto initialization;
  std::map<std::string, std::string> updates;       ///< what each initializer becomes
  std::map<std::string, std::string> first_values;  ///< which output of `initialization` each initializer begins with
  std::vector<std::string> losses;                  ///< the y of the algorithm's Gradient nodes, in order
  std::vector<std::string> outputs;                 ///< of the algorithm, that are no updates
  Roles roles;                                      ///< of what is updated, and of the algorithm's other initializers: constants
};

/// What the model says; nothing if it says nothing, or if what it says updates nothing, which gets a warning. Reports bindings of names that are not there, and more than one
/// algorithm.
std::optional<TrainingInfo> read_training_info(const ModelProto& model, const Loc& file, Diags& diags);

/// Makes of `step`, which was imported from TrainingInfo::step, a step of training: see OwnTraining. Reports updates of another type than what they replace, and
/// an algorithm without loss.
void bind_updates(Graph& step, const TrainingInfo& info, const Loc& file, Diags& diags);

/// Gives the outputs of `initialization` the names of the initializers in `step` that they are for. Reports types that differ, and inputs.
void bind_first_values(Graph& initialization, const Graph& step, const TrainingInfo& info, const Loc& file, Diags& diags);

}  // namespace hone::onnx
