// softmax, with zeros in place of NaNs, as one op.
#include <set>

#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

namespace {

/// where(is y NaN?, 0, y) of a softmax y that nobody else reads.
struct Guards {
  std::set<NodeId> softmaxes, comparisons, choices;

  explicit Guards(const Graph& graph) : graph_(graph), uses_(count_uses(graph)) {
    for (std::size_t i = 0; i < graph.node_count(); ++i) look_at(NodeId(i));
  }

 private:
  void look_at(NodeId choice) {
    const Node& node = graph_.node(choice);
    if (*node.op != op::where or graph_.scalar_constant(node.operands[1]) != 0.0) return;
    const ValueId is_nan = node.operands[0], y = node.operands[2];
    if (not graph_.is_op(is_nan, op::logical_not) or not graph_.is_op(y, op::softmax)) return;
    const ValueId is_number = graph_.producer(is_nan).operands[0];
    if (not graph_.is_op(is_number, op::equal) or graph_.producer(is_number).operands != std::vector<ValueId>{y, y}) return;
    if (uses_[y.index] != 3 or uses_[is_nan.index] != 1 or uses_[is_number.index] != 1 or graph_.type(node.results[0]) != graph_.type(y)) return;
    softmaxes.insert(graph_.value(y).producer);
    comparisons.insert({graph_.value(is_nan).producer, graph_.value(is_number).producer});
    choices.insert(choice);
  }

  const Graph& graph_;
  const std::vector<std::uint32_t> uses_;
};

Changed find_here(Graph& graph) {
  const Guards guards(graph);
  if (guards.choices.empty()) return Changed::kNo;
  return Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (guards.comparisons.contains(id)) return true;  // nobody reads it any more
    if (guards.choices.contains(id)) return rewriter.replace(node.results[0], rewriter.operand(node, 2)), true;
    if (not guards.softmaxes.contains(id)) return false;
    const Builder::Scope scope(rewriter.builder(), node.loc, node.part);
    rewriter.replace(node.results[0], op::safe_softmax(rewriter.operand(node, 0), {kAxis = node.attrs[kAxis]}));
    return true;
  });
}

}  // namespace

Changed find_safe_softmaxes(Graph& graph) { return Rewriter::in_bodies(graph, find_safe_softmaxes) | find_here(graph); }

}  // namespace hone
