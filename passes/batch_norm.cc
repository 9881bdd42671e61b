#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

Changed train_batch_norm(Graph& graph, Convention convention) {
  return Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (*node.op != op::batch_norm) return false;
    const Input* mean = rewriter.old().input_of(node.operands[3]);
    const Input* variance = rewriter.old().input_of(node.operands[4]);
    if (mean == nullptr or variance == nullptr or mean->role != Role::kWeight or variance->role != Role::kWeight) return false;
    std::vector<Val> operands;
    for (std::size_t i = 0; i < 5; ++i) operands.push_back(rewriter.operand(node, i));
    const std::vector<Val> results =
        op::batch_norm_train.build_all(operands, {kEpsilon = node.attrs[kEpsilon], kMomentum = node.attrs[kMomentum], kKeras = convention == Convention::kKeras});
    rewriter.replace(node.results[0], results[0]);
    for (std::size_t i = 0; i < 2; ++i) {
      rewriter.builder().set_role(operands[3 + i].id(), Role::kState);
      rewriter.builder().alias(operands[3 + i], results[1 + i]);
    }
    return true;
  });
}

}  // namespace hone
