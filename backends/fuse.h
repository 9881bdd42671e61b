// Which nodes become one kernel. Today: elementwise neighbours over the same index space (an optimizer's update is one kernel a weight, not twenty).
#pragma once

#include <vector>

#include "ir/graph.h"

namespace hone {

struct Fusion {
  /// By node: the members of its group in graph order, itself included; a group of one for what is not fused.
  std::vector<std::vector<NodeId>> groups;
  /// By node: the number of its group.
  std::vector<std::uint32_t> group_of;

  const std::vector<NodeId>& group(NodeId node) const { return groups[group_of[node.index]]; }
  /// A group runs where its last member stands.
  NodeId runs_at(NodeId node) const { return group(node).back(); }
};

/// Groups nodes of meaning `scalar` whose results have one shape, where a node reads a member of the group and nothing outside of the group
/// reads a member's result before the group's end. Depends on the graph alone.
Fusion fuse_elementwise(const Graph& graph);

}  // namespace hone
