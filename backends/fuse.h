// Which nodes become one kernel. ir/kernel/fused.h says what one kernel can be, backends/cost_model.h what is worth it; here is the grouping.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/target.h"

namespace hone {

struct Group {
  std::vector<NodeId> members;  ///< in graph order
  std::vector<ValueId> stored;  ///< their results that something outside of the group wants
};

/// What was decided about a node and one that it reads from, for --why.
struct FusionDecision {
  NodeId node, producer;
  std::string why_not;  ///< empty: they are in one kernel
};

struct Fusion {
  Graph graph;                            ///< the graph in the order of groups: the members of each lie side by side
  std::vector<Group> groups;              ///< of `graph`, in order; of one node for what is not fused
  std::vector<std::uint32_t> group_of;    ///< by node of `graph`
  std::vector<FusionDecision> decisions;  ///< of `graph`
  Parallelism parallelism;                ///< for which it was made: loops' bodies are fused for the same
  std::vector<std::string> recomputed;    ///< what is worked out again in the backward pass rather than kept for it, for --why

  const Group& group(NodeId node) const { return groups[group_of[node.index]]; }
};

enum class FusionMode : std::uint8_t { kFused, kUnfused };

/// Groups nodes that are cheaper as one kernel. Nothing outside of a group may need one of its results before all it reads are there. Depends on the graph
/// alone. kUnfused: every node by itself, in the graph's order.
Fusion fuse(const Graph& graph, const Parallelism& parallelism = {}, FusionMode mode = FusionMode::kFused);

}  // namespace hone
