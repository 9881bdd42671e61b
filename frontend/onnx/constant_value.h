// Contents of small tensors that follow from constants alone. Inference knows integers as sizes (Value::known); this is for arithmetic that leaves them:
// exporters scale a size as floats, round it and cast it back. And numbers as such contents.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace hone::onnx {

/// The contents of `value` if it has at most 64 elements and is computed from constants by a few nodes; they are run for it.
std::optional<Tensor> constant_value(const Graph& graph, ValueId value);

/// The values as a tensor of rank 1.
template <typename T>
Tensor vector_of(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<std::int64_t>(values.size())}, std::span(values));
}

}  // namespace hone::onnx
