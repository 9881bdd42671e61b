#include <algorithm>

#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

namespace {

bool expand_node(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (node.op->lower == nullptr) return false;
  Builder& builder = rewriter.builder();
  const Builder::Scope scope(builder, derived_from(node.loc, "part of " + std::string(node.op->name)), node.part);
  Lower lower{builder, node, node.attrs, {}};
  for (const ValueId operand : node.operands) lower.operands.push_back(rewriter.mapped(operand));
  const std::vector<Val> results = node.op->lower(lower);
  HONE_CHECK(results.size() == node.results.size(), "a lowering with another number of results: " + std::string(node.op->name));
  for (std::size_t i = 0; i < results.size(); ++i) rewriter.replace(node.results[i], results[i]);
  return true;
}

bool expand_but_gradients(Rewriter& rewriter, NodeId id) { return *rewriter.node(id).op != op::gradient and expand_node(rewriter, id); }

bool expand_node_without_gradient(Rewriter& rewriter, NodeId id) { return not rewriter.node(id).op->keep and expand_but_gradients(rewriter, id); }

/// What is drawn has no form anywhere else, but dropout has one as a whole. A normalization that moves its statistics as the recipe's convention says has none.
bool expand_node_for_export(Rewriter& rewriter, NodeId id) {
  const OpDef& op = *rewriter.node(id).op;
  return op == op::batch_norm_train ? expand_node(rewriter, id) : op != op::dropout and expand_node_without_gradient(rewriter, id);
}

/// What an op lowers to may have to be lowered, too.
Changed to_fixpoint(Graph& graph, bool (*visit)(Rewriter&, NodeId)) {
  Changed any = Changed::kNo;
  while (Rewriter::rewrite(graph, visit) == Changed::kYes) any = Changed::kYes;
  return any;
}

/// Backward passes in place of those gradient nodes that wait for no other. All that lies before them must be expanded.
Changed expand_gradient_nodes(Graph& graph) {
  std::vector<bool> waits(graph.value_count());
  return Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    bool waiting = false;
    for (const ValueId operand : node.operands) waiting = waiting or (operand.valid() and waits[operand.index]);
    const bool is_gradient = *node.op == op::gradient;
    for (const ValueId result : node.results) waits[result.index] = waiting or is_gradient;
    return is_gradient and not waiting and expand_node(rewriter, id);
  });
}

}  // namespace

Changed expand_for_export(Graph& graph) { return Rewriter::in_bodies(graph, expand_for_export) | to_fixpoint(graph, expand_node_for_export); }

Changed expand_for_gradients(Graph& graph) {
  Changed any = Changed::kNo, again = Changed::kNo;
  do {
    any |= Rewriter::in_bodies(graph, expand_for_gradients) | to_fixpoint(graph, expand_node_without_gradient);
    any |= again = expand_gradient_nodes(graph);
  } while (again == Changed::kYes);
  return any;
}

Changed expand_unclaimed(Graph& graph) {
  const auto is_whole = [](const Node& node) { return node.op->whole; };
  if (std::ranges::none_of(graph.nodes(), is_whole)) return expand(graph);
  const auto expand_others = [](Rewriter& rewriter, NodeId id) { return not rewriter.node(id).op->whole and expand_node(rewriter, id); };
  return Rewriter::in_bodies(graph, expand) | to_fixpoint(graph, expand_others);
}

Changed expand(Graph& graph) {
  const Changed gradients = expand_for_gradients(graph);  // because layers have gradients of their own
  return gradients | Rewriter::in_bodies(graph, expand) | to_fixpoint(graph, expand_node);
}

}  // namespace hone
