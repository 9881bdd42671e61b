// What the recipe asks of a training step, compiled and run: accumulation, moving averages, weights of samples, metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "runtime/train/means.h"
#include "tests/api/training_run.h"

namespace hone::test {
namespace {

std::string accumulating(int batches, const std::string& optimizer, const std::string& loss = "") {
  return kLoss + loss + "[optimizer]\n" + optimizer + "[train]\ngradient_accumulation_steps = " + std::to_string(batches) + "\n";
}

TEST(Accumulation, SeveralBatchesAreOneLargeBatch) {
  const std::pair<std::string, std::string> cases[] = {{"kind = \"adam\"\nclip_norm = 0.1\n", "class_weights = [1, 2, 0.5]\nsample_weights = true\n"}, {"kind = \"muon\"\n", ""}};
  for (const auto& [optimizer, loss] : cases) {
    SCOPED_TRACE(optimizer + loss);
    TrainingRun parts(accumulating(3, optimizer, loss)), whole(accumulating(1, optimizer, loss));
    for (int update = 0; update < 3; ++update) {
      const std::int64_t first = update * 7;
      parts.step(plan::kAccumulateStep, {first, 2});
      parts.step(plan::kAccumulateStep, {first + 2, 1});
      parts.step(plan::kTrainStep, {first + 3, 4});
      whole.step(plan::kTrainStep, {first, 7});
    }
    const auto found = parts.state();
    for (const auto& [name, wanted] : whole.state())
      for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found.at(name)[i], wanted[i], 2e-5) << name << "[" << i << "]";
    for (const auto& [name, values] : found)
      if (name.ends_with(plan::kAccumulatedSuffix) or name == plan::kAccumulatedTargets) EXPECT_THAT(values, testing::Each(0)) << name;
  }
}

TEST(Accumulation, BatchesBeforeTheUpdateMoveNoWeight) {
  TrainingRun run(accumulating(4, "kind = \"adam\"\n"));
  const auto before = run.state();
  const double loss = run.step(plan::kAccumulateStep, {0, 4});
  for (const auto& [name, values] : run.state()) {
    const bool is_sum = name.ends_with(plan::kAccumulatedSuffix) or name == plan::kAccumulatedTargets;
    EXPECT_EQ(values != before.at(name), is_sum) << name;
  }
  EXPECT_EQ(run.state().at(plan::kAccumulatedTargets)[0], 4);
  EXPECT_EQ(run.step(plan::kAccumulateStep, {0, 4}), loss) << "the weights are the same, and so is the loss";
}

TEST(Accumulation, ALossThatIsNotFiniteChangesNothing) {
  TrainingRun run(accumulating(2, "kind = \"adam\"\n") + "ema_decay = 0.5\n");
  run.step(plan::kTrainStep, {0, 4});
  run.step(plan::kAccumulateStep, {4, 4});
  const auto before = run.state();
  Batch bad(8, 2);
  bad.x = Tensor::of<float>({2, kInputs}, std::vector<float>(2 * kInputs, std::numeric_limits<float>::quiet_NaN()));
  for (const char* entry : {plan::kAccumulateStep, plan::kTrainStep}) {
    EXPECT_TRUE(std::isnan(run.step(entry, bad)));
    EXPECT_EQ(run.state(), before) << entry;
  }
}

TEST(Accumulation, EveryBatchDrawsOtherNumbers) {
  TrainingRun run(accumulating(3, "kind = \"sgd\"\n"), 0.5);
  const double first = run.step(plan::kAccumulateStep, {0, 8}), second = run.step(plan::kAccumulateStep, {0, 8}), third = run.step(plan::kTrainStep, {0, 8});
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
  EXPECT_NE(first, third);
}

TEST(Accumulation, PlansWithoutItHaveNoEntryForIt) {
  EXPECT_EQ(compiled(accumulating(1, "kind = \"sgd\"\n")).programs.front().find(plan::kAccumulateStep), nullptr);
}

TEST(MovingAverage, FollowsTheWeightsFromTheFirstUpdateOn) {
  TrainingRun run(kLoss + "[optimizer]\nkind = \"sgd\"\n[train]\nema_decay = 0.75\n");
  std::map<std::string, std::vector<double>> expected;
  for (int i = 0; i < 3; ++i) {
    run.step(plan::kTrainStep, {i * 4, 4});
    const auto state = run.state();
    for (const plan::Persistent& weight : run.session().program().persistents) {
      if (not weight.trained) continue;
      std::vector<double>& average = expected.try_emplace(weight.name, state.at(weight.name)).first->second;
      for (std::size_t k = 0; k < average.size(); ++k) {
        average[k] = 0.75 * average[k] + 0.25 * state.at(weight.name)[k];
        EXPECT_NEAR(state.at(weight.name + plan::kEmaSuffix)[k], average[k], 1e-6) << weight.name;
      }
    }
  }
  EXPECT_EQ(expected.size(), 4U);
}

TEST(SampleWeights, AreFedWhereTheRecipeAsks) {
  const plan::Plan plan = compiled(kLoss + "sample_weights = true\n[optimizer]\nkind = \"sgd\"\n");
  const auto feed = [&](const char* entry) -> const plan::Feed* {
    for (const plan::Feed& each : plan.programs.front().find(entry)->feeds)
      if (each.kind == plan::Feed::Kind::kSampleWeight) return &each;
    return nullptr;
  };
  ASSERT_NE(feed(plan::kTrainStep), nullptr);
  EXPECT_EQ(feed(plan::kTrainStep)->name, "sample_weight");
  EXPECT_TRUE(is_data(*feed(plan::kTrainStep)));
  ASSERT_NE(feed(plan::kEvalStep), nullptr);
  EXPECT_EQ(feed(plan::kPredict), nullptr);
  EXPECT_EQ(find_feed(*plan.programs.front().find(plan::kTrainStep), "x")->name, "x") << "x still stands for the only input";
}

/// What an evaluation of `count` samples in batches of 4 says, each with a weight if there are weights.
double evaluated(Trainer& trainer, std::int64_t count, std::vector<float> weights = {}) {
  const Batch all(0, count);
  NamedTensors tensors = {{"x", all.x}, {"y", all.target}};
  if (not weights.empty()) tensors.emplace_back("sample_weight", Tensor::of<float>({count}, std::span<const float>(weights)));
  const NamedNumbers said = trainer.evaluate(Dataset::from_tensor_slices(std::move(tensors)).batch(4));
  return std::ranges::find(said, "loss", &NamedNumbers::value_type::first)->second;
}

TEST(SampleWeights, CountInAnEvaluationThatHasThem) {
  const std::string recipe = "[optimizer]\nkind = \"sgd\"\n";
  Trainer plain(compiled(kLoss + recipe), {.device = "cpu", .threads = 1}), trainer(compiled(kLoss + "sample_weights = true\n" + recipe), {.device = "cpu", .threads = 1});
  EXPECT_EQ(evaluated(trainer, 10), evaluated(plain, 10)) << "without weights all count the same";
  EXPECT_EQ(evaluated(trainer, 10, std::vector<float>(10, 1.0F)), evaluated(plain, 10));
  std::vector<float> first_six(10, 0.0F);
  std::fill_n(first_six.begin(), 6, 2.0F);
  EXPECT_NEAR(evaluated(trainer, 10, first_six), evaluated(plain, 6), 1e-6);
  expect_error(Code::kDataName, "training and evaluation do where the plan was compiled with loss.sample_weights = true", [&] { evaluated(plain, 10, first_six); });
}

TEST(ClassWeights, EnterPyTorchsEvaluationAndNotKerass) {
  for (const bool keras : {false, true}) {
    const std::string convention = keras ? "[train]\nconvention = \"keras\"\n" : "";
    TrainingRun weighted(kLoss + "class_weights = [1, 5, 0.5]\n[optimizer]\nkind = \"sgd\"\n" + convention), plain(kLoss + "[optimizer]\nkind = \"sgd\"\n" + convention);
    EXPECT_EQ(weighted.step(plan::kEvalStep, {0, 6}) == plain.step(plan::kEvalStep, {0, 6}), keras);
    EXPECT_NE(weighted.step(plan::kTrainStep, {0, 6}), plain.step(plan::kTrainStep, {0, 6}));
  }
}

TEST(Metrics, OfClassesAreCountedByCompiledPlans) {
  TrainingRun run(kLoss + "[optimizer]\nkind = \"sgd\"\n[metrics]\nlist = [\"accuracy\", \"top_2_accuracy\", \"precision\", \"recall\", \"f1\", \"perplexity\"]\n");
  SessionRunner runner(run.session());
  Means means(run.session().entry(plan::kEvalStep), "val_");
  for (const std::int64_t first : {0, 5, 10}) {
    run.step(plan::kEvalStep, {first, 5});
    means.add(runner);
  }
  std::map<std::string, double> values(means.values().begin(), means.values().end());
  EXPECT_NEAR(values.at("val_perplexity"), std::exp(values.at("val_loss")), 1e-5);
  EXPECT_GE(values.at("val_top_2_accuracy"), values.at("val_accuracy"));
  for (const char* name : {"val_accuracy", "val_precision", "val_recall", "val_f1"}) EXPECT_TRUE(values.at(name) >= 0 and values.at(name) <= 1) << name;
  means.reset();
  for (const auto& [name, value] : means.values())
    if (name == "val_loss" or name == "val_accuracy") EXPECT_TRUE(std::isnan(value)) << name;
}

TEST(Metrics, KeptSumsOfAnotherPlanAreRefused) {
  TrainingRun run(kLoss + "[optimizer]\nkind = \"sgd\"\n[metrics]\nlist = [\"accuracy\"]\n");
  Means means(run.session().entry(plan::kEvalStep), "");
  const std::vector<double> good = means.state();
  EXPECT_NO_THROW(means.restore(good));
  for (const std::vector<double>& bad : {std::vector<double>{}, {1, 2}, {1, 2, 3, 0, 0, 0}, {1, 2, 2, 0}, {1, 2, -1, 0, 0}, {1, 2, std::nan(""), 0, 0}, {1, 2, 2, 0, 0, 0}})
    expect_error(Code::kPlanMismatch, "do not belong to this plan", [&] { means.restore(bad); });
  EXPECT_EQ(means.state(), good);
}

}  // namespace
}  // namespace hone::test
