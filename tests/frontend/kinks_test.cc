// Gradients where a function has a corner, or seems to: networks are there more often than chance would have it, since a convolution over black gives exactly 0.
#include <gmock/gmock.h>

#include "ir/kernel/interpret.h"
#include "passes/gradients_of.h"
#include "tests/frontend/test_model.h"
#include "tests/support/tensor_values.h"

namespace hone::test {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

/// dy / dx of a node, element by element.
std::vector<double> slopes(const TestModel& model, std::vector<float> x) {
  const auto count = static_cast<std::int64_t>(x.size());
  return elements(interpret(build_gradient_function(model.import().graph, {}, {.of = "y", .wrt = {"x"}}), {{"x", f32({count}, std::move(x))}})["x_grad"]);
}

/// What PyTorch 2.15 says.
TEST(Kinks, OfActivationsHaveTheSlopesOfPyTorch) {
  EXPECT_THAT(slopes(TestModel::of_node("Elu", {2}), {0, 1}), ElementsAre(1, 1)) << "no corner";
  EXPECT_THAT(slopes(TestModel::of_node("Selu", {1}), {0}), Pointwise(FloatNear(1e-6F), {1.7580993408473766}));
  EXPECT_THAT(slopes(TestModel::of_node("Relu", {1}), {0}), ElementsAre(0));
  EXPECT_THAT(slopes(TestModel::of_node("LeakyRelu", {1}), {0}), Pointwise(FloatNear(1e-6F), {0.01}));
  EXPECT_THAT(slopes(TestModel::of_node("HardSwish", {2}), {-3, 3}), Pointwise(FloatNear(1e-6F), {0.0, 1.0}));
  for (const double alpha : {1.0, 0.5, 2.0}) {
    TestModel celu = TestModel::of_node("Celu", {1});
    celu.last().set("alpha", alpha);
    EXPECT_THAT(slopes(celu, {0}), ElementsAre(1)) << alpha;
  }
  TestModel hard = TestModel::of_node("HardSigmoid", {3});
  hard.last().set("alpha", 0.25).set("beta", 0.5);
  EXPECT_THAT(slopes(hard, {-2, 0, 2}), ElementsAre(0, 0.25, 0));
}

TEST(Kinks, BoundsHaveNoSlope) {
  const Tensor low = f32({}, {-1}), high = f32({}, {2});
  EXPECT_THAT(slopes(TestModel::of_node("Clip", {5}, {low, high}), {-2, -1, 0, 2, 3}), ElementsAre(0, 0, 1, 0, 0));
  EXPECT_THAT(slopes(TestModel::of_node("Clip", {3}, {low}), {-2, -1, 0}), ElementsAre(0, 0, 1));
  EXPECT_THAT(slopes(TestModel::of_node("Clip", {3}, {Tensor(), high}), {0, 2, 3}), ElementsAre(1, 0, 0));
  EXPECT_THAT(slopes(TestModel::of_node("Max", {3}, {low}), {-2, -1, 0}), ElementsAre(0, 0, 1)) << "as PyTorch exports clamp(min=-1)";
  EXPECT_THAT(slopes(TestModel::of_node("Min", {3}, {f32({1}, {2})}), {0, 2, 3}), ElementsAre(1, 0, 0));
  EXPECT_THAT(slopes(TestModel::of_node("Max", {2}, {f32({2}, {0, 1})}), {0, 1}), ElementsAre(0.5, 0.5)) << "of two tensors each has half";
}

TEST(Kinks, BoundsOnOneSideKeepNumbers) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor y = TestModel::of_node("Clip", {4}, {f32({}, {-1})}).y(f32({4}, {-infinity, -2, 5, infinity}));
  EXPECT_THAT(values_of(y), ElementsAre(-1, -1, 5, infinity));
  const Tensor whole = i64({}, {7});
  TestModel model;
  model.input("x", {2}, DType::kI64).initializer("low", whole).output("y");
  model.node("Clip", {"x", "low"}, {"y"});
  EXPECT_THAT(values_of(model.y(i64({2}, {std::numeric_limits<std::int64_t>::max(), 1}))), ElementsAre(static_cast<double>(std::numeric_limits<std::int64_t>::max()), 7));
}

}  // namespace
}  // namespace hone::test
