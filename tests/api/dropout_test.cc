// Dropout by recipe, from outside: a model y = x * w whose weights tell, after one step, what was kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "api/hone.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

constexpr std::int64_t kWidth = 1000;
constexpr double kRate = 0.5;

/// With x = w = 1, target 0 and a mean square as loss, an element's gradient is 2 / elements where it was kept, times 1 / (1 - rate)^2; with this rate a step
/// takes a kept weight from 1 to 0, for a batch of one sample.
constexpr double kLearningRate = kWidth / 2.0 * (1 - kRate) * (1 - kRate);

Recipe recipe(int seed, const std::string& more = "") {
  return read_recipe_text("[model]\ndropout = { after = \"multiply\", rate = 0.5 }\n" + more + "[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\n[train]\nseed = " + std::to_string(seed) + "\n");
}

plan::Plan compiled(const Recipe& how) {
  const test::TempFolder folder;
  nn::Model model("scale");
  const nn::Value x = model.input("x", {kWidth});
  model.output("y", x * model.weight("w", {kWidth}, nn::Initializer::ones()));
  save_model(model, folder / "scale.onnx");
  return compile_model(folder / "scale.onnx", how, {.levels = {"native"}});
}

Tensor filled(std::int64_t samples, float value) {
  const std::vector<float> values(static_cast<std::size_t>(samples * kWidth), value);
  return Tensor::of<float>({samples, kWidth}, std::span<const float>(values));
}

class Trial {
 public:
  explicit Trial(const plan::Plan& plan) : session_(plan, {.device = "cpu", .threads = 1}) {}

  /// What a step from w = 1 makes of w. `first`: where these samples are in a larger batch.
  std::vector<double> step(std::int64_t samples = 1, std::optional<std::int64_t> first = std::nullopt) {
    const std::vector<float> ones(kWidth, 1.0F);
    session_.write("w", Tensor::of<float>({kWidth}, std::span<const float>(ones)));
    const Tensor x = filled(samples, 1), target = filled(samples, 0), rate = Tensor::scalar(kLearningRate), begin = Tensor::scalar(first.value_or(0));
    std::vector<std::pair<std::string, TensorView>> feeds = {{"x", x}, {"target", target}, {"learning_rate", rate}};
    if (first) feeds.emplace_back("first_sample", begin);
    session_.run(plan::kTrainStep, feeds);
    loss_ = session_.result_tensor(plan::kLossSum).at(0);
    const Tensor w = session_.read("w");
    std::vector<double> values;
    for (std::int64_t i = 0; i < w.element_count(); ++i) values.push_back(w.at(i));
    return values;
  }
  double loss_of(const char* entry) {
    const Tensor x = filled(3, 1), target = filled(3, 0);
    const std::pair<std::string, TensorView> feeds[] = {{"x", x}, {"target", target}};
    session_.run(entry, feeds);
    return session_.result_tensor(plan::kLossSum).at(0);
  }
  double loss() const { return loss_; }
  Session& session() { return session_; }

 private:
  Session session_;
  double loss_ = 0;
};

TEST(Dropout, DropsItsShareAndTheGradientSeesTheSameElements) {
  Trial run(compiled(recipe(1)));
  for (int step = 0; step < 5; ++step) {
    const std::vector<double> w = run.step();
    const auto kept = std::count_if(w.begin(), w.end(), [](double x) { return std::fabs(x) < 1e-4; }), dropped = std::count(w.begin(), w.end(), 1.0);
    EXPECT_EQ(kept + dropped, kWidth) << "an element is kept whole or not at all";
    EXPECT_NEAR(static_cast<double>(kept) / kWidth, 1 - kRate, 4 * std::sqrt(kRate * (1 - kRate) / kWidth));
    EXPECT_NEAR(run.loss(), static_cast<double>(kept) / (1 - kRate) / (1 - kRate), 1e-2) << "the forward pass kept what the gradient says";
  }
}

TEST(Dropout, IsAFunctionOfSeedAndStep) {
  const plan::Plan plan = compiled(recipe(1));
  Trial run(plan), same(plan), other(compiled(recipe(2)));
  const std::vector<double> first = run.step(), second = run.step();
  EXPECT_NE(first, second) << "another step";
  EXPECT_EQ(first, same.step());
  EXPECT_EQ(second, same.step());
  EXPECT_NE(first, other.step()) << "another seed";
  Trial changed(plan);
  changed.session().write(plan::kRandomSeed, Tensor::scalar(std::int64_t{2}));
  EXPECT_EQ(changed.step(), Trial(compiled(recipe(2))).step()) << "the seed may be changed when running";
}

/// Two replicas with a part of the batch each, and one with all of it: the mean of the steps of the two is the step of the one.
TEST(Dropout, DoesNotDependOnHowABatchIsSplit) {
  const plan::Plan plan = compiled(recipe(3));
  Trial run(plan), left(plan), right(plan), wrong(plan);
  for (int step = 0; step < 3; ++step) {
    const std::vector<double> whole = run.step(8), a = left.step(2, 0), b = right.step(6, 2), c = wrong.step(6, 0);
    double off = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_NEAR(whole[i], (2 * a[i] + 6 * b[i]) / 8, 1e-5);
      off += std::fabs(whole[i] - (2 * a[i] + 6 * c[i]) / 8);
    }
    EXPECT_GT(off, 10) << "the test would not see numbers that are drawn by the position in a part";
  }
}

TEST(Dropout, EvaluationAndPredictionKeepEverything) {
  Trial run(compiled(recipe(1)));
  EXPECT_EQ(run.loss_of(plan::kEvalStep), 3 * kWidth);
  const Tensor x = filled(2, 1);
  const std::pair<std::string, TensorView> feeds[] = {{"x", x}};
  run.session().run(plan::kPredict, feeds);
  const Tensor y = run.session().result_tensor("y");
  for (std::int64_t i = 0; i < y.element_count(); ++i) ASSERT_EQ(y.at(i), 1);
}

TEST(Dropout, PlansSayWhatTheyTake) {
  const plan::Plan plan = compiled(recipe(1));
  const plan::Entry& step = *plan.programs[0].find(plan::kTrainStep);
  const auto first = std::find_if(step.feeds.begin(), step.feeds.end(), [](const plan::Feed& feed) { return feed.kind == plan::Feed::Kind::kFirstSample; });
  ASSERT_NE(first, step.feeds.end());
  EXPECT_EQ(first->name, "first_sample");
  EXPECT_FALSE(is_data(*first));
  const test::TempFolder folder;
  plan::save(plan, folder / "scale.hone");
  EXPECT_EQ(Trial(plan::load(folder / "scale.hone")).step(), Trial(plan).step());
}

}  // namespace
}  // namespace hone
