// How much arithmetic a node is, by the kernel that its op means, whatever runs it.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace hone {

/// Floating-point operations: a multiply and an add are two, an exponential is one. Nothing for what has no formula (control flow, host functions, `lower` ops that are not expanded), and
/// where the sizes do not say it. Views are 0.
std::optional<double> flops_of(const Graph& graph, NodeId node, const DimBindings& sizes);

}  // namespace hone
