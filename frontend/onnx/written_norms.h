// Batch normalization that an exporter wrote out as arithmetic.
#pragma once

#include "base/diag.h"
#include "ir/graph.h"

namespace hone::onnx {

/// gamma * (x - mean) / sqrt(variance + epsilon) + beta, however it is put together, becomes `batch_norm` where mean and variance are weights of one number a channel, and so are gamma or beta, or both: how
/// Keras and Flax on JAX come out. Left as it is, its statistics would be trained as weights are, and the batch's would not be used. Each change is told in one warning.
/// Momentum, of which the arithmetic knows nothing, is those frameworks' 0.99.
void restore_batch_norm(Graph& graph, const Loc& file, Diags& diags);

}  // namespace hone::onnx
