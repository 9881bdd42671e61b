// What a model can say of its own training. The importer finds it (ONNX's TrainingInfoProto), and passes make a training step of it.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace hone {

struct OwnTraining {
  /// One step: the model's graph and the training algorithm as one, with `gradient` nodes where it differentiates. Outputs as attach_loss() gives them (passes/passes.h):
  /// loss_sum, target_count, metric:NAME. Updates are aliases; what they replace has the role weight if it is a float initializer of the model, else state, in the model's own
  /// graph, too. Nothing: the model does not say how it is trained.
  std::optional<Graph> step;
  /// Takes nothing, and gives the values with which training begins, as outputs by the names of the inputs of `step` that they are for. Nothing: those values stay.
  std::optional<Graph> initialization;
};

}  // namespace hone
