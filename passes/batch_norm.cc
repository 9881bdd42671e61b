#include <algorithm>

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

Changed train_batch_norm(Graph& graph, Convention convention) {
  return Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (*node.op != op::batch_norm) return false;
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
    rewriter.replace(node.results[0], results[0]);
    for (std::size_t i = 0; i < 2; ++i) {
      builder.set_role(states[i].id(), Role::kState);
      const std::size_t alias = alias_of(builder.graph(), states[i]);
      if (alias < aliases.size()) builder.redirect_alias(alias, results[1 + i]);
      else builder.alias(states[i], results[1 + i]);
    }
    return true;
  });
}

}  // namespace hone
