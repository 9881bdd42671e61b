#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

namespace {
constexpr std::int64_t kLossBucket = 0, kStatisticsBucket = 1, kObjectiveBucket = 2;  // the last for what is left of the objective when the loss has gone alone
constexpr std::int64_t kBucketBytes = 25 << 20;  // large enough that latency does not count, small enough to start while the backward pass goes on

/// Replaces the values by their sums over all replicas, which travel together.
void exchange(Builder& builder, std::span<ValueId* const> values, std::int64_t bucket, std::string_view what) {
  const Builder::Scope scope(builder, Loc{.derived = std::string(what)}, Part::kAllReduce);
  std::vector<Val> operands;
  for (const ValueId* value : values) operands.push_back(builder.val(*value));
  const std::vector<Val> sums = op::all_reduce.build_all(operands, {kBucket = bucket});
  for (std::size_t i = 0; i < values.size(); ++i) *values[i] = sums[i].id();
}

}  // namespace

void all_reduce_loss(Graph& graph, Objective& objective) {
  Builder builder(graph);
  ValueId* const loss = &objective.loss_sum;
  exchange(builder, {&loss, 1}, kLossBucket, "loss of all replicas");
}

void all_reduce_gradients(Graph& graph, Objective& objective, LossIs loss, std::span<const TrainedWeight> weights, std::vector<ValueId>& gradients, DType wire) {
  Builder builder(graph);
  std::vector<ValueId*> sums = {&objective.target_count};
  if (loss == LossIs::kOwn) sums.insert(sums.begin(), &objective.loss_sum);
  if (objective.overflows.valid()) sums.push_back(&objective.overflows);
  std::int64_t bucket = loss == LossIs::kOwn ? kLossBucket : kObjectiveBucket;
  exchange(builder, sums, bucket, loss == LossIs::kOwn ? "loss of all replicas" : "targets of all replicas");
  bucket = std::max(bucket, kStatisticsBucket) + 1;
  const auto travels_as = [&](std::size_t i, DType from, DType to) {
    if (not gradients[i].valid() or graph.type(gradients[i]).dtype != from or from == to) return;
    const Builder::Scope scope(builder, Loc{.derived = "gradients of all replicas"}, Part::kAllReduce);
    gradients[i] = cast(builder.val(gradients[i]), to).id();
  };
  const std::vector<ValueId> own = gradients;
  for (std::size_t i = 0; i < gradients.size(); ++i) travels_as(i, DType::kF32, wire);
  // The last weights' gradients are ready first.
  std::int64_t bytes = 0;
  std::vector<ValueId*> together;
  const auto flush = [&] {
    if (not together.empty()) exchange(builder, together, bucket++, "gradients of all replicas");
    together.clear();
    bytes = 0;
  };
  for (std::size_t i = gradients.size(); i-- > 0;) {
    if (not gradients[i].valid()) continue;
    const Type& type = graph.type(gradients[i]);
    together.push_back(&gradients[i]);
    bytes += element_count(type.shape).value() * static_cast<std::int64_t>(size_of(type.dtype));
    if (bytes > kBucketBytes) flush();
  }
  flush();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (not gradients[i].valid()) continue;
    builder.set_name(builder.val(gradients[i]), weights[i].name + "/gradient");  // as schedules and errors say what a bucket holds
    if (graph.type(own[i]).dtype != graph.type(gradients[i]).dtype) travels_as(i, wire, DType::kF32);
  }
}

void average_running_statistics(Graph& graph, HasSamples has_samples) {
  Builder builder(graph);
  std::vector<std::size_t> averaged;
  std::vector<ValueId> sums;
  for (std::size_t i = 0; i < graph.aliases().size(); ++i) {
    if (not is_float(graph.type(graph.aliases()[i].value).dtype)) continue;  // the counter of random numbers is the same everywhere
    averaged.push_back(i);
    sums.push_back(graph.aliases()[i].value);
  }
  if (averaged.empty()) return;
  sums.push_back(builder.scalar(has_samples == HasSamples::kYes ? 1 : 0).id());
  std::vector<ValueId*> values;
  for (ValueId& sum : sums) values.push_back(&sum);
  exchange(builder, values, kStatisticsBucket, "running statistics of all replicas");
  for (std::size_t k = 0; k < averaged.size(); ++k) {
    const Builder::Scope scope(builder, Loc{.derived = "mean over all replicas of " + graph.value(graph.aliases()[averaged[k]].state).name}, Part::kAllReduce);
    const Val sum = builder.val(sums[k]);
    builder.redirect_alias(averaged[k], sum / cast(builder.val(sums.back()), sum.dtype()));
  }
}

void exchange_nothing(Graph& graph) {
  Builder builder(graph);
  for (std::size_t i = 0, count = graph.node_count(); i < count; ++i) {
    const Node& node = graph.node(NodeId(i));
    if (*node.op != op::all_reduce) continue;
    const std::int64_t bucket = node.attrs[kBucket];
    std::vector<ValueId> nothing;
    for (const ValueId operand : std::vector(node.operands)) nothing.push_back(full(builder, 0, graph.type(operand).dtype, graph.type(operand).shape).id());
    std::vector<ValueId*> values;
    for (ValueId& value : nothing) values.push_back(&value);
    exchange(builder, values, bucket, "what replicas with samples exchange");
    builder.output(fmt::format("exchange:{}", i), builder.val(nothing[0]));  // what it does counts although nobody here reads it
  }
}

Changed drop_all_reduce(Graph& graph) {
  return Rewriter::rewrite(graph, [](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (*node.op != op::all_reduce) return false;
    for (std::size_t i = 0; i < node.results.size(); ++i) rewriter.replace(node.results[i], rewriter.operand(node, i));
    return true;
  });
}

}  // namespace hone
