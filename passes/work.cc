#include "passes/work.h"

#include <algorithm>

#include "ir/op.h"
#include "ir/ops/random.h"

namespace hone {

namespace {

/// Is it a polynomial or a loop of its own, not an instruction?
bool is_function(ScalarOp op) { return (op >= ScalarOp::kExp and op <= ScalarOp::kExpm1 and op != ScalarOp::kSqrt) or op == ScalarOp::kPow; }

}  // namespace

Work work_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op->scalar == nullptr and node.op->compute == nullptr) return Work::kUnknown;
  if (draws(*node.op)) return Work::kFunctions;
  const Kernel kernel = kernel_of(graph, id);
  const bool reduces = std::any_of(kernel.phases.begin(), kernel.phases.end(), [](const Phase& phase) { return not phase.reductions.empty(); });
  if (reduces) return node.operands.size() > 1 ? Work::kProduct : Work::kReduction;
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i)
    if (is_function(kernel.exprs[ExprId(i)].op)) return Work::kFunctions;
  return Work::kLittle;
}

}  // namespace hone
