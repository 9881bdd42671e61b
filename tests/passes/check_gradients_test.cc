// The check of a model's own gradients: right ones pass, a wrong one is named.
#include "passes/check_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/philox.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "passes/forward_run.h"

namespace hone {
namespace {

using testing::HasSubstr;
using testing::Not;

Val weight(Builder& b, std::string name, std::vector<std::int64_t> shape) {
  const Tensor data = random_direction(shape, name.size() + static_cast<std::uint64_t>(name.back())).cast(DType::kF32);
  return b.input(Role::kWeight, std::move(name), {DType::kF32, shape_of(shape)}, data);
}

Recipe recipe_with_loss(std::string loss) {
  Recipe recipe;
  recipe.loss.kind = std::move(loss);
  recipe.optimizer.kind = "sgd";
  return recipe;
}

const Dim kAnyBatch = Dim::symbol("N");

Graph mlp(const OpDef& activation) {
  Graph graph;
  Builder b(graph);
  const Val x = b.input(Role::kInput, "x", {DType::kF32, {kAnyBatch, 6}});
  Val h;
  {
    const Builder::Scope scope(b, {.node = "hidden"}, Part::kForward);
    h = activation.build({op::matmul(x, weight(b, "w1", {6, 5})) + weight(b, "b1", {5})});
  }
  b.output("logits", op::matmul(h, weight(b, "w2", {5, 3})));
  return graph;
}

TEST(CheckGradients, MlpAgrees) {
  const GradientReport report = check_gradients(mlp(op::tanh), recipe_with_loss("softmax_cross_entropy"), 2);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_THAT(report.text, HasSubstr("gradients agree"));
  EXPECT_THAT(report.text, HasSubstr("weight"));
  EXPECT_THAT(report.text, Not(HasSubstr("kink")));
}

TEST(CheckGradients, LeavesOutWhatMasksOfAttentionHide) {
  Graph graph;
  Builder b(graph);
  const Val x = b.input(Role::kInput, "x", {DType::kF32, {kAnyBatch, 6}});
  const std::vector<float> mask = {0, -3.4e38F, 0, 0, -3.4e38F};
  const Val masked = op::matmul(x, weight(b, "w", {6, 5})) + b.constant(Tensor::of<float>({5}, std::span<const float>(mask)));
  b.output("y", op::softmax(masked, {kAxis = 1}));
  const GradientReport report = check_gradients(graph, recipe_with_loss("mse"), 2);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_THAT(report.text, HasSubstr("(4 of 10 elements are so large that rounding hides their slope, and left out)"));
}

TEST(CheckGradients, ConvolutionNetAgrees) {
  Graph graph;
  Builder b(graph);
  const Val x = b.input(Role::kInput, "x", {DType::kF32, {kAnyBatch, 1, 6, 6}});
  const Val c = op::conv(x, weight(b, "c", {4, 1, 3, 3}),
                         {kStrides = Ints{1, 1}, kDilations = Ints{1, 1}, kPadsBegin = Shape{1, 1}, kPadsEnd = Shape{1, 1}, kGroups = 1});
  const Val one = weight(b, "variance", {4});
  const Val scaled = op::batch_norm.build({c, weight(b, "scale", {4}), weight(b, "bias", {4}), weight(b, "mean", {4}), op::abs(one) + 1.0}, {kEpsilon = 1e-5});
  const Val pooled = op::max_pool(op::relu(scaled), {kKernel = Ints{2, 2}, kStrides = Ints{2, 2}, kDilations = Ints{1, 1}, kPadsBegin = Shape{0, 0},
                                                     kPadsEnd = Shape{0, 0}, kSpatial = Shape{3, 3}});
  b.output("y", op::matmul(reshape(pooled, {kAnyBatch, 36}), weight(b, "dense", {36, 3})));
  const GradientReport report = check_gradients(graph, recipe_with_loss("mse"), 2);
  EXPECT_TRUE(report.ok) << report.text;
}

TEST(CheckGradients, BatchNormInTrainingAgrees) {
  Graph graph;
  Builder b(graph);
  const Val x = b.input(Role::kInput, "x", {DType::kF32, {kAnyBatch, 4}});
  const Tensor ones = Tensor::of<float>({5}, std::vector<float>(5, 1));
  const Val variance = b.input(Role::kWeight, "variance", {DType::kF32, {5}}, ones);
  b.output("y", op::batch_norm.build({op::matmul(x, weight(b, "w", {4, 5})), weight(b, "scale", {5}), weight(b, "bias", {5}), weight(b, "mean", {5}), variance},
                                     {kEpsilon = 1e-3, kMomentum = 0.9}));
  const GradientReport report = check_gradients(graph, recipe_with_loss("mse"), 3);
  EXPECT_TRUE(report.ok) << report.text;
}

TEST(CheckGradients, ElementsAtAKinkAreLeftOutAndCounted) {
  Graph graph;
  Builder b(graph);
  const Val x = b.input(Role::kInput, "x", {DType::kF32, {kAnyBatch, 2}});
  const Val w = b.input(Role::kWeight, "w", {DType::kF32, {2, 2}}, Tensor::of<float>({2, 2}, std::vector<float>{1, 0, 2, 0}));
  b.output("y", op::relu(op::matmul(x, w)));  // column 1 is 0
  const GradientReport report = check_gradients(graph, recipe_with_loss("mse"), 2);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_THAT(report.text, HasSubstr("2 of 4 elements are at a kink"));
}

/// tanh with a formula that forgets the square.
constinit const OpDef kWrongTanh = {
    .name = "wrong_tanh",
    .doc = "y = tanh(x)",
    .inputs = {"x"},
    .infer = [](Infer& infer) { return std::vector<Type>{infer.type(0)}; },
    .grad = [](Grad& g) { g.flow(0, g.dy() * (1.0 - g.y())); },
    .scalar = [](const Args& x) { return expr::tanh(x[0]); },
};

TEST(CheckGradients, AWrongFormulaIsNamedFirst) {
  const GradientReport report = check_gradients(mlp(kWrongTanh), recipe_with_loss("softmax_cross_entropy"), 2);
  EXPECT_FALSE(report.ok);
  EXPECT_THAT(report.text, HasSubstr("the first that is off: wrong_tanh at node \"hidden\""));
  int off = 0;
  for (const GradientRow& row : report.rows)
    if (row.what != "weight" and not row.ok) ++off;
  EXPECT_EQ(off, 1) << "the other nodes' formulas are right\n" << report.text;
  for (const GradientRow& row : report.rows)
    if (row.what == "weight") EXPECT_EQ(row.ok, row.where == "w2") << "the error reaches the weights before it\n" << report.text;
}

/// matmul whose formula lets nothing flow to b.
constinit const OpDef kForgetfulMatmul = {
    .name = "forgetful_matmul",
    .doc = "y = a b",
    .inputs = {"a", "b"},
    .infer =
        [](Infer& infer) {
          return std::vector<Type>{{DType::kF32, {infer.shape(0)[0], infer.shape(1)[1]}}};
        },
    .grad = [](Grad& g) { g.flow(0, op::matmul(g.dy(), g.x(1), {kTransB = true})); },
    .compute = [](Compute& c) { op::matmul.compute(c); },
};

TEST(CheckGradients, AMissingFlowIsNamed) {
  Graph graph;
  Builder b(graph);
  const Val x = b.input(Role::kInput, "x", {DType::kF32, {kAnyBatch, 4}});
  b.output("y", kForgetfulMatmul(op::matmul(x, weight(b, "w1", {4, 4})), weight(b, "w2", {4, 2})));
  const GradientReport report = check_gradients(graph, recipe_with_loss("mse"), 2);
  EXPECT_FALSE(report.ok);
  EXPECT_THAT(report.text, HasSubstr("the first that is off: forgetful_matmul"));
}

TEST(CheckGradients, HalfFloatsAreWidened) {
  for (const DType half : {DType::kF16, DType::kBF16}) {
    Graph graph;
    Builder b(graph);
    const Val x = b.input(Role::kInput, "x", {DType::kF32, {kAnyBatch, 6}});
    const Val w = b.input(Role::kWeight, "w", {half, {6, 3}}, random_direction({6, 3}, 3).cast(half));
    b.output("y", cast(op::matmul(cast(x, half), w), DType::kF32));
    const GradientReport report = check_gradients(graph, recipe_with_loss("mse"), 2);
    EXPECT_TRUE(report.ok) << report.text;
  }
}

TEST(CheckGradients, WhatIsNotFiniteIsLeftOut) {
  Graph graph;
  Builder b(graph);
  const Val x = b.input(Role::kInput, "x", {DType::kF32, {kAnyBatch, 6}});
  const Val roots = op::pow(op::matmul(x, weight(b, "w", {6, 3})), b.scalar(0.5));
  b.output("y", op::where(op::greater(roots, b.scalar(-1)), roots, b.scalar(0)));  // no root, no loss
  const GradientReport report = check_gradients(graph, recipe_with_loss("mse"), 4);
  EXPECT_THAT(report.text, HasSubstr("are not finite, and left out"));
  EXPECT_THAT(report.text, Not(HasSubstr("OFF  pow")));
}

TEST(CheckGradients, LogarithmsGetInputsAboveZero) {
  Graph graph;
  Builder b(graph);
  const Val x = b.input(Role::kInput, "x", {DType::kF32, {kAnyBatch, 6}});
  b.output("y", op::matmul(op::log(x), weight(b, "w", {6, 3})));
  const GradientReport report = check_gradients(graph, recipe_with_loss("mse"), 2);
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_THAT(report.text, Not(HasSubstr("finite")));
}

}  // namespace
}  // namespace hone
