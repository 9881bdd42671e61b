// When in a step the weights are updated.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace hone {

/// Groups of nodes in an order in which they can run. Those of the part `update` move up to where all they read is there and what they overwrite is no
/// longer read: a gradient is then in the cache still, and its memory is free for the next one.
std::vector<std::vector<NodeId>> with_updates_early(const Graph& graph, std::vector<std::vector<NodeId>> groups);

}  // namespace hone
