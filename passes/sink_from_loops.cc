// What a loop makes for after it alone, is computed there, for all iterations at once: results that it only stacks (dx of every step becomes one product of all
// rows), and sums over the iterations that nothing in it reads (a weight's gradient: one product over all rows of all iterations). What that takes, the loop
// stacks.
#include <algorithm>

#include "ir/ops/ops.h"
#include "passes/outside.h"
#include "passes/passes.h"
#include "passes/work.h"

namespace hone {

namespace {

/// A state that only grows: what an iteration adds to it. Nothing reads the state but that sum.
ValueId addend_of(const LoopView& loop, const LoopView::State& state, const std::vector<std::uint32_t>& uses, bool began_is_read) {
  if (began_is_read or not loop.body.is_op(state.next, op::add) or uses[state.in.index] != 1 or uses[state.next.index] != 1) return {};
  const std::vector<ValueId>& operands = loop.body.producer(state.next).operands;
  if (operands[0] != state.in and operands[1] != state.in) return {};
  const ValueId addend = operands[0] == state.in ? operands[1] : operands[0];
  return loop.body.type(addend) == loop.body.type(state.in) ? addend : ValueId{};
}

class Sinking {
 public:
  Sinking(const Rewriter& rewriter, const LoopView& loop)
      : loop_(loop), dependences_(find_dependences(loop)), moves_(loop.body.node_count()), ready_(loop.body.value_count()), stacked_(loop.body.value_count()) {
    const std::vector<std::uint32_t> uses = count_uses(loop.body);
    for (const LoopView::State& state : loop.states) addends_.push_back(addend_of(loop, state, uses, rewriter.uses(state.began) > 0));
    find_movable();
    for (std::size_t i = 0; i < ready_.size(); ++i) ready_[i] = dependences_[i] != Dependence::kStates;
    for (const LoopView::State& state : loop.states) ready_[state.in.index] = true;
    for (const LoopView::Stack& stack : loop.stacks)
      if (not is_moved_result(stack.made)) note_stacked(stack.made);
    choose();
    for (ValueId& addend : addends_)
      if (addend.valid() and not is_outside(addend)) addend = {};
    any_ = std::find(moves_.begin(), moves_.end(), true) != moves_.end() or
           std::any_of(addends_.begin(), addends_.end(), [](ValueId addend) { return addend.valid(); });
  }

  bool any() const { return any_; }
  /// By state: what is summed up after the loop; invalid where the loop does it.
  const std::vector<ValueId>& addends() const { return addends_; }
  /// By node, those that are computed after the loop, with what depends on slices alone and is read there.
  std::vector<bool> nodes() const {
    std::vector<ValueId> wanted;
    for (std::size_t i = 0; i < moves_.size(); ++i)
      if (moves_[i]) wanted.insert(wanted.end(), loop_.body.node(NodeId(i)).operands.begin(), loop_.body.node(NodeId(i)).operands.end());
    wanted.insert(wanted.end(), addends_.begin(), addends_.end());
    std::erase_if(wanted, [&](ValueId value) { return not value.valid() or dependences_[value.index] == Dependence::kStates; });
    const std::vector<bool> needed = find_needed(loop_.body, wanted);
    std::vector<bool> nodes = moves_;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const ValueId result : loop_.body.node(NodeId(i)).results) nodes[i] = nodes[i] or needed[result.index];
    return nodes;
  }
  bool is_moved_result(ValueId value) const {
    const NodeId producer = loop_.body.value(value).producer;
    return producer.valid() and moves_[producer.index];
  }
  /// What the loop stacks, in the order of the old stacks, new ones behind.
  const std::vector<ValueId>& stacks() const { return stacks_; }

 private:
  /// Can be had after the loop: known before it, stacked, or computed there.
  bool is_outside(ValueId value) const { return ready_[value.index] or stacked_[value.index] or is_moved_result(value); }

  void note_stacked(ValueId value) {
    if (stacked_[value.index]) return;
    stacked_[value.index] = true;
    stacks_.push_back(value);
  }

  /// Nodes that the loop goes on without, and so does all that reads them.
  void find_movable() {
    const Graph& body = loop_.body;
    std::vector<bool> stays(body.value_count());  // is read by a node that stays, or is a state
    for (std::size_t k = 0; k < loop_.states.size(); ++k)
      if (not addends_[k].valid()) stays[loop_.states[k].next.index] = true;
    movable_.resize(body.node_count());
    for (std::size_t i = body.node_count(); i-- > 0;) {
      const Node& node = body.node(NodeId(i));
      std::vector<bool> is_stacked;
      for (const ValueId operand : node.operands) is_stacked.push_back(operand.valid() and dependences_[operand.index] != Dependence::kNothing);
      const bool is_read = std::any_of(node.results.begin(), node.results.end(), [&](ValueId result) { return stays[result.index]; });
      movable_[i] = not is_read and can_lift(node, is_stacked) and dependences_[node.results[0].index] == Dependence::kStates;
      if (movable_[i] or is_sum(NodeId(i))) continue;
      for (const ValueId operand : node.operands)
        if (operand.valid()) stays[operand.index] = true;
    }
  }

  /// Does the node add an addend to its state? It goes with the addend.
  bool is_sum(NodeId id) const {
    for (std::size_t k = 0; k < addends_.size(); ++k)
      if (addends_[k].valid() and loop_.body.value(loop_.states[k].next).producer == id) return true;
    return false;
  }

  /// Products move, with what reads their results, and reductions of what is there after the loop anyway. What one node takes may make another's operands
  /// ready.
  void choose() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < moves_.size(); ++i) {
        const NodeId id(i);
        if (moves_[i] or not movable_[i] or is_sum(id) or not is_worth_moving(id)) continue;
        moves_[i] = changed = true;
      }
      for (std::size_t i = 0; i < moves_.size(); ++i)
        for (const ValueId operand : loop_.body.node(NodeId(i)).operands)
          if (moves_[i] and operand.valid() and not is_outside(operand)) note_stacked(operand);
    }
    std::erase_if(stacks_, [&](ValueId value) { return is_moved_result(value); });
  }

  bool is_worth_moving(NodeId id) const {
    const Node& node = loop_.body.node(id);
    if (std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return operand.valid() and is_moved_result(operand); })) return true;
    const Work work = work_of(loop_.body, id);
    if (work == Work::kProduct) return true;
    return work == Work::kReduction and is_outside(node.operands[0]);
  }

  const LoopView& loop_;
  std::vector<Dependence> dependences_;
  std::vector<bool> movable_, moves_;  // by node
  std::vector<bool> ready_, stacked_;  // by value
  std::vector<ValueId> addends_;       // by state
  std::vector<ValueId> stacks_;
  bool any_ = false;
};

/// What the loop leaves of a state that it no longer has.
Val sum_up(Rewriter& rewriter, Outside& outside, const LoopView::State& state, ValueId addend) {
  return rewriter.mapped(state.initial) + sum(outside.stacked(addend), {0}, false);
}

bool sink(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (not may_rearrange(node)) return false;
  const LoopView loop(node);
  const Sinking sinking(rewriter, loop);
  if (not sinking.any()) return false;
  LoopPlan plan(rewriter, loop);
  std::vector<LoopPlan::State> kept;
  for (std::size_t k = 0; k < loop.states.size(); ++k)
    if (not sinking.addends()[k].valid()) kept.push_back(plan.states[k]);
  plan.states = kept;
  plan.stacks = sinking.stacks();
  const BuiltLoop built = build_loop(rewriter.builder(), loop, plan);

  Outside outside(rewriter, loop);
  std::size_t next = 0;
  for (std::size_t k = 0; k < loop.states.size(); ++k) {
    if (sinking.addends()[k].valid()) continue;
    rewriter.replace(loop.states[k].last, built.last[next]);
    rewriter.replace(loop.states[k].began, built.began[next]);
    outside.set_stacked(loop.states[k].in, built.began[next++]);
  }
  for (std::size_t k = 0; k < plan.stacks.size(); ++k) outside.set_stacked(plan.stacks[k], built.stacks[k]);
  outside.compute(sinking.nodes());
  for (std::size_t k = 0; k < loop.states.size(); ++k)
    if (sinking.addends()[k].valid()) rewriter.replace(loop.states[k].last, sum_up(rewriter, outside, loop.states[k], sinking.addends()[k]));
  for (const LoopView::Stack& stack : loop.stacks) rewriter.replace(stack.result, outside.stacked(stack.made));
  return true;
}

}  // namespace

Changed sink_from_loops(Graph& graph) { return Rewriter::in_bodies(graph, sink_from_loops) | Rewriter::rewrite(graph, sink); }

}  // namespace hone
