#include <algorithm>

#include "ir/ops/formulas.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

namespace {

/// The number of the alias that replaces `state`, or how many there are.
std::size_t alias_of(const Graph& graph, Val state) {
  const auto& aliases = graph.aliases();
  return static_cast<std::size_t>(std::find_if(aliases.begin(), aliases.end(), [&](const Alias& alias) { return alias.state == state.id(); }) -
                                  aliases.begin());
}

}  // namespace

Changed freeze_batch_norm(Graph& graph) {
  return Rewriter::rewrite(graph, [](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (*node.op != op::batch_norm and *node.op != op::batch_norm_train) return false;
    std::vector<Val> operands;
    for (std::size_t i = 0; i < 5; ++i) operands.push_back(rewriter.operand(node, i));
    for (const std::size_t i : {3, 4})
      if (const Input* statistic = rewriter.old().input_of(node.operands[i]); statistic != nullptr and statistic->role == Role::kWeight)
        rewriter.builder().set_role(operands[i].id(), Role::kState);
    rewriter.replace(node.results[0], op::batch_norm.build(operands, {kEpsilon = node.attrs[kEpsilon], kMomentum = node.attrs[kMomentum]}));
    for (std::size_t i = 1; i < node.results.size(); ++i) rewriter.replace(node.results[i], operands[2 + i]);
    return true;
  });
}

Changed train_batch_norm(Graph& graph, Convention convention) {
  return Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (*node.op != op::batch_norm and *node.op != op::batch_norm_train) return false;
    const Input* mean = rewriter.old().input_of(node.operands[3]);
    const Input* variance = rewriter.old().input_of(node.operands[4]);
    if (mean == nullptr or variance == nullptr or mean->role != Role::kWeight or variance->role != Role::kWeight) return false;
    Builder& builder = rewriter.builder();
    const auto& aliases = builder.graph().aliases();
    std::vector<Val> operands;
    for (std::size_t i = 0; i < 5; ++i) operands.push_back(rewriter.operand(node, i));
    const std::vector<Val> states(operands.begin() + 3, operands.end());
    for (std::size_t i = 0; i < 2; ++i)  // statistics that nodes share (a layer called twice) are moved by one after the other
      if (const std::size_t alias = alias_of(builder.graph(), states[i]); alias < aliases.size()) operands[3 + i] = builder.val(aliases[alias].value);
    const std::vector<Val> results = op::batch_norm_train.build_all(
        operands, {kEpsilon = node.attrs[kEpsilon], kMomentum = node.attrs[kMomentum], kKeras = convention == Convention::kKeras});
    for (std::size_t i = 0; i < node.results.size(); ++i) rewriter.replace(node.results[i], results[i]);
    for (std::size_t i = 0; i < 2; ++i) {
      builder.set_role(states[i].id(), Role::kState);
      const std::size_t alias = alias_of(builder.graph(), states[i]);
      if (alias < aliases.size()) builder.redirect_alias(alias, results[1 + i]);
      else builder.alias(states[i], results[1 + i]);
    }
    return true;
  });
}

Changed synchronize_batch_norm(Graph& graph) {
  std::int64_t bucket = 0;  // each exchange travels alone, because the next one waits for it; gradients' buckets count upwards
  return Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (*node.op != op::batch_norm_train) return false;
    std::vector<Val> operands;
    for (std::size_t i = 0; i < 5; ++i) operands.push_back(rewriter.operand(node, i));
    const Val x = operands[0];
    const Ints axes = all_axes_but(x.rank(), 1);
    Dim own_count = 1;
    for (const std::int64_t axis : axes) own_count *= x.shape()[static_cast<std::size_t>(axis)];
    const auto over_all = [&](const std::vector<Val>& values) { return op::all_reduce.build_all(values, {kBucket = --bucket}); };
    const std::vector<Val> sums = over_all({sum(x, axes, true), size_value(rewriter.builder(), own_count, x.dtype())});
    const Val count = op::stop_gradient(sums[1]), mean = sums[0] / count, deviation = x - mean;
    const Val variance = over_all({sum(square(deviation), axes, true)})[0] / count;
    const std::vector<Val> results =
        batch_norm_results(operands, node.attrs, {{mean, deviation, 1.0 / op::sqrt(variance + node.attrs[kEpsilon])}, variance, count, op::maximum(count - 1.0, rewriter.builder().scalar(1, x.dtype()))});
    for (std::size_t i = 0; i < results.size(); ++i) rewriter.replace(node.results[i], results[i]);
    return true;
  });
}

}  // namespace hone
