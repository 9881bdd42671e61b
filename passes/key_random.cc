#include <string>

#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

namespace {

bool draws(const Node& node) { return *node.op == op::random_uniform or *node.op == op::random_normal; }

/// A counter of the steps that were taken.
Val step_counter(Builder& builder) {
  std::string name = "random_step";
  while (builder.graph().find_input(name) != nullptr) name += "_";
  const Val step = builder.input(Role::kState, name, {DType::kI64, {}}, Tensor::scalar(std::int64_t{0}));
  const Builder::Scope scope(builder, Loc{.derived = "update"}, Part::kUpdate);
  builder.alias(step, step + builder.constant(Tensor::scalar(std::int64_t{1})));
  return step;
}

}  // namespace

Changed key_random(Graph& graph, std::int64_t seed) {
  Val step;
  return Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (not draws(node) or node.operands[0].valid()) return false;
    if (not step.valid()) step = step_counter(rewriter.builder());
    Attrs attrs = node.attrs;
    attrs.set(kSeed = static_cast<std::int64_t>(static_cast<std::uint64_t>(attrs[kSeed]) + static_cast<std::uint64_t>(seed)));
    rewriter.replace(node.results[0], (*node.op)(step, attrs));
    return true;
  });
}

}  // namespace hone
