// What one loop computes again of an earlier one, iteration by iteration, it reads instead: the earlier one stacks it. So a gradient, which begins each
// iteration with the forward pass again (ir/ops/regions.cc), keeps what is dear of it, matrix products and functions, and repeats the cheap rest.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/op.h"
#include "passes/loops.h"
#include "passes/passes.h"
#include "passes/work.h"

namespace hone {

namespace {

bool is_same_constant(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() and a.shape() == b.shape() and std::ranges::equal(a.bytes(), b.bytes());
}

/// Which values of a later loop's body are values of an earlier one's in the same iteration.
class Twins {
 public:
  Twins(const LoopView& earlier, const LoopView& later) : earlier_(earlier), later_(later), twins_(later.body.value_count()) {
    twins_[later.iteration.index] = earlier.iteration;
    for (const LoopView::Fed& slice : later.slices) twins_[slice.in.index] = made_of(slice.operand);
    for (const LoopView::Fed& fed : later.whole)
      for (const LoopView::Fed& other : earlier.whole)
        if (fed.operand == other.operand) twins_[fed.in.index] = other.in;
    for (const Input& input : later.body.inputs()) match_constant(input);
    for (const Node& node : earlier.body.nodes())
      if (node.bodies.empty()) nodes_.emplace(key(node, node.operands), &node);
    for (const Node& node : later.body.nodes()) match_node(node);
  }

  /// Invalid where there is none.
  ValueId of(ValueId value) const { return twins_[value.index]; }

 private:
  /// What the earlier body makes of which the slices of `stacked` are.
  ValueId made_of(ValueId stacked) const {
    for (const LoopView::State& state : earlier_.states)
      if (state.began == stacked) return state.in;
    for (const LoopView::Fed& slice : earlier_.slices)
      if (slice.operand == stacked) return slice.in;
    for (const LoopView::Stack& stack : earlier_.stacks)
      if (stack.result == stacked) return stack.made;
    return {};
  }

  void match_constant(const Input& input) {
    if (not input.data or input.role == Role::kInput) return;
    for (const Input& other : earlier_.body.inputs())
      if (other.role != Role::kInput and other.data and is_same_constant(*input.data, *other.data)) twins_[input.value.index] = other.value;
  }

  static std::string key(const Node& node, const std::vector<ValueId>& operands) {
    std::string key = fmt::format("{} {}", node.op->name, node.attrs.text());
    for (const ValueId operand : operands) key += fmt::format(" {}", operand.index);
    return key;
  }

  void match_node(const Node& node) {
    std::vector<ValueId> operands;
    for (const ValueId operand : node.operands) {
      operands.push_back(operand.valid() ? of(operand) : ValueId{});
      if (operand.valid() and not operands.back().valid()) return;
    }
    const auto found = nodes_.find(key(node, operands));
    if (found == nodes_.end() or not node.bodies.empty()) return;
    for (std::size_t i = 0; i < node.results.size(); ++i) twins_[node.results[i].index] = found->second->results[i];
  }

  const LoopView &earlier_, &later_;
  std::vector<ValueId> twins_;
  std::map<std::string, const Node*> nodes_;  // the earlier body's
};

/// What the later loop is to read: the dear values nearest to what it computes itself.
std::vector<ValueId> find_reused(const LoopView& later, const Twins& twins) {
  std::vector<bool> needed(later.body.value_count());
  for (const Output& output : later.body.outputs()) needed[output.value.index] = true;
  std::vector<ValueId> reused;
  for (std::size_t i = later.body.node_count(); i-- > 0;) {
    const Node& node = later.body.node(NodeId(i));
    const auto is_needed = [&](ValueId result) { return needed[result.index]; };
    if (std::none_of(node.results.begin(), node.results.end(), is_needed)) continue;
    if (twins.of(node.results[0]).valid() and work_of(later.body, NodeId(i)) != Work::kLittle) {
      std::copy_if(node.results.begin(), node.results.end(), std::back_inserter(reused), is_needed);
      continue;
    }
    for (const ValueId operand : node.operands)
      if (operand.valid()) needed[operand.index] = true;
  }
  std::reverse(reused.begin(), reused.end());
  return reused;
}

/// What a loop reads of an earlier one.
struct Reuse {
  struct Value {
    ValueId here, there;  ///< in the body of the later loop, and of the earlier one
  };
  NodeId earlier;
  std::vector<Value> values;
};

/// Of the first earlier loop that there is something to read of.
Reuse find_reuse(const Graph& graph, const std::vector<NodeId>& loops, NodeId id) {
  const LoopView later(graph.node(id));
  for (const NodeId earlier_id : loops) {
    const LoopView earlier(graph.node(earlier_id));
    if (earlier.trips != later.trips) continue;
    const Twins twins(earlier, later);
    Reuse reuse{earlier_id, {}};
    for (const ValueId value : find_reused(later, twins)) reuse.values.push_back({value, twins.of(value)});
    if (not reuse.values.empty()) return reuse;
  }
  return {};
}

/// One round: each loop reads of one earlier one.
class Reuser {
 public:
  explicit Reuser(const Graph& graph) {
    std::vector<NodeId> loops;
    for (std::size_t i = 0; i < graph.node_count(); ++i) {
      const NodeId id(i);
      if (not may_rearrange(graph.node(id))) continue;
      if (Reuse reuse = find_reuse(graph, loops, id); not reuse.values.empty()) {
        std::vector<ValueId>& asked = asked_[reuse.earlier];
        for (const Reuse::Value& value : reuse.values)
          if (std::find(asked.begin(), asked.end(), value.there) == asked.end()) asked.push_back(value.there);
        reuses_.emplace(id, std::move(reuse));
      }
      loops.push_back(id);
    }
  }

  bool rewrite(Rewriter& rewriter, NodeId id) {
    const auto reuse = reuses_.find(id);
    const auto asked = asked_.find(id);
    if (reuse == reuses_.end() and asked == asked_.end()) return false;
    const LoopView loop(rewriter.node(id));
    LoopPlan plan(rewriter, loop);
    if (reuse != reuses_.end())
      for (const Reuse::Value& value : reuse->second.values) plan.slices.push_back({stacked_.at({reuse->second.earlier, value.there}), value.here});
    if (asked != asked_.end()) plan.stacks.insert(plan.stacks.end(), asked->second.begin(), asked->second.end());
    const BuiltLoop built = build_loop(rewriter.builder(), loop, std::move(plan));
    replace_results(rewriter, loop, built);
    for (std::size_t k = loop.stacks.size(); k < built.stacks.size(); ++k) stacked_[{id, asked->second[k - loop.stacks.size()]}] = built.stacks[k];
    return true;
  }

 private:
  std::map<NodeId, Reuse> reuses_;                // by the later loop
  std::map<NodeId, std::vector<ValueId>> asked_;  // by the earlier one: values of its body
  std::map<std::pair<NodeId, ValueId>, Val> stacked_;
};

}  // namespace

Changed reuse_iterations(Graph& graph) {
  Changed any = Rewriter::in_bodies(graph, reuse_iterations), again = Changed::kNo;
  do {
    Reuser reuser(graph);
    any |= again = Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) { return reuser.rewrite(rewriter, id); });
  } while (again == Changed::kYes);
  return any;
}

}  // namespace hone
