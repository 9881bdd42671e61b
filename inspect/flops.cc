#include "inspect/flops.h"

#include "backends/arithmetic.h"
#include "base/diag.h"
#include "ir/kernel/compute.h"
#include "ir/op.h"
#include "ir/ops/ops.h"

namespace hone {

std::optional<double> flops_of(const Graph& graph, NodeId id, const DimBindings& sizes) {
  const Node& node = graph.node(id);
  if (*node.op == op::reshape or node.op->binds or node.op->collective) return 0;
  if (node.op->scalar == nullptr and node.op->compute == nullptr) return std::nullopt;
  try {
    return static_cast<double>(arithmetic_of(kernel_of(graph, id)).flops.evaluate(sizes));
  } catch (const Error&) {  // a size that is not known
    return std::nullopt;
  }
}

}  // namespace hone
