// Which nodes the report keeps in f32, where it is known how far each of them moves the loss; and what it says of a real training.
#include "api/precision_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/ops/ops.h"
#include "frontend/recipe_toml.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Four products; "layer_K" is the K-th.
Graph model() {
  Graph graph;
  Builder builder(graph);
  Val x = builder.input(Role::kInput, "x", {DType::kF32, {Dim::symbol("N"), 4}});
  for (int i = 0; i < 4; ++i) {
    const Builder::Scope scope(builder, Loc{.node = "layer_" + std::to_string(i)}, Part::kForward);
    const std::vector<float> ones(16, 0.5F);
    x = op::tanh(op::matmul(x, builder.input(Role::kWeight, "w" + std::to_string(i), {DType::kF32, {4, 4}}, Tensor::of<float>({4, 4}, std::span<const float>(ones)))));
  }
  builder.output("y", x);
  return graph;
}

/// A loss of 1 in f32, to which each node adds its own share where it is narrow.
class Trainings {
 public:
  explicit Trainings(std::map<std::string, double> shares) : shares_(std::move(shares)) {}

  PrecisionReport report(double tolerance = 0.03, std::vector<std::string> keep = {}) {
    Recipe recipe = resolve(parse_recipe("[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\n[train]\nprecision = \"bf16\"", "recipe"));
    recipe.train.keep_f32 = std::move(keep);
    const LossesOf losses = [this](const Recipe& wanted, Start start) {
      ++count_;
      double loss = start == Start::kNudged ? 1 + spread : 1;
      if (wanted.train.precision != "f32")
        for (const auto& [node, share] : shares_)
          if (std::ranges::find(wanted.train.keep_f32, node) == wanted.train.keep_f32.end()) loss += share;
      return std::vector<double>(6, loss);
    };
    const PrecisionReport made = report_precision(model(), recipe, nullptr, tolerance, losses, [](const std::string&) {});
    text = to_text(made, recipe, tolerance);
    return made;
  }

  double spread = 0.001;
  std::string text;
  int count_ = 0;

 private:
  std::map<std::string, double> shares_;
};

TEST(PrecisionReport, KeepsNothingWhereNothingNeedsIt) {
  Trainings trainings({{"layer_0", 0.01}, {"layer_1", 0.01}});
  const PrecisionReport report = trainings.report();
  EXPECT_TRUE(report.holds);
  EXPECT_TRUE(report.chosen.kept.empty());
  EXPECT_NEAR(report.narrow.distance, 0.02, 1e-12);
  EXPECT_EQ(trainings.count_, 3) << "f32, f32 moved, bf16";
  EXPECT_THAT(trainings.text, HasSubstr("nothing needs f32"));
}

TEST(PrecisionReport, KeepsTheOneNodeThatMovesTheLoss) {
  Trainings trainings({{"layer_0", 0.01}, {"layer_2", 0.2}});
  const PrecisionReport report = trainings.report();
  EXPECT_TRUE(report.holds);
  EXPECT_THAT(report.chosen.kept, ElementsAre("layer_2"));
  EXPECT_EQ(report.singles.front().kept.front(), "layer_2");
  EXPECT_THAT(trainings.text, AllOf(HasSubstr("train.keep_f32 = [\"layer_2\"]"), HasSubstr("1.00 %")));
}

/// layer_1 is the better one by itself, but needs another; with both others it is not needed any more.
TEST(PrecisionReport, KeepsAsFewAsAreFound) {
  Trainings trainings({{"layer_0", 0.05}, {"layer_1", 0.02}, {"layer_3", 0.08}});
  const PrecisionReport report = trainings.report();
  EXPECT_TRUE(report.holds);
  EXPECT_THAT(report.chosen.kept, ElementsAre("layer_3", "layer_0"));
  EXPECT_NEAR(report.chosen.distance, 0.02, 1e-12);
}

TEST(PrecisionReport, LeavesWhatTheRecipeKeeps) {
  Trainings trainings({{"layer_0", 0.05}, {"layer_2", 0.2}});
  const PrecisionReport report = trainings.report(0.03, {"layer_0"});
  EXPECT_THAT(report.chosen.kept, ElementsAre("layer_2"));
  for (const PrecisionReport::Trial& single : report.singles) EXPECT_NE(single.kept.front(), "layer_0");
  EXPECT_THAT(trainings.text, HasSubstr("train.keep_f32 = [\"layer_0\", \"layer_2\"]"));
}

TEST(PrecisionReport, SaysWhereNoChoiceSuffices) {
  Trainings trainings({{"layer_0", 0.2}, {"layer_1", 0.2}, {"layer_2", 0.2}, {"layer_3", 0.2}});
  const PrecisionReport report = trainings.report();
  EXPECT_FALSE(report.holds);
  EXPECT_THAT(trainings.text, HasSubstr("no choice of nodes brings it within 3.00 %"));
}

TEST(PrecisionReport, SaysWhereTheTrainingItselfLeaps) {
  Trainings trainings({{"layer_0", 0.01}});
  trainings.spread = 0.5;
  (void)trainings.report();
  EXPECT_THAT(trainings.text, HasSubstr("this training leaps too much for any comparison"));
}

TEST(PrecisionReport, ALossThatIsNoNumberIsFarAway) {
  Trainings trainings({{"layer_1", std::nan("")}});
  const PrecisionReport report = trainings.report();
  EXPECT_THAT(report.chosen.kept, ElementsAre("layer_1"));
  EXPECT_THAT(trainings.text, HasSubstr("bf16 with no finite one"));
}

}  // namespace
}  // namespace hone::test
