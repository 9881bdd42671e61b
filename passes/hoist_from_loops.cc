// What a loop computes of its slices alone, is computed for all iterations at once, before it: matrix products (x W of every step becomes one product of all
// rows), reductions, and what a loop only stacks. Cheap things that the loop itself reads stay: there they are fused with what reads them.
#include <algorithm>

#include "passes/outside.h"
#include "passes/passes.h"
#include "passes/work.h"

namespace hone {

namespace {

struct Hoisted {
  std::vector<bool> nodes;      ///< by node: computed before the loop
  std::vector<ValueId> slices;  ///< those of their results that the loop may read slice by slice
  std::vector<bool> stacks;     ///< by stack of the loop: made before it
  bool any = false;
};

bool gains(const Graph& body, NodeId id) {
  const Work work = work_of(body, id);
  return work == Work::kReduction or work == Work::kProduct;
}

Hoisted find_hoisted(const LoopView& loop) {
  const std::vector<Dependence> dependences = find_dependences(loop);
  const Graph& body = loop.body;
  Hoisted hoisted;
  for (std::size_t i = 0; i < body.node_count(); ++i) {
    const Node& node = body.node(NodeId(i));
    if (dependences[node.results[0].index] != Dependence::kSlices or not gains(body, NodeId(i))) continue;
    hoisted.slices.insert(hoisted.slices.end(), node.results.begin(), node.results.end());
  }
  std::vector<ValueId> wanted = hoisted.slices;
  for (const LoopView::Stack& stack : loop.stacks) {
    hoisted.stacks.push_back(dependences[stack.made.index] != Dependence::kStates);
    if (hoisted.stacks.back()) wanted.push_back(stack.made);
  }
  hoisted.any = not wanted.empty();
  const std::vector<bool> needed = find_needed(body, wanted);
  for (const Node& node : body.nodes())
    hoisted.nodes.push_back(std::any_of(node.results.begin(), node.results.end(), [&](ValueId result) { return needed[result.index]; }));
  return hoisted;
}

bool hoist_iterations(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (not may_rearrange(node)) return false;
  const LoopView loop(node);
  const Hoisted hoisted = find_hoisted(loop);
  if (not hoisted.any) return false;
  Outside outside(rewriter, loop);
  outside.compute(hoisted.nodes);
  LoopPlan plan(rewriter, loop);
  for (const ValueId slice : hoisted.slices) plan.slices.push_back({outside.stacked(slice), slice});
  plan.stacks.clear();
  for (std::size_t k = 0; k < loop.stacks.size(); ++k)
    if (not hoisted.stacks[k]) plan.stacks.push_back(loop.stacks[k].made);
  const BuiltLoop built = build_loop(rewriter.builder(), loop, std::move(plan));
  for (std::size_t k = 0; k < loop.states.size(); ++k) {
    rewriter.replace(loop.states[k].last, built.last[k]);
    rewriter.replace(loop.states[k].began, built.began[k]);
  }
  std::size_t next = 0;
  for (std::size_t k = 0; k < loop.stacks.size(); ++k)
    rewriter.replace(loop.stacks[k].result, hoisted.stacks[k] ? outside.stacked(loop.stacks[k].made) : built.stacks[next++]);
  return true;
}

}  // namespace

Changed hoist_from_loops(Graph& graph) { return Rewriter::in_bodies(graph, hoist_from_loops) | Rewriter::rewrite(graph, hoist_iterations); }

}  // namespace hone
