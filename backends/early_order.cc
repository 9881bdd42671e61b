#include "backends/early_order.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/kernel/fused.h"
#include "ir/op.h"

namespace hone {

namespace {

class EarlyOrder {
 public:
  explicit EarlyOrder(const Graph& graph) : graph_(graph), place_(graph.node_count()), replaced_(graph.value_count()), readers_(graph.value_count()), exchanges_(exchanges(graph)) {
    for (const Alias& alias : graph.aliases()) replaced_[alias.value.index] = alias.state;
    for (std::size_t i = 0; i < graph.node_count(); ++i)
      for (const ValueId operand : graph.node(NodeId(i)).operands)
        if (operand.valid()) readers_[through_reshapes(graph_, operand).index].emplace_back(i);
  }

  /// For each group the number of the one behind which it goes: its own where it stays.
  std::vector<std::size_t> run(std::span<const std::vector<NodeId>> groups) {
    std::vector<std::size_t> places;
    std::size_t earliest = 0;  // the parts of a step begin one after the other, and sizes that are read out of tensors are known behind the node that binds them
    std::size_t last_exchange = 0;
    bool in_backward = false;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const bool binds = graph_.node(groups[g].front()).op->binds, is_backward = has(groups[g], Part::kBackward);
      if (binds or (is_backward and not in_backward)) earliest = g;
      in_backward = in_backward or is_backward;
      const bool is_exchange = graph_.node(groups[g].front()).op->collective;
      const bool moves = not binds and (exchanges_ ? is_exchange and has(groups[g], Part::kAllReduce) : has(groups[g], Part::kUpdate));
      places.push_back(moves ? std::max({earliest, last_needed(groups[g]), last_exchange}) : g);
      if (is_exchange) last_exchange = places.back();  // all replicas exchange in one order
      for (const NodeId member : groups[g]) place_[member.index] = places.back();
    }
    return places;
  }

 private:
  bool has(std::span<const NodeId> group, Part part) const {
    return std::ranges::any_of(group, [&](NodeId member) { return graph_.node(member).part == part; });
  }

  /// The place of the last node before this group that makes what it reads, or reads a state that it overwrites.
  std::size_t last_needed(std::span<const NodeId> group) const {
    std::size_t last = 0;
    const auto wait_for = [&](NodeId node) {
      if (node.valid() and place_[node.index]) last = std::max(last, *place_[node.index]);
    };
    for (const NodeId member : group) {
      const Node& node = graph_.node(member);
      for (const ValueId operand : node.operands)
        if (operand.valid()) wait_for(graph_.value(through_reshapes(graph_, operand)).producer);
      for (const ValueId result : node.results)
        if (const ValueId state = replaced_[result.index]; state.valid()) std::ranges::for_each(readers_[state.index], wait_for);
    }
    return last;
  }

  const Graph& graph_;
  std::vector<std::optional<std::size_t>> place_;  // by node, of the groups that have one
  std::vector<ValueId> replaced_;                  // by value: the state that it becomes
  std::vector<std::vector<NodeId>> readers_;       // by value, through reshapes
  const bool exchanges_;
};

}  // namespace

bool exchanges(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) { return node.op->collective; });
}

std::vector<std::vector<NodeId>> with_early_steps(const Graph& graph, std::vector<std::vector<NodeId>> groups) {
  const std::vector<std::size_t> places = EarlyOrder(graph).run(groups);
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t group) { return places[group]; });  // nobody moves before his own place, so he stands before all who wait for him
  std::vector<std::vector<NodeId>> moved;
  for (const std::size_t group : order) moved.push_back(std::move(groups[group]));
  return moved;
}

}  // namespace hone
