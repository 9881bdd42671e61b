#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

namespace {

bool expand_node(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (node.op->lower == nullptr or node.op->keep) return false;
  Builder& builder = rewriter.builder();
  const Builder::Scope scope(builder, derived_from(node.loc, "part of " + std::string(node.op->name)), node.part);
  Lower lower{builder, node, node.attrs, {}};
  for (const ValueId operand : node.operands) lower.operands.push_back(rewriter.mapped(operand));
  const std::vector<Val> results = node.op->lower(lower);
  HONE_CHECK(results.size() == node.results.size(), "a lowering with another number of results: " + std::string(node.op->name));
  for (std::size_t i = 0; i < results.size(); ++i) rewriter.replace(node.results[i], results[i]);
  return true;
}

}  // namespace

Changed expand(Graph& graph) {
  Changed any = Rewriter::in_bodies(graph, expand);
  while (Rewriter::rewrite(graph, expand_node) == Changed::kYes) any = Changed::kYes;  // what an op lowers to may have to be lowered, too
  return any;
}

}  // namespace hone
