#include "ir/ops/ops.h"
#include "passes/names.h"
#include "passes/passes.h"

namespace hone {

void accumulate_gradients(Graph& graph, Objective& objective, std::span<const TrainedWeight> weights, std::vector<ValueId>& gradients, Accumulated what) {
  Builder builder(graph);
  const Builder::Scope scope(builder, Loc{.derived = "gradients since the last update"}, Part::kUpdate);
  const auto accumulate = [&](const std::string& name, ValueId value) {
    const Val added = builder.val(value), state = builder.input(Role::kState, known_name(graph, name, "a sum of gradients (train.gradient_accumulation_steps)"), added.type(), Tensor::zeros(added.dtype(), constant_shape(added.shape())));
    const Val total = state + added;
    builder.alias(state, what == Accumulated::kKept ? total : full(builder, 0, added.dtype(), added.shape()));
    return total.id();
  };
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (gradients[i].valid()) gradients[i] = accumulate(weights[i].name + "/accumulated", gradients[i]);
  objective.target_count = accumulate("accumulated_targets", objective.target_count);
}

}  // namespace hone
