// Contents of small tensors that follow from constants alone. Inference knows integers as sizes (Value::known); this is for arithmetic that leaves them:
// exporters scale a size as floats, round it and cast it back.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace hone::onnx {

/// The contents of `value` if it has at most 64 elements and is computed from constants by a few nodes; they are run for it.
std::optional<Tensor> constant_value(const Graph& graph, ValueId value);

}  // namespace hone::onnx
