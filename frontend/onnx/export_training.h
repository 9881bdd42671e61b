// Training written as ONNX says it: TrainingInfoProto.
#pragma once

#include "formats/onnx_file.h"
#include "ir/graph.h"

namespace hone::onnx {

/// Puts `step` into `model` as its training algorithm, in place of what it may have: nodes that `model` does not compute, Gradient, and an update_binding for each alias. What the
/// graph of `model` computes already is read by its name. `step`: a step of training with `gradient` nodes, its outputs the loss and the metrics; `forward`: the graph that `model`
/// was imported as. Both expanded in the same way. The input `learning_rate` is given that value. Throws Error kUnknownOp, which lists every op that has no ONNX form, and kOpset for a
/// model below opset 13.
void add_training_info(ModelProto& model, const Graph& forward, const Graph& step, double learning_rate);

}  // namespace hone::onnx
