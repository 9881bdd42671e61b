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

bool expand_node_without_gradient(Rewriter& rewriter, NodeId id) { return not rewriter.node(id).op->keep and expand_node(rewriter, id); }

}  // namespace

Changed expand(Graph& graph) {
  Changed any = Rewriter::in_bodies(graph, expand);
  while (Rewriter::rewrite(graph, expand_node) == Changed::kYes) any = Changed::kYes;  // what an op lowers to may have to be lowered, too
  return any;
}

Changed expand_for_gradients(Graph& graph) {
  Changed any = Rewriter::in_bodies(graph, expand_for_gradients);
  while (Rewriter::rewrite(graph, expand_node_without_gradient) == Changed::kYes) any = Changed::kYes;
  return any;
}

}  // namespace hone
