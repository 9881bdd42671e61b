#include "passes/loss_scale.h"

#include "ir/ops/formulas.h"
#include "ir/ops/ops.h"
#include "passes/names.h"

namespace hone {

namespace {

constexpr const char *kLossScale = "loss_scale", *kGoodSteps = "loss_scale_good_steps", *kSkipped = "skipped_steps";
constexpr double kGrowth = 2.0, kBackoff = 0.5;  // torch.amp.GradScaler's growth_factor and backoff_factor

Val state(Builder& builder, const char* name, Tensor begin) { return builder.input(Role::kState, known_name(builder.graph(), name, "a state of the scaled loss (train.precision = \"f16\")"), {begin.dtype(), {}}, std::move(begin)); }

}  // namespace

bool scales_loss(const Recipe& recipe) { return recipe.train.precision == "f16"; }

ScaledLoss scale_loss(Graph& graph, const Objective& objective, const Recipe& recipe) {
  Builder builder(graph);
  const Builder::Scope scope(builder, Loc{.derived = "scaled loss"}, Part::kLoss);
  const Val sum = builder.val(objective.loss_sum), scale = state(builder, kLossScale, Tensor::scalar(static_cast<float>(recipe.train.loss_scale)));
  const Val divisor = target_divisor(cast(builder.val(objective.target_count), DType::kF32));
  return {(sum * cast(scale / divisor, sum.dtype())).id(), (divisor / scale).id()};
}

void unscale_gradients(Graph& graph, const ScaledLoss& scaled, std::vector<ValueId>& gradients) {
  Builder builder(graph);
  const Builder::Scope scope(builder, Loc{.derived = "gradients of the loss without its scale"}, Part::kAllReduce);  // so products give them in f32 (passes/precision.cc)
  for (ValueId& gradient : gradients) {
    if (not gradient.valid()) continue;
    const Val own = builder.val(gradient);
    gradient = (own * cast(builder.val(scaled.inverse), own.dtype())).id();
  }
}

ValueId count_overflows(Graph& graph, std::span<const ValueId> gradients) {
  Builder builder(graph);
  const Builder::Scope scope(builder, Loc{.derived = "gradients that are not finite"}, Part::kAllReduce);
  Val count = builder.scalar(0);
  for (const ValueId gradient : gradients) {
    if (not gradient.valid()) continue;
    count = count + sum_all(op::where(op::is_finite(builder.val(gradient)), builder.scalar(0), builder.scalar(1)));
  }
  return count.id();
}

void update_unless_overflow(Graph& graph, const Objective& objective, const Recipe& recipe, std::size_t first) {
  Builder builder(graph);
  const Builder::Scope scope(builder, Loc{.derived = "update of the loss's scale"}, Part::kUpdate);
  const Val overflows = builder.val(objective.overflows), good = op::equal(overflows, builder.scalar(0));
  for (std::size_t i = first; i < graph.aliases().size(); ++i) {
    const Alias alias = graph.aliases()[i];
    builder.redirect_alias(i, op::where(good, builder.val(alias.value), builder.val(alias.state)));
  }
  const Val scale = builder.val(graph.find_input(kLossScale)->value), larger = scale * kGrowth;
  const Val steps = state(builder, kGoodSteps, Tensor::scalar(0.0)), skipped = state(builder, kSkipped, Tensor::scalar(0.0));
  const Val none = builder.scalar(0, DType::kF64), one = builder.scalar(1, DType::kF64), in_a_row = steps + 1.0;
  const Val grows = op::equal(in_a_row, builder.scalar(static_cast<double>(recipe.train.loss_scale_growth_steps), DType::kF64));
  builder.alias(scale, op::where(good, op::where(op::logical_and(grows, op::is_finite(larger)), larger, scale), scale * kBackoff));
  builder.alias(steps, op::where(op::logical_and(good, op::logical_not(grows)), in_a_row, none));
  const Val skipped_now = skipped + op::where(good, none, one);
  builder.alias(skipped, skipped_now);
  builder.output(kLossScale, scale);
  builder.output("overflows", overflows);
  builder.output(kSkipped, skipped_now);
}

}  // namespace hone
