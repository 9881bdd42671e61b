#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

namespace {
constexpr std::int64_t kBucketBytes = 25 << 20;  // large enough that latency does not count, small enough to start while the backward pass goes on
}

void all_reduce_gradients(Graph& graph, Objective& objective, std::vector<ValueId>& gradients) {
  Builder builder(graph);
  const auto reduced = [&](ValueId value, std::int64_t bucket, std::string_view what) {
    const Builder::Scope scope(builder, Loc{.derived = std::string(what)}, Part::kAllReduce);
    return op::all_reduce(builder.val(value), {kBucket = bucket}).id();
  };
  objective.loss_sum = reduced(objective.loss_sum, 0, "loss of all replicas");
  objective.target_count = reduced(objective.target_count, 0, "targets of all replicas");
  // The last weights' gradients are ready first.
  std::int64_t bucket = 1, bytes = 0;
  for (std::size_t i = gradients.size(); i-- > 0;) {
    if (not gradients[i].valid()) continue;
    const Type& type = graph.type(gradients[i]);
    bytes += element_count(type.shape).value() * static_cast<std::int64_t>(size_of(type.dtype));
    gradients[i] = reduced(gradients[i], bucket, graph.value(gradients[i]).name);
    if (bytes > kBucketBytes) ++bucket, bytes = 0;
  }
}

Changed drop_all_reduce(Graph& graph) {
  return Rewriter::rewrite(graph, [](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (*node.op != op::all_reduce) return false;
    rewriter.replace(node.results[0], rewriter.operand(node, 0));
    return true;
  });
}

}  // namespace hone
