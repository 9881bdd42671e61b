// Known contents: what inference knows of the values in small integer tensors, as sizes. Exporters compute shapes with graph ops
// (Shape, Gather, Concat, Mul, Reshape); their kernels are run here over sizes instead of numbers, so no op needs a rule of its own.
#pragma once

#include "ir/graph.h"

namespace hone {

/// May a value of this type carry known contents? Integers or bools, few, of a constant shape.
bool can_be_known(const Type& type);

/// Contents of a constant integer or bool tensor of at most 64 elements.
std::optional<std::vector<Dim>> known_contents(const Tensor& tensor);

/// Contents of the first result of `node`, if it is a small integer or bool tensor that follows from known operands.
std::optional<std::vector<Dim>> fold_known(const Graph& graph, NodeId node);

}  // namespace hone
