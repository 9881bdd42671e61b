// What is the same in all iterations of a loop is computed once, before it.
#include <algorithm>

#include "ir/ops/ops.h"
#include "passes/outside.h"
#include "passes/passes.h"

namespace hone {

namespace {

/// Repeats one value: cheaper made where it is read than read from memory.
bool is_expansion(const Node& node) { return node.operands.empty() or *node.op == op::broadcast_to; }

/// The nodes that move: those worth it, and what they read.
std::vector<bool> find_invariant(const LoopView& loop) {
  const std::vector<Dependence> dependences = find_dependences(loop);
  const auto is_invariant = [&](const Node& node) { return dependences[node.results[0].index] == Dependence::kNothing; };
  std::vector<ValueId> wanted;
  for (const Node& node : loop.body.nodes())
    if (is_invariant(node) and not is_expansion(node)) wanted.insert(wanted.end(), node.results.begin(), node.results.end());
  const std::vector<bool> needed = find_needed(loop.body, wanted);
  std::vector<bool> moves;
  for (const Node& node : loop.body.nodes())
    moves.push_back(is_invariant(node) and std::any_of(node.results.begin(), node.results.end(), [&](ValueId result) { return needed[result.index]; }));
  return moves;
}

bool hoist_node(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (not may_rearrange(node)) return false;
  const LoopView loop(node);
  const std::vector<bool> moves = find_invariant(loop);
  if (std::find(moves.begin(), moves.end(), true) == moves.end()) return false;
  Outside outside(rewriter, loop);
  outside.compute(moves);
  LoopPlan plan(rewriter, loop);
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (not moves[i]) continue;
    const Node& moved = loop.body.node(NodeId(i));
    if (is_expansion(moved)) continue;  // who reads it has moved, too, or makes it again
    for (const ValueId result : moved.results) plan.whole.push_back({outside.whole(result), result});
  }
  replace_results(rewriter, loop, build_loop(rewriter.builder(), loop, std::move(plan)));
  return true;
}

}  // namespace

Changed hoist_invariants(Graph& graph) { return Rewriter::in_bodies(graph, hoist_invariants) | Rewriter::rewrite(graph, hoist_node); }

}  // namespace hone
