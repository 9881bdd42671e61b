// Which nodes the report keeps in f32, where it is known how far each of them moves the loss; and what it says of a real training.
#include "api/precision_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/ops/ops.h"
#include "frontend/recipe_toml.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Products one after the other; "layer_K" is the K-th.
Graph model(int products) {
  Graph graph;
  Builder builder(graph);
  Val x = builder.input(Role::kInput, "x", {DType::kF32, {Dim::symbol("N"), 4}});
  for (int i = 0; i < products; ++i) {
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
    const LossesOf losses = [this](const Recipe& wanted, double moved) {
      ++count_;
      double loss = moved == 0 ? 1 : wanted.train.precision != "f32" or moved < 0x1p-20 ? 1 + spread : 1 + rounded_spread;
      const auto known = together.find({wanted.train.keep_f32.begin(), wanted.train.keep_f32.end()});
      if (wanted.train.precision != "f32" and known != together.end()) loss += known->second;
      else if (wanted.train.precision != "f32")
        for (const auto& [node, share] : shares_)
          if (std::ranges::find(wanted.train.keep_f32, node) == wanted.train.keep_f32.end()) loss += share;
      return std::vector<double>(6, loss);
    };
    const PrecisionReport made = report_precision(model(products), recipe, nullptr, tolerance, losses, [](const std::string&) {});
    text = to_text(made, recipe, tolerance);
    return made;
  }

  int products = 4;
  double spread = 0.001, rounded_spread = 0.01;
  std::map<std::set<std::string>, double> together;  ///< what a set of kept nodes leaves, where that is no sum of shares
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

TEST(PrecisionReport, SaysWhatEachKeptNodeBrings) {
  Trainings trainings({{"layer_0", 0.05}, {"layer_1", 0.02}, {"layer_3", 0.08}});
  const PrecisionReport report = trainings.report();
  ASSERT_EQ(report.without.size(), 2U);
  EXPECT_NEAR(report.without[0].distance, 0.10, 1e-12);
  EXPECT_NEAR(report.without[1].distance, 0.07, 1e-12);
  EXPECT_NEAR(report.chosen_moved, 0.021, 1e-12);
  EXPECT_THAT(trainings.text, AllOf(HasSubstr("needs f32: \"layer_3\", \"layer_0\", which brings it to 2.00 % (2.10 % with weights moved in their last place)"), HasSubstr("without \"layer_3\""),
                                    HasSubstr("train.keep_f32 = [\"layer_3\", \"layer_0\"]")));
}

/// layer_0 is the best by itself, and in none of the sets that suffice: what it is good for is not known before two are tried together.
TEST(PrecisionReport, GoesOnFromSeveralOfTheBest) {
  Trainings trainings({{"layer_0", 0.2}, {"layer_1", 0.1}, {"layer_2", 0.05}, {"layer_3", 0.05}});
  trainings.together = {{{"layer_1", "layer_2"}, 0.02}};
  const PrecisionReport report = trainings.report();
  EXPECT_TRUE(report.holds);
  EXPECT_EQ(report.singles.front().kept.front(), "layer_0");
  EXPECT_THAT(report.chosen.kept, ElementsAre("layer_1", "layer_2"));
}

TEST(PrecisionReport, TriesThreeWhereNoTwoSuffice) {
  Trainings trainings({{"layer_0", 0.2}, {"layer_1", 0.2}, {"layer_2", 0.2}, {"layer_3", 0.02}});
  const PrecisionReport report = trainings.report();
  EXPECT_TRUE(report.holds);
  EXPECT_THAT(report.chosen.kept, ElementsAre("layer_0", "layer_1", "layer_2"));
  EXPECT_EQ(report.sets.size(), 2U);
}

TEST(PrecisionReport, TrainsNoMoreOftenThanItSays) {
  std::map<std::string, double> shares;
  for (int i = 0; i < 30; ++i) shares["layer_" + std::to_string(i)] = 0.1;
  Trainings trainings(shares);
  trainings.products = 30;
  const PrecisionReport report = trainings.report();
  EXPECT_FALSE(report.holds);
  EXPECT_LE(trainings.count_, 77 + 3 * 30);
  EXPECT_EQ(report.tried + 4, static_cast<std::size_t>(trainings.count_)) << "choices of nodes, and f32, f32 moved twice, bf16";
  EXPECT_EQ(report.chosen.kept.size(), 29U) << "the closest";
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
  EXPECT_THAT(trainings.text, AllOf(HasSubstr("no choice of nodes brings it within 3.00 %, of 13 that were tried; the closest: \"layer_0\", \"layer_1\", \"layer_2\", 20.00 %"),
                                    HasSubstr("Only f32 altogether is within it (train.precision = \"f32\")")));
}

TEST(PrecisionReport, SaysWhereTheTrainingItselfLeaps) {
  Trainings trainings({{"layer_0", 0.01}});
  trainings.spread = 0.5;
  (void)trainings.report();
  EXPECT_THAT(trainings.text, HasSubstr("this training leaps too much for any comparison"));
}

/// Weights that are rounded once, at the beginning, move f32's own loss as far.
TEST(PrecisionReport, SaysWhereAnyRoundingMovesTheLossAsFar) {
  Trainings trainings({{"layer_0", 0.2}});
  (void)trainings.report();
  EXPECT_THAT(trainings.text, Not(HasSubstr("in part luck")));
  trainings.rounded_spread = 0.08;
  (void)trainings.report();
  EXPECT_THAT(trainings.text, HasSubstr("f32 itself ends 8.00 % away when its weights are moved once by a quarter of bf16's last place: at this step any rounding moves the loss as far, and which nodes help is in part luck"));
}

TEST(PrecisionReport, ALossThatIsNoNumberIsFarAway) {
  Trainings trainings({{"layer_1", std::nan("")}});
  const PrecisionReport report = trainings.report();
  EXPECT_THAT(report.chosen.kept, ElementsAre("layer_1"));
  EXPECT_THAT(trainings.text, HasSubstr("bf16 with no finite one"));
}

}  // namespace
}  // namespace hone::test
