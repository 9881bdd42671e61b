#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

Changed remove_dropout(Graph& graph) {
  const Changed inside = Rewriter::in_bodies(graph, remove_dropout);
  return inside | Rewriter::rewrite(graph, [](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (*node.op != op::dropout) return false;
    const Val x = rewriter.operand(node, 0);
    rewriter.replace(node.results[0], x);
    rewriter.replace(node.results[1], full(rewriter.builder(), 1, DType::kBool, x.shape()));
    return true;
  });
}

}  // namespace hone
