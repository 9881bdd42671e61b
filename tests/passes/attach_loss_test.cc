// Losses and metrics as attached to a model, against plain formulas; and what does not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/kernel/interpret.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

const Dim kN = Dim::symbol("N");

Graph model(const Shape& output, const OpDef* last = nullptr, Attrs attrs = {}) {
  Graph graph;
  Builder b(graph);
  const Val x = b.input(Role::kInput, "x", {DType::kF32, output});
  b.output("y", last == nullptr ? x * 1.0 : last->build({x}, std::move(attrs)));
  return graph;
}

Recipe recipe_of(std::string loss) {
  Recipe recipe;
  recipe.loss.kind = std::move(loss);
  return recipe;
}

GraphResults run(Graph graph, const Recipe& recipe, Tensor x, Tensor target) {
  attach_loss(graph, recipe);
  (void)expand(graph);
  verify(graph);
  return interpret(graph, {{"x", std::move(x)}, {"target", std::move(target)}}, Precision::kDouble);
}

Tensor doubles(std::vector<std::int64_t> shape, std::vector<double> values) { return Tensor::of<double>(std::move(shape), values); }
Tensor longs(std::vector<std::int64_t> shape, std::vector<std::int64_t> values) { return Tensor::of<std::int64_t>(std::move(shape), values); }

using Rows = std::vector<std::vector<double>>;
const Rows kLogits = {{1, 2, 0.5}, {-1, 0.3, 3}, {0, 0, 1}};
Tensor logits() { return doubles({3, 3}, {1, 2, 0.5, -1, 0.3, 3, 0, 0, 1}); }

double log_softmax(const std::vector<double>& row, std::size_t k) {
  double sum = 0;
  for (const double value : row) sum += std::exp(value);
  return row[k] - std::log(sum);
}

/// As torch.nn.functional.cross_entropy(reduction="sum", label_smoothing=s, ignore_index=ignored).
double cross_entropy(const std::vector<std::int64_t>& target, double smoothing, std::int64_t ignored) {
  double loss = 0;
  for (std::size_t n = 0; n < kLogits.size(); ++n) {
    if (target[n] == ignored) continue;
    double mean = 0;
    for (std::size_t k = 0; k < 3; ++k) mean += log_softmax(kLogits[n], k) / 3;
    loss -= (1 - smoothing) * log_softmax(kLogits[n], static_cast<std::size_t>(target[n])) + smoothing * mean;
  }
  return loss;
}

TEST(AttachLoss, SoftmaxCrossEntropy) {
  Recipe recipe = recipe_of("softmax_cross_entropy");
  const GraphResults plain = run(model({kN, 3}), recipe, logits(), longs({3}, {1, 0, 2}));
  EXPECT_NEAR(plain["loss_sum"].at(0), cross_entropy({1, 0, 2}, 0, -100), 1e-12);
  EXPECT_EQ(plain["target_count"].at(0), 3);
  recipe.loss.label_smoothing = 0.1;  // an f32 constant of the graph, also when it runs in double
  EXPECT_NEAR(run(model({kN, 3}), recipe, logits(), longs({3}, {1, 0, 2}))["loss_sum"].at(0), cross_entropy({1, 0, 2}, 0.1, -100), 1e-6);
  recipe.loss.has_ignore_index = true;
  const GraphResults ignoring = run(model({kN, 3}), recipe, logits(), longs({3}, {1, -100, 2}));
  EXPECT_NEAR(ignoring["loss_sum"].at(0), cross_entropy({1, -100, 2}, 0.1, -100), 1e-6);
  EXPECT_EQ(ignoring["target_count"].at(0), 2);
}

TEST(AttachLoss, ResultsHaveOneTypeWhateverTheModelComputesIn) {
  Graph graph;
  Builder b(graph);
  b.output("y", b.input(Role::kInput, "x", {DType::kF64, {kN, 3}}) * 2.0);
  Recipe recipe = recipe_of("softmax_cross_entropy");
  recipe.metrics.list = {"accuracy", "top_2_accuracy"};
  attach_loss(graph, recipe);
  ASSERT_EQ(graph.outputs().size(), 4U);
  for (const Output& output : graph.outputs()) EXPECT_EQ(to_string(graph.type(output.value)), output.name.starts_with("metric:") ? "f64[2]" : "f32[]") << output.name;
}

TEST(AttachLoss, HalfOutputsAreWidenedFirst) {  // f16 counts to 2048 and ends at 65504
  Graph graph;
  Builder b(graph);
  b.output("y", b.input(Role::kInput, "x", {DType::kF16, {kN, 3}}));
  attach_loss(graph, recipe_of("mse"));
  EXPECT_EQ(graph.type(graph.find_input("target")->value).dtype, DType::kF32);
}

TEST(AttachLoss, ClassesNeedAnAxisBesideTheSamples) {
  Graph graph = model({kN});
  expect_error(Code::kRecipeModel, "an axis of classes", [&] { attach_loss(graph, recipe_of("softmax_cross_entropy")); });
}

TEST(AttachLoss, ClassesMayStandInTheMiddle) {
  Recipe recipe = recipe_of("softmax_cross_entropy");
  recipe.loss.class_axis = 1;
  const Tensor x = doubles({1, 3, 3}, {1, -1, 0, 2, 0.3, 0, 0.5, 3, 1});  // kLogits transposed
  EXPECT_NEAR(run(model({kN, 3, 3}), recipe, x, longs({1, 3}, {1, 0, 2}))["loss_sum"].at(0), cross_entropy({1, 0, 2}, 0, -100), 1e-12);
}

TEST(AttachLoss, CrossEntropyOfProbabilitiesIsClippedAsInKeras) {
  const GraphResults results = run(model({kN, 2}), recipe_of("cross_entropy"), doubles({3, 2}, {0.25, 0.75, 0, 1, 1, 0}), longs({3}, {0, 0, 0}));
  EXPECT_NEAR(results["loss_sum"].at(0), -std::log(0.25) - std::log(1e-7) - std::log(1 - 1e-7), 1e-6);
}

TEST(AttachLoss, CrossEntropyOfASoftmaxIsComputedFromItsLogits) {
  Graph graph = model({kN, 3}, &op::softmax, {kAxis = 1});
  attach_loss(graph, recipe_of("cross_entropy"));
  EXPECT_TRUE(graph.is_op(graph.find_output("loss_sum")->value, op::softmax_cross_entropy));
  const GraphResults results = run(model({kN, 3}, &op::softmax, {kAxis = 1}), recipe_of("cross_entropy"), logits(), longs({3}, {1, 0, 2}));
  EXPECT_NEAR(results["loss_sum"].at(0), cross_entropy({1, 0, 2}, 0, -100), 1e-12);
  Graph other_axis = model({kN, 3}, &op::softmax, {kAxis = 0});
  attach_loss(other_axis, recipe_of("cross_entropy"));
  EXPECT_TRUE(other_axis.is_op(other_axis.find_output("loss_sum")->value, op::cross_entropy))
      << "a softmax along another axis gives no probabilities of classes";
}

TEST(AttachLoss, MeanSquaredError) {
  const GraphResults results = run(model({kN, 2}), recipe_of("mse"), doubles({2, 2}, {1, 2, 3, 4}), doubles({2, 2}, {0, 2, 5, 4.5}));
  EXPECT_NEAR(results["loss_sum"].at(0), 1 + 0 + 4 + 0.25, 1e-12);
  EXPECT_EQ(results["target_count"].at(0), 4);
}

TEST(AttachLoss, BinaryCrossEntropyWithLogits) {
  const std::vector<double> x = {0.5, -2, 3, 0}, t = {1, 0, 0.3, 0.5};
  double expected = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const double p = 1 / (1 + std::exp(-x[i]));
    expected -= t[i] * std::log(p) + (1 - t[i]) * std::log(1 - p);
  }
  const GraphResults results = run(model({kN, 1}), recipe_of("bce_with_logits"), doubles({4, 1}, x), doubles({4, 1}, t));
  EXPECT_NEAR(results["loss_sum"].at(0), expected, 1e-12);
  EXPECT_EQ(results["target_count"].at(0), 4);
}

TEST(AttachLoss, MetricsAreSumsOverTheTargets) {
  Recipe recipe = recipe_of("softmax_cross_entropy");
  recipe.metrics.list = {"accuracy", "top_2_accuracy"};
  const GraphResults results = run(model({kN, 3}), recipe, logits(), longs({3}, {1, 1, 0}));
  EXPECT_EQ(results["metric:accuracy"].at(0), 1);
  EXPECT_EQ(results["metric:top_2_accuracy"].at(0), 3);
  EXPECT_EQ(results.outputs.size(), 4u);
}

TEST(AttachLoss, TheTargetIsAnInputWithItsBounds) {
  Graph graph = model({kN, 7, 2});
  Recipe recipe = recipe_of("softmax_cross_entropy");
  recipe.loss.class_axis = 1;
  attach_loss(graph, recipe);
  const Input* target = graph.find_input("target");
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(to_string(graph.type(target->value)), "i64[N,2]");
  ASSERT_TRUE(target->bounds);
  EXPECT_TRUE(target->bounds->first.is_constant(0) and target->bounds->second.is_constant(7));
}

TEST(AttachLoss, TargetsMayBeProbabilitiesOfEachClass) {
  Recipe recipe = recipe_of("softmax_cross_entropy");
  recipe.loss.targets = "probabilities";
  recipe.metrics.list = {"accuracy", "f1"};
  Graph graph = model({kN, 3});
  attach_loss(graph, recipe);
  const Input* target = graph.find_input("target");
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(to_string(graph.type(target->value)), "f32[N,3]");
  EXPECT_FALSE(target->bounds);
  const GraphResults of_rows = run(model({kN, 3}), recipe, logits(), doubles({3, 3}, {0, 1, 0, 1, 0, 0, 0, 0, 1}));
  EXPECT_NEAR(of_rows["loss_sum"].at(0), cross_entropy({1, 0, 2}, 0, -100), 1e-12);
  EXPECT_EQ(of_rows["target_count"].at(0), 3);
  recipe.loss.targets = "classes";
  const GraphResults of_numbers = run(model({kN, 3}), recipe, logits(), longs({3}, {1, 0, 2}));
  for (const char* metric : {"metric:accuracy", "metric:f1"})
    for (std::int64_t i = 0; i < of_numbers[metric].element_count(); ++i) EXPECT_EQ(of_rows[metric].at(i), of_numbers[metric].at(i)) << metric;
}

TEST(AttachLoss, WhatDoesNotFitIsRefused) {
  const auto refused = [](Graph graph, const Recipe& recipe, std::string_view part) {
    expect_error(Code::kRecipeModel, part, [&] { attach_loss(graph, recipe); });
  };
  Recipe recipe = recipe_of("softmax_cross_entropy");
  recipe.loss.class_axis = 2;
  refused(model({kN, 3}), recipe, "class_axis = 2");
  refused(model({}), recipe_of("softmax_cross_entropy"), "class_axis");
  recipe = recipe_of("mse");
  recipe.metrics.list = {"accuracy"};
  refused(model({kN, 3}), recipe, "accuracy");
  recipe = recipe_of("mse");
  recipe.model.output = "z";
  refused(model({kN, 3}), recipe, "\"z\"");
  Graph two = model({kN, 3});
  Builder(two).output("second", Builder(two).val(two.outputs()[0].value));
  refused(std::move(two), recipe_of("mse"), "2 outputs");
  refused(model({kN, 3}, &op::is_finite), recipe_of("mse"), "needs floats");
}

/// A linear layer, and what `last` makes of it.
std::size_t warnings_of(const std::string& loss, const OpDef* last, std::string* said = nullptr, std::int64_t outputs = 3, Convention convention = Convention::kTorch) {
  Graph graph;
  Builder b(graph);
  const Val x = b.input(Role::kInput, "x", {DType::kF32, {kN, 4}});
  const Val y = op::matmul(x, b.constant(Tensor::zeros(DType::kF32, {4, outputs}))) + b.constant(Tensor::zeros(DType::kF32, {outputs}));
  b.output("y", last == nullptr ? y : last == &op::softmax ? last->build({y}, Attrs{kAxis = 1}) : last->build({y}, {}));
  Recipe recipe = recipe_of(loss);
  recipe.optimizer.kind = "sgd";
  recipe.train.convention = convention;
  const std::vector<Diag> warnings = recipe_warnings(graph, recipe);
  if (said != nullptr and not warnings.empty()) *said = to_string(warnings[0]);
  return warnings.size();
}

TEST(RecipeWarnings, ALossOfProbabilitiesBesideALinearLayer) {
  std::string said;
  EXPECT_EQ(warnings_of("cross_entropy", nullptr, &said), 1);
  EXPECT_THAT(said, testing::HasSubstr("output \"y\" is that of a linear layer, which may be any number, and the loss cross_entropy takes probabilities"));
  EXPECT_THAT(said, testing::HasSubstr("loss.kind = \"softmax_cross_entropy\""));
  EXPECT_EQ(warnings_of("bce", nullptr, &said), 1);
  EXPECT_THAT(said, testing::HasSubstr("loss.kind = \"bce_with_logits\""));
  EXPECT_EQ(warnings_of("nll", nullptr), 1);
}

TEST(RecipeWarnings, LossesWhoseOutputDependsOnTheConvention) {
  const auto warned = [](const std::string& loss, const OpDef* last, Convention convention) {
    std::string said;
    return warnings_of(loss, last, &said, 3, convention) == 1 ? said : "nothing";
  };
  EXPECT_THAT(warned("kl_divergence", &op::softmax, Convention::kTorch), testing::HasSubstr("takes logarithms of probabilities"));
  EXPECT_EQ(warned("kl_divergence", &op::softmax, Convention::kKeras), "nothing");
  EXPECT_THAT(warned("kl_divergence", nullptr, Convention::kTorch), testing::HasSubstr("logarithms"));
  EXPECT_THAT(warned("kl_divergence", nullptr, Convention::kKeras), testing::HasSubstr("takes probabilities"));
  EXPECT_THAT(warned("poisson", nullptr, Convention::kKeras), testing::HasSubstr("takes rates"));
  EXPECT_EQ(warned("poisson", nullptr, Convention::kTorch), "nothing");
  EXPECT_THAT(warned("msle", nullptr, Convention::kTorch), testing::HasSubstr("counts as 0"));
}

TEST(RecipeWarnings, AnActivationThatTheLossHasItself) {
  std::string said;
  EXPECT_EQ(warnings_of("softmax_cross_entropy", &op::softmax, &said), 1);
  EXPECT_THAT(said, testing::HasSubstr("takes the softmax of it again"));
  EXPECT_EQ(warnings_of("bce_with_logits", &op::sigmoid, &said), 1);
  EXPECT_THAT(said, testing::HasSubstr("takes the sigmoid of it again"));
  EXPECT_EQ(warnings_of("softmax_cross_entropy", &op::sigmoid, &said), 1);
  EXPECT_THAT(said, testing::HasSubstr("it is loss.kind = \"bce\""));
  EXPECT_EQ(warnings_of("softmax_cross_entropy", &op::relu), 1);
}

/// Of a linear layer from "x" that `recipe` trains.
std::vector<std::string> said_of(const Recipe& recipe) {
  Graph graph;
  Builder b(graph);
  b.output("y", op::matmul(b.input(Role::kInput, "x", {DType::kF32, {kN, 4}}), b.constant(Tensor::zeros(DType::kF32, {4, 3}))));
  std::vector<std::string> said;
  for (const Diag& warning : recipe_warnings(graph, recipe)) said.push_back(to_string(warning));
  return said;
}

TEST(RecipeWarnings, KeysThatChangeNothing) {
  Recipe recipe = recipe_of("mse");
  recipe.optimizer.kind = "sgd";
  recipe.train.keep_f32 = {"a*"};
  recipe.train.loss_scale = 8;
  recipe.train.loss_scale_growth_steps = 9;
  recipe.optimizer.exclude_from_weight_decay = {"*bias"};
  recipe.optimizer.weight_decay_on = "matrices";
  recipe.optimizer.dampening = 0.5;
  recipe.model.sync_batch_norm = true;
  recipe.model.batch_norm = "frozen";
  const std::vector<std::string> said = said_of(recipe);
  ASSERT_EQ(said.size(), 8u);
  EXPECT_THAT(said[0], testing::HasSubstr("model.batch_norm is set and changes nothing: the model has no batch normalization"));
  EXPECT_THAT(said[2], testing::HasSubstr("optimizer.dampening is set and changes nothing: optimizer.momentum is 0"));
  EXPECT_THAT(said[3], testing::HasSubstr("optimizer.exclude_from_weight_decay is set and changes nothing: optimizer.weight_decay is 0"));
  EXPECT_THAT(said[5], testing::HasSubstr("train.keep_f32 is set and changes nothing: train.precision is \"f32\""));
  recipe.optimizer.weight_decay = recipe.optimizer.momentum = 0.1;
  recipe.model = {};
  recipe.train.precision = "f16";
  EXPECT_THAT(said_of(recipe), testing::IsEmpty());
}

TEST(RecipeWarnings, FactorsOfWhatIsNoInput) {
  Recipe recipe = recipe_of("mse");
  recipe.optimizer.kind = "sgd";
  recipe.data.scale = {{"x", 2}, {"target", 2}, {"xs", 2}};
  const std::vector<std::string> said = said_of(recipe);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], testing::HasSubstr("data.scale names \"xs\", which is no input"));
}

TEST(RecipeWarnings, OneClassIsNone) {
  std::string said;
  for (const char* loss : {"softmax_cross_entropy", "cross_entropy", "nll"}) {
    EXPECT_EQ(warnings_of(loss, nullptr, &said, 1), 1) << loss;
    EXPECT_THAT(said, testing::HasSubstr("has one class")) << loss;
    EXPECT_THAT(said, testing::HasSubstr("\"bce_with_logits\"")) << loss;
  }
  EXPECT_EQ(warnings_of("bce_with_logits", nullptr, nullptr, 1), 0);
}

TEST(RecipeWarnings, NothingIsSaidOfALossThatFits) {
  EXPECT_EQ(warnings_of("cross_entropy", &op::softmax), 0);
  EXPECT_EQ(warnings_of("mse", &op::sigmoid), 0);
  EXPECT_EQ(warnings_of("softmax_cross_entropy", &op::tanh), 0);
  EXPECT_EQ(warnings_of("bce", &op::sigmoid), 0);
  EXPECT_EQ(warnings_of("softmax_cross_entropy", nullptr), 0);
  EXPECT_EQ(warnings_of("bce_with_logits", nullptr), 0);
  EXPECT_EQ(warnings_of("mse", nullptr), 0);
}

}  // namespace
}  // namespace hone::test
