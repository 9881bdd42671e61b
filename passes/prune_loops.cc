// Loops without what nobody reads: states that only feed themselves, stacked results, and operands.
#include <algorithm>

#include "passes/loops.h"
#include "passes/passes.h"

namespace hone {

namespace {

struct Live {
  std::vector<bool> states, stacks;
};

/// By value of the body: what the results that live are computed of.
std::vector<bool> needed_by(const Live& live, const LoopView& loop) {
  std::vector<ValueId> wanted;
  for (std::size_t k = 0; k < loop.states.size(); ++k)
    if (live.states[k]) wanted.push_back(loop.states[k].next);
  for (std::size_t k = 0; k < loop.stacks.size(); ++k)
    if (live.stacks[k]) wanted.push_back(loop.stacks[k].made);
  return find_needed(loop.body, wanted);
}

/// A state lives if one of its results is read, or if what lives is computed of it.
Live find_live(const Rewriter& rewriter, const LoopView& loop) {
  Live live;
  for (const LoopView::State& state : loop.states) live.states.push_back(rewriter.uses(state.last) + rewriter.uses(state.began) > 0);
  for (const LoopView::Stack& stack : loop.stacks) live.stacks.push_back(rewriter.uses(stack.result) > 0);
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<bool> needed = needed_by(live, loop);
    for (std::size_t k = 0; k < loop.states.size(); ++k)
      if (not live.states[k] and needed[loop.states[k].in.index]) live.states[k] = changed = true;
  }
  return live;
}

/// Is each operand read, and no other one in its place?
bool reads_all(const LoopView& loop, const Live& live) {
  const std::vector<bool> needed = needed_by(live, loop);
  for (const auto* list : {&loop.slices, &loop.whole})
    for (auto fed = list->begin(); fed != list->end(); ++fed) {
      const bool is_double = std::any_of(list->begin(), fed, [&](const LoopView::Fed& other) { return other.operand == fed->operand; });
      if (is_double or not needed[fed->in.index]) return false;
    }
  return true;
}

bool is_all(const std::vector<bool>& flags) { return std::find(flags.begin(), flags.end(), false) == flags.end(); }

bool prune(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (not may_rearrange(node)) return false;
  const LoopView loop(node);
  const Live live = find_live(rewriter, loop);
  if (is_all(live.states) and is_all(live.stacks) and reads_all(loop, live)) return false;
  LoopPlan plan(rewriter, loop), kept = plan;
  kept.states.clear();
  kept.stacks.clear();
  for (std::size_t k = 0; k < plan.states.size(); ++k)
    if (live.states[k]) kept.states.push_back(plan.states[k]);
  for (std::size_t k = 0; k < plan.stacks.size(); ++k)
    if (live.stacks[k]) kept.stacks.push_back(plan.stacks[k]);
  const BuiltLoop built = build_loop(rewriter.builder(), loop, std::move(kept));
  for (std::size_t k = 0, next = 0; k < loop.states.size(); ++k) {
    if (not live.states[k]) continue;
    rewriter.replace(loop.states[k].last, built.last[next]);
    rewriter.replace(loop.states[k].began, built.began[next++]);
  }
  for (std::size_t k = 0, next = 0; k < loop.stacks.size(); ++k)
    if (live.stacks[k]) rewriter.replace(loop.stacks[k].result, built.stacks[next++]);
  return true;
}

}  // namespace

Changed prune_loops(Graph& graph) { return Rewriter::in_bodies(graph, prune_loops) | Rewriter::rewrite(graph, prune); }

}  // namespace hone
