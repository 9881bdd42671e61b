// The training loop around a step that a test computes itself; what it says and writes.
#include "runtime/train/training_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "runtime/pipeline/dataset_batches.h"
#include "runtime/train/machine_load.h"
#include "runtime/train/predict.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::expect_error;
using test::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

plan::Entry entry_named(const std::string& name, bool learning_rate, bool norms = false) {
  plan::Entry entry;
  entry.name = name;
  entry.feeds = {{"x", plan::Feed::Kind::kModelInput, DType::kF32, {Dim::symbol("N")}, std::nullopt, std::nullopt},
                 {"labels", plan::Feed::Kind::kTarget, DType::kF32, {Dim::symbol("N")}, std::nullopt, std::nullopt}};
  if (learning_rate) entry.feeds.push_back({"learning_rate", plan::Feed::Kind::kLearningRate, DType::kF64, {}, std::nullopt, std::nullopt});
  for (const char* result : {plan::kLossSum, plan::kTargetCount, "metric:accuracy"}) entry.results.push_back({result, 0});
  if (norms) entry.results.push_back({"grad_norm:w", 0});
  return entry;
}

/// One weight w with the loss sum((w * x - y)^2) / count, trained by plain gradient descent; accuracy counts targets met within 0.5.
class LineFit : public StepRunner {
 public:
  void run(std::string_view entry, const NamedViews& feeds) override {
    calls.emplace_back(entry);
    const std::span<const float> x = find<float>(feeds, "x"), y = find<float>(feeds, "labels");
    sizes.push_back(static_cast<std::int64_t>(x.size()));
    float loss = 0, gradient = 0, met = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float error = w * x[i] - y[i];
      loss += error * error;
      gradient += 2 * error * x[i];
      met += std::abs(error) < 0.5f ? 1 : 0;
    }
    const auto count = static_cast<float>(x.size());
    results = {{plan::kLossSum, loss}, {plan::kTargetCount, count}, {"metric:accuracy", met}, {"grad_norm:w", std::abs(gradient / count)}, {"y", w}};
    if (entry.starts_with("eval") or not std::isfinite(loss)) return;  // predicated, as in a plan
    gathered += gradient;
    targets += count;
    if (entry == "accumulate_step") return;
    rates.push_back(find<double>(feeds, "learning_rate")[0]);
    w -= static_cast<float>(rates.back()) * std::exchange(gathered, 0.0f) / std::exchange(targets, 0.0f);
  }
  TensorView result(std::string_view name) override { return {DType::kF32, {}, &results.find(name)->second}; }

  NamedTensors weights() override { return {{"w", Tensor::scalar(w)}}; }
  void set_weights(const NamedTensors& weights) override { w = static_cast<float>(weights.at(0).second.at(0)); }

  float w = 0, gathered = 0, targets = 0;
  std::vector<std::string> calls;
  std::vector<std::int64_t> sizes;
  std::vector<double> rates;
  std::map<std::string, float, std::less<>> results;

 private:
  template <typename T>
  static std::span<const T> find(const NamedViews& feeds, std::string_view name) {
    for (const auto& [feed, view] : feeds)
      if (feed == name) return {static_cast<const T*>(view.data), static_cast<std::size_t>(view.shape.empty() ? 1 : view.shape[0])};
    return {};
  }
};

struct Fit {
  explicit Fit(std::vector<float> xs = {1, 2, 3, 4, 5}, std::vector<float> ys = {2, 4, 6, 8, 10}) : data(dataset(step, xs, ys)) {
    recipe.optimizer.learning_rate = 0.01;
    recipe.data.batch_size = 2;
    recipe.train.epochs = 2;
  }
  static BoundArrays dataset(const plan::Entry& entry, const std::vector<float>& xs, const std::vector<float>& ys) {
    std::vector<std::pair<std::string, Array>> arrays;
    const auto count = static_cast<std::int64_t>(xs.size());
    arrays.emplace_back("x", Array("x.npy", Tensor::of<float>({count}, std::span(xs))));
    arrays.emplace_back("y", Array("y.npy", Tensor::of<float>({count}, std::span(ys))));
    return {entry, std::move(arrays), {.flag = "--train", .batch_symbol = "N", .pre_batched = false, .scale = {}}};
  }
  TrainResult run() {
    Progress progress(mode, [this](std::string_view text) { said += text; });
    BatchReader batches(data, recipe.data.batch_size, {.shuffle = shuffle, .buffer = recipe.data.shuffle_buffer, .seed = recipe.train.seed});
    BatchReader validation(data, recipe.data.batch_size, {.shuffle = false});
    const plan::Entry* accumulates = recipe.train.gradient_accumulation_steps > 1 ? &accumulation : nullptr;
    return TrainingLoop(runner, {.step = &step, .step_norms = &norms, .accumulate = accumulates, .evaluate = &evaluation}, recipe, batches, validate ? &validation : nullptr, options, progress).run();
  }

  plan::Entry step = entry_named("train_step", true), norms = entry_named("train_step_norms", true, true), evaluation = entry_named("eval_step", false), accumulation = entry_named("accumulate_step", false);
  BoundArrays data;
  LineFit runner;
  Recipe recipe;
  TrainOptions options;
  ProgressMode mode = ProgressMode::kLines;
  bool validate = true, shuffle = true;
  std::string said;
};

TEST(TrainingLoop, GoesThroughEpochsAndEvaluatesAfterEach) {
  Fit fit;
  const TrainResult result = fit.run();
  EXPECT_EQ(result.steps, 6);
  EXPECT_EQ(result.epochs, 2);
  EXPECT_THAT(fit.runner.sizes, ElementsAre(2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2, 1));
  EXPECT_EQ(fit.runner.calls[2], "train_step");
  EXPECT_EQ(fit.runner.calls[3], "eval_step");
  ASSERT_EQ(result.values.size(), 4u);
  EXPECT_EQ(result.values[0].first, "loss");
  EXPECT_EQ(result.values[1].first, "accuracy");
  EXPECT_EQ(result.values[2].first, "val_loss");
  EXPECT_LT(result.values[2].second, result.values[0].second);
  EXPECT_THAT(fit.said, HasSubstr("Epoch 1/2\n3/3 [==============================] - 0s "));
  EXPECT_THAT(fit.said, HasSubstr("us/step - loss: "));
  EXPECT_THAT(fit.said, HasSubstr(" - val_loss: "));
}

TEST(TrainingLoop, MeansAreOverTargetsNotOverBatches) {
  Fit fit;
  fit.recipe.optimizer.learning_rate = 0;  // the loss stays (4 + 16 + 36 + 64 + 100) / 5
  fit.recipe.train.epochs = 1;
  EXPECT_NEAR(fit.run().values[0].second, 44, 1e-5);
}

TEST(TrainingLoop, SameSeedSameRun) {
  Fit a, b, c;
  c.recipe.train.seed = 1;
  EXPECT_EQ(a.run().values, b.run().values);
  c.run();
  EXPECT_NE(a.runner.w, c.runner.w);
}

TEST(TrainingLoop, StopsAfterStepsInTheMiddleOfAnEpoch) {
  Fit fit;
  fit.options.steps = 4;
  EXPECT_EQ(fit.run().steps, 4);
  EXPECT_THAT(fit.said, HasSubstr("Epoch 2/2\n1/1 ["));
}

TEST(TrainingLoop, FinishesTheStepWhenAskedToStop) {
  Fit fit;
  fit.options.stop_requested = [&] { return fit.runner.calls.size() == 4 + 1; };
  fit.validate = false;
  const TrainResult result = fit.run();
  EXPECT_EQ(result.end, TrainResult::End::kStopRequested);
  EXPECT_EQ(result.steps, 5);
}

TEST(TrainingLoop, LogsStepsAndEpochs) {
  const TempFolder folder;
  Fit fit;
  fit.recipe.train.epochs = 1;
  fit.options.log_every = 1;
  fit.options.log_grad_norms = true;
  fit.shuffle = false;
  fit.options.run_dir = folder / "a/run";
  fit.run();
  EXPECT_EQ(fit.runner.calls[0], "train_step_norms");
  const std::string lines = folder.read("a/run/metrics.jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4);
  EXPECT_THAT(lines, testing::StartsWith("{\"kind\":\"step\",\"epoch\":1,\"step\":1,\"loss\":10,\"accuracy\":0,\"learning_rate\":0.01,\"samples_per_s\":"));
  EXPECT_THAT(lines, HasSubstr("\"grad_norms\":{\"w\":10}}\n{\"kind\":\"step\",\"epoch\":1,\"step\":2,"));
  EXPECT_THAT(lines, HasSubstr("{\"kind\":\"epoch\",\"epoch\":1,\"loss\":"));
  EXPECT_THAT(folder.read("a/run/metrics.csv"), testing::StartsWith("epoch,loss,accuracy,val_loss,val_accuracy,learning_rate,seconds\n1,"));
  EXPECT_EQ(recipe_from_json(folder.read("a/run/recipe.json")).data.batch_size, 2);
  fit.options.log_every = 2;
  fit.run();  // a second run in the same folder replaces what the first one left
  const std::string again = folder.read("a/run/metrics.jsonl");
  EXPECT_EQ(std::count(again.begin(), again.end(), '\n'), 2);
  EXPECT_THAT(again, HasSubstr("\"step\":2,"));
}

TEST(TrainingLoop, StopsAtALossThatIsNotFinite) {
  Fit fit({1, 2, std::numeric_limits<float>::infinity(), 4}, {2, 4, 6, 8});
  fit.shuffle = false;
  try {
    fit.run();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 8);
    EXPECT_THAT(error.what(), HasSubstr("error[HN-0601]: the loss is inf at epoch 1, step 2"));
    EXPECT_THAT(error.what(), HasSubstr("row 0 of \"x\" in this batch is row 2 of x.npy"));
    EXPECT_THAT(error.what(), HasSubstr("those before this step"));
    EXPECT_THAT(error.what(), HasSubstr("it was 0.01"));
  }
  EXPECT_TRUE(std::isfinite(fit.runner.w));
}

TEST(TrainingLoop, FeedsTheScheduledLearningRate) {
  Fit fit;
  fit.recipe.schedule.kind = "linear";
  fit.recipe.schedule.warmup_steps = 2;
  fit.run();
  EXPECT_THAT(fit.runner.rates, ElementsAre(0.005, 0.01, 0.01, 0.0075, 0.005, 0.0025));
}

TEST(TrainingLoop, AccumulatesGroupsOfBatchesTheLastOneSmaller) {
  Fit fit, large;
  fit.shuffle = large.shuffle = fit.validate = large.validate = false;
  fit.recipe.train.gradient_accumulation_steps = 2;
  fit.recipe.train.epochs = large.recipe.train.epochs = 1;
  large.recipe.data.batch_size = 4;
  EXPECT_EQ(fit.run().steps, 2);
  EXPECT_THAT(fit.runner.calls, ElementsAre("accumulate_step", "train_step", "train_step"));
  large.run();
  EXPECT_FLOAT_EQ(fit.runner.w, large.runner.w);
  EXPECT_THAT(fit.said, HasSubstr("2/2 ["));
}

TEST(TrainingLoop, AccumulationMustKnowWhereAnEpochEnds) {
  Fit fit;
  fit.recipe.train.gradient_accumulation_steps = 2;
  const Dataset endless = Dataset::from_tensor_slices({{"x", Tensor::zeros(DType::kF32, {2})}, {"y", Tensor::zeros(DType::kF32, {2})}}).repeat().batch(2);
  DatasetBatches batches(fit.step, endless, {.flag = "the data", .batch_symbol = "N"});
  Progress progress(ProgressMode::kQuiet, [](std::string_view) {});
  expect_error(Code::kRecipeValue, "do not tell how many batches", [&] { TrainingLoop(fit.runner, {.step = &fit.step, .accumulate = &fit.accumulation}, fit.recipe, batches, nullptr, {}, progress); });
  fit.recipe.train.gradient_accumulation_steps = 1;
  fit.recipe.schedule.kind = "cosine";
  expect_error(Code::kRecipeValue, "must know how long the run is", [&] { TrainingLoop(fit.runner, {.step = &fit.step}, fit.recipe, batches, nullptr, {}, progress); });
  for (const char* kind : {"step", "exponential"}) {
    fit.recipe.schedule.kind = kind;
    expect_error(Code::kRecipeValue, "goes by epochs, and the data do not tell", [&] { TrainingLoop(fit.runner, {.step = &fit.step}, fit.recipe, batches, nullptr, {.steps = 9}, progress); });
    TrainingLoop(fit.runner, {.step = &fit.step}, fit.recipe, batches, nullptr, {.limit = 3}, progress);
  }
}

TEST(TrainingLoop, KnowsTheLengthOfACachedDataSetAfterAnEpoch) {
  Fit fit;
  fit.recipe.train.epochs = 2;
  const std::vector<float> xs = {1, 2, 3, 4, 5};
  const Dataset all = Dataset::from_tensor_slices({{"x", Tensor::of<float>({5}, std::span(xs))}, {"y", Tensor::of<float>({5}, std::span(xs))}});
  const auto slowly = [](Example batch) { return std::this_thread::sleep_for(std::chrono::milliseconds(60)), batch; };  // so that every step is drawn
  DatasetBatches batches(fit.step, all.filter([](const Example&) { return true; }).cache().batch(2).map(slowly), {.flag = "the data", .batch_symbol = "N"});
  Progress progress(ProgressMode::kBar, [&](std::string_view text) { fit.said += text; });
  EXPECT_EQ(TrainingLoop(fit.runner, {.step = &fit.step}, fit.recipe, batches, nullptr, {}, progress).run().steps, 6);
  const std::size_t second = fit.said.find("Epoch 2/2");
  EXPECT_THAT(fit.said.substr(0, second), HasSubstr("2/Unknown - "));
  EXPECT_THAT(fit.said.substr(second), testing::AllOf(HasSubstr("2/3 [=="), Not(HasSubstr("Unknown"))));
}

TEST(TrainingLoop, DropsTheLearningRateOnAPlateau) {
  Fit fit;
  fit.recipe.train.epochs = 4;
  fit.recipe.optimizer.learning_rate = 1e-7;  // next to nothing gets better
  fit.recipe.schedule.kind = "plateau";
  fit.recipe.schedule.monitor = "val_loss";
  fit.recipe.schedule.patience = 0;
  fit.run();
  EXPECT_THAT(fit.said, HasSubstr("val_loss is no longer getting better; the learning rate is multiplied by 0.1 now"));
}

TEST(TrainingLoop, StopsEarlyAndTakesTheBestWeights) {
  Fit fit;
  fit.recipe.train.epochs = 50;
  fit.recipe.data.batch_size = 5;
  fit.recipe.optimizer.learning_rate = 0.1;  // too large: it gets worse from the first epoch on
  fit.recipe.train.early_stopping_monitor = "loss";
  fit.recipe.train.early_stopping_patience = 3;
  fit.recipe.train.early_stopping_restore_best = true;
  const TrainResult result = fit.run();
  EXPECT_EQ(result.end, TrainResult::End::kNoProgress);
  EXPECT_EQ(result.epochs, 4);
  EXPECT_EQ(result.restored_epoch, 1);
  Fit one;
  one.recipe = fit.recipe;
  one.recipe.train.epochs = 1;
  one.run();
  EXPECT_EQ(fit.runner.w, one.runner.w);
}

TEST(TrainingLoop, TheBestEpochIsTheOneByWhatIsMonitored) {
  Fit fit;
  fit.recipe.train.epochs = 4;
  fit.recipe.optimizer.learning_rate = 1e-4;  // the loss gets better, and as many targets are met
  EXPECT_EQ(fit.run().best->epoch, 4);
  EXPECT_EQ(fit.run().best->name, "val_loss");
  fit.recipe.train.early_stopping_monitor = "val_accuracy";
  fit.recipe.train.early_stopping_patience = 9;
  fit.recipe.train.early_stopping_restore_best = true;
  const TrainResult result = fit.run();
  EXPECT_EQ(result.best->epoch, 1);
  EXPECT_EQ(result.best->name, "val_accuracy");
  EXPECT_EQ(result.best->epoch, result.restored_epoch);
}

TEST(TrainingLoop, WatchesOnlyWhatThereIs) {
  Fit fit;
  fit.validate = false;
  fit.recipe.train.early_stopping_monitor = "val_loss";
  expect_error(Code::kRecipeValue, "--valid", [&] { fit.run(); });
  fit.validate = true;
  fit.recipe.train.early_stopping_monitor = "val_f1";
  expect_error(Code::kRecipeValue, "there are \"loss\", \"accuracy\", \"val_loss\"", [&] { fit.run(); });
}

TEST(TrainingLoop, PlanWithoutNormsRefusesToLogThem) {
  Fit fit;
  fit.options.log_grad_norms = true;
  Progress progress(ProgressMode::kQuiet, [](std::string_view) {});
  expect_error(Code::kPlanEntry, "--log-grad-norms", [&] {
    BatchReader batches(fit.data, 2, {});
    TrainingLoop(fit.runner, {.step = &fit.step}, fit.recipe, batches, nullptr, fit.options, progress);
  });
}

TEST(Evaluate, PlanWithoutALossSaysHowToGetOne) {
  Fit fit;
  fit.evaluation.results = {{"y", 0}};
  expect_error(Code::kPlanEntry, "with a recipe", [&] {
    BatchReader batches(fit.data, 2, {});
    evaluate(fit.runner, fit.evaluation, batches);
  });
}

TEST(Predict, OutputWithoutASampleAxisIsRefused) {
  Fit fit;
  fit.evaluation.results = {{"y", 0}};
  fit.evaluation.buffers.resize(1);
  expect_error(Code::kPlanMismatch, "its first axis is not theirs", [&] { predict(fit.runner, fit.evaluation, fit.data, 2); });
}

/// Of [steps, samples] as many samples as steps would pass for rows.
TEST(Predict, AnAxisThatNoBatchChangesIsNotThatOfTheSamples) {
  plan::Entry entry;
  entry.buffers.resize(1);
  entry.results = {{"y", 0}};
  const std::vector<std::int64_t> seen = {4, 4};
  const auto require = [&](const Shape& declared, bool is_fixed) {
    entry.buffers[0].shape = declared;
    require_sample_axis(entry, "y", seen, 4, is_fixed, "call it");
  };
  expect_error(Code::kPlanMismatch, "the output \"y\", [4,N], is [4,4] for 4 samples: its first axis is not theirs", [&] { require({4, Dim::symbol("N")}, false); });
  expect_error(Code::kPlanMismatch, "call it", [&] { require({4, 4}, false); });
  EXPECT_NO_THROW(require({Dim::symbol("N"), 4}, false));
  EXPECT_NO_THROW(require({4, 4}, true));
}

TEST(Schedule, FollowsItsFormula) {
  Recipe recipe;
  recipe.optimizer.learning_rate = 1;
  const RunLength run = {.steps = 10, .steps_per_epoch = 2};
  const auto at = [&](const char* kind, std::int64_t step) {
    recipe.schedule.kind = kind;
    return learning_rate_at(recipe, step, run);
  };
  EXPECT_EQ(at("constant", 9), 1);
  EXPECT_NEAR(at("linear", 5), 0.5, 1e-12);
  EXPECT_NEAR(at("cosine", 5), 0.5, 1e-12);
  EXPECT_NEAR(at("cosine", 20), 0, 1e-12);
  EXPECT_NEAR(at("exponential", 3), std::pow(0.1, 1.5), 1e-12);
  EXPECT_NEAR(at("step", 3), 0.1, 1e-12);
  recipe.schedule.final_fraction = 0.2;
  recipe.schedule.power = 2;
  EXPECT_NEAR(at("polynomial", 5), 0.2 + 0.8 * 0.25, 1e-12);
  EXPECT_EQ(at("step", 9), 0.2);
  recipe.schedule.total_steps = 5;
  EXPECT_NEAR(at("linear", 7), 0.2, 1e-12);
}

/// Ten epochs of two steps and then some of five: as after ten epochs.
TEST(Schedule, GoesOnByEpochsWhereTheyBecomeLonger) {
  Recipe recipe;
  recipe.optimizer.learning_rate = 1;
  recipe.schedule.kind = "step";
  const RunLength longer = {.steps = 60, .steps_per_epoch = 5, .more_before = 10 * 5 - 20};
  EXPECT_NEAR(learning_rate_at(recipe, 20, longer), 1e-10, 1e-20);
  EXPECT_NEAR(learning_rate_at(recipe, 24, longer), 1e-10, 1e-20);
  EXPECT_NEAR(learning_rate_at(recipe, 25, longer), 1e-11, 1e-21);
  recipe.schedule.every_steps = 10;
  EXPECT_NEAR(learning_rate_at(recipe, 24, longer), 1e-2, 1e-12) << "steps are steps";
}

TEST(MachineLoad, PeakMemoryGrowsWithWhatIsUsed) {
  constexpr std::uint64_t kMore = 64 << 20;
  const std::uint64_t before = peak_memory_bytes();
  EXPECT_GT(before, 1 << 20);
  {
    const std::vector<char> used(before + kMore, 1);
    EXPECT_EQ(used.back(), 1);
  }
  EXPECT_GE(peak_memory_bytes(), before + kMore);
}

}  // namespace
}  // namespace hone
