// When in a step the weights are updated, or the gradients exchanged.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace hone {

/// Has the graph nodes by which replicas exchange something?
bool exchanges(const Graph& graph);

/// Groups of nodes in an order in which they can run. Those of the part `update` move up to where all they read is there and what they overwrite is no
/// longer read: a gradient is then in the cache still, and its memory is free for the next one. With several replicas it is the exchanges that move up, in their
/// order, so that they go on during the backward pass; updates, which must wait for them, stay at the end.
std::vector<std::vector<NodeId>> with_early_steps(const Graph& graph, std::vector<std::vector<NodeId>> groups);

}  // namespace hone
