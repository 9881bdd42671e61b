// Training with a scaled loss, step by step, against torch.amp.GradScaler (loss_scale.json, which make_loss_scale.py writes).
#include "passes/loss_scale.h"

#include "ir/differentiate.h"
#include "ir/kernel/interpret.h"
#include "ir/ops/ops.h"
#include "ir/verify.h"
#include "tests/golden_numbers/golden_file.h"
#include "tests/support/tensor_values.h"

namespace hone::test {
namespace {

/// One weight, whose loss is the sum of w * factors; `poison` is added to its gradient.
Graph training_of(const Recipe& recipe, const std::vector<double>& start) {
  Graph graph;
  Builder builder(graph);
  const Val w = builder.input(Role::kWeight, "w", {DType::kF32, {3}}, Tensor::of<double>({3}, start).cast(DType::kF32));
  const Val factors = builder.input(Role::kInput, "factors", w.type()), poison = builder.input(Role::kInput, "poison", w.type()), count = builder.input(Role::kInput, "count", {DType::kF32, {}});
  Objective objective = {(sum_all(w * factors) * count).id(), count.id()};  // the loss of `count` equal samples
  builder.output("loss_sum", builder.val(objective.loss_sum));
  const ScaledLoss scaled = scale_loss(graph, objective, recipe);
  const ValueId wrt[] = {w.id()};
  std::vector<ValueId> gradients = differentiate(graph, scaled.loss, wrt);
  gradients[0] = (builder.val(gradients[0]) + poison).id();
  unscale_gradients(graph, scaled, gradients);
  objective.overflows = count_overflows(graph, gradients);
  const TrainedWeight weights[] = {{w.id(), "w", ""}};
  attach_optimizer(graph, objective, weights, gradients, recipe, {});
  update_unless_overflow(graph, objective, recipe, 0);
  update_if_finite(graph, objective.loss_sum);
  (void)expand(graph);
  return graph;
}

TEST(GoldenNumbers, LossScales) {
  for (const Json& golden : golden_cases("loss_scale")) {
    SCOPED_TRACE(golden["recipe"].get<std::string>());
    const Recipe recipe = recipe_of(golden);
    const Graph graph = training_of(recipe, {0.5, -1.25, 2.0});
    double skipped = 0;
    Feeds feeds;
    feeds["learning_rate"] = Tensor::scalar(recipe.optimizer.learning_rate);
    feeds["count"] = Tensor::scalar(7.0F);
    for (const Json& step : golden["steps"]) {
      std::vector<double> poison;
      for (const std::string text : step["poison"]) poison.push_back(std::stod(text));
      feeds["factors"] = Tensor::of<double>({3}, numbers_of(step["factors"])).cast(DType::kF32);
      feeds["poison"] = Tensor::of<double>({3}, poison).cast(DType::kF32);
      const GraphResults results = interpret(graph, feeds, Precision::kFloat);
      for (const NamedTensor& state : results.states) feeds[state.name] = state.value;
      const double bad = std::isfinite(poison[1]) ? 0 : 1;
      skipped += bad;
      EXPECT_EQ(results["loss_scale"].at(0), step["scale"].get<double>());
      EXPECT_EQ(feeds.at("loss_scale").at(0), step["next_scale"].get<double>());
      EXPECT_EQ(results["overflows"].at(0), bad);
      EXPECT_EQ(results["skipped_steps"].at(0), skipped);
      expect_same(elements(feeds.at("w")), numbers_of(step["weight"]), "weight");
    }
  }
}

TEST(LossScale, ALossThatIsNotFiniteChangesNoScaleEither) {
  const Json golden = golden_cases("loss_scale")[0];
  const Graph graph = training_of(recipe_of(golden), {0.5, -1.25, 2.0});
  Feeds feeds;
  feeds["learning_rate"] = Tensor::scalar(0.1);
  feeds["count"] = Tensor::scalar(1.0F);
  feeds["factors"] = Tensor::of<float>({3}, std::vector<float>{1, std::numeric_limits<float>::infinity(), 1});
  feeds["poison"] = Tensor::zeros(DType::kF32, {3});
  const GraphResults results = interpret(graph, feeds, Precision::kFloat);
  EXPECT_EQ(elements(results["w"]), (std::vector<double>{0.5, -1.25, 2.0}));
  for (const NamedTensor& state : results.states)
    if (state.name == "loss_scale") EXPECT_EQ(state.value.at(0), 65536);
}

}  // namespace
}  // namespace hone::test
