#include "ir/op.h"
#include "passes/passes.h"
#include "passes/target.h"

namespace hone {

Changed select_library(Graph& graph, const Target& target) {
  const Changed inside = Rewriter::in_bodies(graph, [&target](Graph& body) { return select_library(body, target); });
  return inside | Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    RowChoice choice = target.choose_row(rewriter.old(), id);
    if (choice.row.empty()) return false;
    std::vector<Val> operands;
    for (const ValueId operand : node.operands) operands.push_back(rewriter.mapped(operand));
    Attrs attrs = node.attrs;
    attrs.set(kRow = std::move(choice.row));
    const std::vector<Val> results = node.op->build_all(std::move(operands), std::move(attrs));
    for (std::size_t i = 0; i < results.size(); ++i) rewriter.replace(node.results[i], results[i]);
    return true;
  });
}

}  // namespace hone
