// Who reads a value.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace hone {

/// By value: the nodes that read it, in order; once for each operand that it is.
std::vector<std::vector<NodeId>> readers_of(const Graph& graph);

/// By value: is it wanted after the step, as an output or as what a state becomes?
std::vector<bool> wanted_after_step(const Graph& graph);

}  // namespace hone
