// What fit() tells, writes and leaves beside learning, and how a run ends before its time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "base/files.h"
#include "tests/api/small_fit.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::one_thread;
using test::plan_with_dropout;
using test::samples;
using test::shuffled;
using test::weights;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// What it says on standard error.
std::string said_by(const std::function<void()>& run) {
  testing::internal::CaptureStderr();
  run();
  return testing::internal::GetCapturedStderr();
}

TEST(Fit, TellsWhatHoneRunTells) {
  const test::TempFolder folder;
  Trainer trainer(plan_with_dropout(), one_thread());
  const std::string said = said_by([&] { trainer.fit(shuffled(), {.valid = samples().batch(16), .epochs = 2, .run_dir = folder / "run"}); });
  EXPECT_THAT(said, ContainsRegex("^Model: model.onnx\n_+\nWeight +Shape +Params +Trained"));
  EXPECT_THAT(said, AllOf(HasSubstr("Planned memory at batch 8: "), HasSubstr("Epoch 2/2\n5/5 [=====")));
  EXPECT_THAT(said, ContainsRegex("Speed: [0-9.]+ steps/s, [0-9,]+ samples/s\nBest epoch: [12], val_loss: .*\nMemory: .* planned .*\nFiles: checkpoints, curves.svg, .* in "));
  EXPECT_EQ(said_by([&] { trainer.fit(shuffled(), {.epochs = 1, .quiet = true}); }), "");
  const Dataset of_others = samples(2).interleave([](const Example&) { return samples(8).batch(8); }, 2);
  const std::string without = said_by([&] { trainer.fit(of_others, {.epochs = 1}); });
  EXPECT_THAT(without, AllOf(HasSubstr("Model: model.onnx"), Not(HasSubstr("at batch")))) << "nobody knows how large its batches are";
}

/// A word of two decides, wherever it stands.
TEST(Fit, SequencesOfAnyLengthAreFedInPaddedBatches) {
  nn::Model model("sentences");
  model.output("logits", nn::dense(nn::max(nn::embedding(model.input("x", {Dim::symbol("T")}, DType::kI64), 12, 8), {1}, false), 2));
  const plan::Plan plan = compile_model(model, read_recipe_text(test::kLoss + "[optimizer]\nkind = \"adam\"\nlearning_rate = 0.05\n[metrics]\nlist = [\"accuracy\"]\n"), {.levels = {"native"}});
  const Dataset sentences = Dataset::from_tensor_slices({{"number", Tensor::of<std::int64_t>({4}, std::vector<std::int64_t>{0, 1, 2, 3})}}).repeat(16).map([](Example example, RandomWords& words) -> Example {
    const auto number = static_cast<std::size_t>(example[0].second.int_at(0));
    std::vector<std::int64_t> ids(2 + words.below(6));
    for (std::int64_t& id : ids) id = 3 + static_cast<std::int64_t>(words.below(9));
    const std::int64_t wanted = number % 2 == 0 ? 1 : 2;
    ids[words.below(ids.size())] = wanted;
    return {{"x", Tensor::of<std::int64_t>({static_cast<std::int64_t>(ids.size())}, std::span<const std::int64_t>(ids))}, {"y", Tensor::scalar(wanted - 1)}};
  });
  Trainer trainer(plan, one_thread());
  const TrainResult result = trainer.fit(sentences.padded_batch(8), {.valid = sentences.padded_batch(16), .epochs = 20, .quiet = true});
  EXPECT_GT(value_of(result.values, "val_accuracy"), 0.95);
}

/// Whole batches or not, examples or batches: fit knows how many there are, and does not ask for one more.
TEST(Fit, ACacheIsFullAfterTheFirstEpoch) {
  const test::TempFolder folder;
  Trainer trainer(plan_with_dropout(), one_thread());
  for (const std::int64_t count : {40, 41}) {
    int calls = 0;
    const Dataset counted = samples(count).map([&](Example example) { return ++calls, example; });
    const auto calls_of_three_epochs = [&](const Dataset& data) {
      calls = 0;
      trainer.fit(data, {.epochs = 3, .quiet = true});
      return calls;
    };
    EXPECT_EQ(calls_of_three_epochs(counted.cache().batch(8)), count);
    EXPECT_EQ(calls_of_three_epochs(counted.batch(8).cache()), count);
    EXPECT_EQ(calls_of_three_epochs(counted.cache().shuffle(10).batch(8).prefetch()), count);
    const std::string path = folder / fmt::format("{}.cache", count);
    EXPECT_EQ(calls_of_three_epochs(counted.cache(path).batch(8)), count);
    EXPECT_EQ(calls_of_three_epochs(counted.cache(path).batch(8)), 0) << "the file is there";
  }
}

TEST(Fit, ReplicasPlanForTheirPartOfABatch) {
  Trainer trainer(plan_with_dropout(), one_thread(), {.local = 2, .shard_optimizer = true});
  EXPECT_THAT(said_by([&] { trainer.fit(shuffled(), {.epochs = 1}); }), AllOf(HasSubstr("Planned memory at batch 4: "), HasSubstr("of it on each of 2 replicas")));
}

TEST(Fit, SaysOnceWhatWasDoneWithTheData) {
  Trainer trainer(plan_with_dropout(), one_thread());
  const Dataset nested = samples().map([](Example example) -> Example { return {{"x", example[0].second.reshaped({1, test::kInputs})}, {"y", example[1].second}}; });
  const std::string said = said_by([&] { trainer.fit(nested.batch(8), {.valid = samples().batch(8), .epochs = 2}); });
  const std::string note = "note: x of the data set is f32[8,1,5]; its rows are read as f32[5] for \"x\"\n";
  ASSERT_THAT(said, HasSubstr(note));
  EXPECT_THAT(said.substr(said.find(note) + 1), Not(HasSubstr("note: ")));
}

TEST(Fit, WritesGradientNormsAndHistograms) {
  const test::TempFolder folder;
  Trainer trainer(plan_with_dropout(), one_thread());
  const auto files = [&](const std::string& run) {
    std::string all = folder.read(run + "/metrics.jsonl");
    for (const std::string& name : list_folder(folder / run + "/train")) all += folder.read(run + "/train/" + name);
    return all;
  };
  trainer.fit(shuffled(), {.epochs = 1, .log_every = 1, .log_grad_norms = true, .log_histograms = true, .run_dir = folder / "more", .quiet = true});
  trainer.fit(shuffled(), {.epochs = 1, .log_every = 1, .run_dir = folder / "less", .quiet = true});
  EXPECT_THAT(files("more"), AllOf(ContainsRegex("\"grad_norms\":\\{\"dense/kernel\":[0-9]"), HasSubstr("weights/dense/kernel")));
  EXPECT_THAT(files("less"), AllOf(Not(HasSubstr("grad_norms")), Not(HasSubstr("weights/dense"))));
}

TEST(Fit, ValidatesOnSoManyBatches) {
  std::int64_t made = 0;
  const Dataset counted = samples().map([&](Example example) { return ++made, example; });
  Trainer trainer(plan_with_dropout(), one_thread());
  trainer.fit(shuffled(), {.valid = counted.batch(8), .epochs = 3, .valid_limit = 2, .quiet = true});
  EXPECT_EQ(made, 3 * 2 * 8);
}

/// The model's weights, which replicas do not hold in parts.
std::map<std::string, std::vector<double>> learned(Trainer& trainer) {
  std::map<std::string, std::vector<double>> all;
  for (const auto& [name, tensor] : SessionRunner(trainer.session()).weights())
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) all[name].push_back(tensor.at(i));
  return all;
}

TEST(Fit, ADryRunLeavesEverythingAsItWas) {
  const test::TempFolder folder;
  for (const int replicas : {1, 2}) {
    Trainer dry(plan_with_dropout(), one_thread(), {.local = replicas, .shard_optimizer = replicas > 1}), plain(plan_with_dropout(), one_thread(), {.local = replicas, .shard_optimizer = replicas > 1});
    for (Trainer* trainer : {&dry, &plain}) trainer->fit(shuffled(), {.epochs = 1, .quiet = true});
    const auto before = learned(dry);
    std::int64_t steps = 0;
    const std::string said = said_by([&] {
      EXPECT_EQ(dry.fit(shuffled(), {.run_dir = folder / "a/run", .dry_run = true, .on_step = [&](const StepRecord&) { ++steps; }}).steps, 1);
    });
    EXPECT_EQ(steps, 1);
    EXPECT_THAT(said, AllOf(HasSubstr("val_loss"), HasSubstr("Dry run: one step, one evaluation, one save and one resume went well")));
    EXPECT_THAT(folder.names(), IsEmpty());
    EXPECT_EQ(learned(dry), before);
    for (Trainer* trainer : {&dry, &plain}) trainer->fit(shuffled(), {.epochs = 1, .quiet = true});
    EXPECT_EQ(learned(dry), learned(plain)) << "with the optimizer's states as they were";
  }
  Trainer trainer(plan_with_dropout(), one_thread());
  test::expect_error(Code::kUsage, "nothing to resume", [&] { trainer.fit(shuffled(), {.run_dir = folder / "run", .resume = true, .dry_run = true}); });
  test::expect_error(Code::kUsage, "valid_limit is about the batches of valid", [&] { trainer.fit(shuffled(), {.valid_limit = 2}); });
}

TEST(Fit, OptionsOfReplicasThatMakeNoSenseAreRefused) {
  test::expect_error(Code::kUsage, "2 devices are given to 1 replica", [] { Trainer(plan_with_dropout(), one_thread(), {.devices = {"cpu", "cpu"}}); });
  test::expect_error(Code::kUsage, "1 replica and -3 shards", [] { Trainer(plan_with_dropout(), one_thread(), {.shards = -3}); });
  test::expect_error(Code::kUsage, "collect -3 shards", [] { Session(plan_with_dropout(), {.device = "cpu", .shards = -3}); });
}

TEST(Fit, ACallbackEndsTheRunAfterAnEpoch) {
  const std::string recipe = test::kLoss + "[optimizer]\nkind = \"adam\"\n[train]\nepochs = 9\nema_decay = 0.9\n";
  const plan::Plan plan = test::compiled(recipe);
  Trainer ended(plan, one_thread()), whole(plan, one_thread());
  const TrainResult result = ended.fit(shuffled(), {.valid = samples().batch(8), .quiet = true, .on_epoch = [&](const EpochRecord& epoch) {
                                                      if (epoch.epoch == 2) ended.end_training();
                                                    }});
  EXPECT_EQ(result.end, TrainResult::End::kEnded);
  EXPECT_EQ(result.steps, 10);
  whole.fit(shuffled(), {.epochs = 2, .quiet = true});
  EXPECT_EQ(weights(ended), weights(whole)) << "moving averages included";
  EXPECT_EQ(ended.fit(shuffled(), {.epochs = 1, .quiet = true}).end, TrainResult::End::kDone);
}

/// What was trained of the epoch is validated and judged, and a run that is gone on with trains what is left.
TEST(Fit, ACallbackEndsTheRunInTheMiddleOfAnEpoch) {
  const test::TempFolder folder;
  Trainer trainer(plan_with_dropout(), one_thread());
  trainer.recipe().train.early_stopping_monitor = "loss";
  trainer.recipe().train.early_stopping_restore_best = true;
  std::int64_t epochs = 0;
  const TrainResult result = trainer.fit(shuffled(), {.valid = samples().batch(8),
                                                      .run_dir = folder / "run",
                                                      .quiet = true,
                                                      .on_step = [&](const StepRecord& step) {
                                                        if (step.step == 7) trainer.end_training();
                                                      },
                                                      .on_epoch = [&](const EpochRecord&) { ++epochs; }});
  EXPECT_EQ(result.end, TrainResult::End::kEnded);
  EXPECT_EQ(result.steps, 7);
  EXPECT_EQ(epochs, 2);
  EXPECT_EQ(result.restored_epoch, 2) << "its loss so far is lower";
  EXPECT_EQ(result.best->epoch, 2);
  EXPECT_EQ(result.values.back().first, "val_accuracy");
  Trainer rest(plan_with_dropout(), one_thread()), whole(plan_with_dropout(), one_thread());
  EXPECT_EQ(rest.fit(shuffled(), {.run_dir = folder / "run", .resume = true, .quiet = true}).earlier_steps, 7);
  whole.fit(shuffled(), {.quiet = true});
  EXPECT_EQ(weights(rest), weights(whole));
}

/// Five batches, of which nobody knows before.
Dataset filtered() {
  return samples().filter([](const Example&) { return true; }).batch(8);
}

/// A run that ends with an epoch of unknown length has had all of that epoch.
TEST(Fit, TheDataTellWhetherALastEpochWasWhole) {
  const test::TempFolder folder;
  const auto fit = [&](const Dataset& data, const std::string& run, std::int64_t steps) {
    Trainer trainer(plan_with_dropout(), one_thread());
    trainer.recipe().train.early_stopping_monitor = "val_loss";
    trainer.recipe().train.early_stopping_restore_best = true;
    std::vector<std::int64_t> epochs;
    const TrainResult result = trainer.fit(data, {.valid = samples().batch(8), .steps = steps, .run_dir = folder / run, .resume = steps > 10, .quiet = true, .on_epoch = [&](const EpochRecord& epoch) { epochs.push_back(epoch.epoch); }});
    return std::tuple(result.best->epoch, result.best->value, result.restored_epoch, epochs, weights(trainer));
  };
  for (const std::int64_t steps : {10, 15}) EXPECT_EQ(fit(filtered(), "filtered", steps), fit(samples().batch(8), "known", steps)) << steps;
}

/// The run has made all of its steps when it is stopped, within an epoch, and has not validated them. Gone on with, it does so; ended, it does nothing more.
TEST(Fit, WhatWasNotValidatedIsWhenTheRunGoesOn) {
  const test::TempFolder folder;
  const auto fit = [&](bool stopped) {
    Trainer trainer(plan_with_dropout(), one_thread());
    std::int64_t made = 0, epochs = 0;
    const TrainResult result = trainer.fit(shuffled(), {.valid = samples().batch(8),
                                                        .steps = 7,
                                                        .run_dir = folder / "run",
                                                        .resume = not stopped,
                                                        .quiet = true,
                                                        .stop_requested = [&] { return stopped and made == 7; },
                                                        .on_step = [&](const StepRecord& step) { made = step.step; },
                                                        .on_epoch = [&](const EpochRecord&) { ++epochs; }});
    EXPECT_EQ(result.end, stopped ? TrainResult::End::kStopRequested : TrainResult::End::kDone);
    EXPECT_EQ(result.epochs, 2);
    return std::pair(epochs, result.history.size());
  };
  EXPECT_EQ(fit(true), std::pair(std::int64_t{1}, std::size_t{1}));
  EXPECT_EQ(fit(false), std::pair(std::int64_t{1}, std::size_t{2}));
  EXPECT_EQ(fit(false), std::pair(std::int64_t{0}, std::size_t{2})) << "it is all done";
}

/// As Keras's LearningRateScheduler and PyTorch's LambdaLR do it: what a schedule of the recipe's would have given gives the same weights, also where a run goes on.
TEST(Fit, AFunctionGivesTheLearningRate) {
  const test::TempFolder folder;
  static const plan::Plan plan = test::compiled(test::kLoss + "[optimizer]\nkind = \"adam\"\n[schedule]\nkind = \"exponential\"\nfactor = 0.5\nevery = 1\n[train]\nepochs = 4\n");
  Trainer scheduled(plan, one_thread()), called(plan, one_thread()), halves(plan, one_thread());
  std::vector<double> rates, given;
  scheduled.fit(shuffled(), {.quiet = true, .on_step = [&](const StepRecord& step) { rates.push_back(step.learning_rate); }});
  for (Trainer* trainer : {&called, &halves}) trainer->recipe().schedule.kind = "constant";
  const auto rate = [](const ScheduledStep& at) { return at.learning_rate * std::pow(0.5, static_cast<double>(at.step - 1) / 5); };
  called.fit(shuffled(), {.quiet = true, .learning_rate = rate, .on_step = [&](const StepRecord& step) { given.push_back(step.learning_rate); }});
  EXPECT_EQ(given, rates);
  EXPECT_EQ(weights(called), weights(scheduled));
  halves.fit(shuffled(), {.steps = 7, .run_dir = folder / "run", .quiet = true, .learning_rate = rate});
  Trainer rest(plan, one_thread());
  rest.recipe().schedule.kind = "constant";
  rest.fit(shuffled(), {.run_dir = folder / "run", .resume = true, .quiet = true, .learning_rate = rate});
  EXPECT_EQ(weights(rest), weights(scheduled));
  test::expect_error(Code::kUsage, "gave -1 for step 1 of epoch 1", [&] { called.fit(shuffled(), {.quiet = true, .learning_rate = [](const ScheduledStep&) { return -1.0; }}); });
}

/// What is drawn anew for ever has no length, and so many of it have.
TEST(Fit, ASchedulesLengthMayBeThatOfAPartOfDataWithoutAnEnd) {
  static const plan::Plan plan = test::compiled(test::kLoss + "[optimizer]\nkind = \"sgd\"\n[schedule]\nkind = \"cosine\"\n[train]\nepochs = 2\n");
  Trainer trainer(plan, one_thread());
  double last = 1;
  const TrainResult result = trainer.fit(samples().shuffle(16, 3).repeat().take(100).batch(16), {.quiet = true, .on_step = [&](const StepRecord& step) { last = step.learning_rate; }});
  EXPECT_EQ(result.steps, 14);
  EXPECT_LT(last, 0.1 * trainer.recipe().optimizer.learning_rate);
}

/// As Keras's steps_per_epoch does it.
TEST(Fit, EpochsOfDataWithoutAnEndGoOn) {
  const test::Batch all(0, test::kSamples);
  std::vector<double> seen, expected;
  const Dataset noted = samples().map([&](Example example) { return seen.push_back(tensor_of(example, "x").at(0)), example; });
  Trainer trainer(plan_with_dropout(), one_thread());
  const TrainResult result = trainer.fit(noted.repeat().batch(8), {.valid = shuffled().repeat(), .epochs = 3, .limit = 2, .valid_limit = 1, .quiet = true});
  EXPECT_EQ(result.steps, 6);
  for (std::int64_t i = 0; i < 6 * 8; ++i) expected.push_back(all.x.at(i % test::kSamples * test::kInputs));
  EXPECT_EQ(seen, expected);
  for (const auto& endless : {std::function([&] { trainer.evaluate(noted.repeat().batch(8)); }), std::function([&] { trainer.predict(noted.repeat().batch(8)); }),
                              std::function([&] { trainer.fit(shuffled(), {.valid = noted.batch(8).repeat(), .quiet = true}); }), std::function([&] { trainer.fit(noted.repeat().batch(8), {.quiet = true}); })})
    test::expect_error(Code::kUsage, "have no end", endless);
  EXPECT_EQ(trainer.fit(noted.repeat().batch(8), {.steps = 7, .quiet = true}).steps, 7);
  trainer.recipe().train.max_seconds = 1e-6;
  EXPECT_EQ(trainer.fit(noted.repeat().batch(8), {.quiet = true}).end, TrainResult::End::kOutOfTime);
}

TEST(Fit, NobodyNeedsToAskForAStop) {
  Trainer trainer(plan_with_dropout(), one_thread());
  EXPECT_EQ(trainer.fit(shuffled(), {.valid = shuffled(), .epochs = 1, .quiet = true, .stop_requested = nullptr, .on_step = nullptr, .on_epoch = nullptr}).steps, 5);
}

TEST(Fit, GoesOnInDataWithoutAnEnd) {
  const Dataset endless = samples().shuffle(16, 3).repeat().batch(8);
  Trainer whole(plan_with_dropout(), one_thread());
  whole.fit(endless, {.limit = 3, .quiet = true});
  for (const std::int64_t stopped_after : {2, 3, 7, 11}) {
    const test::TempFolder folder;
    Trainer first(plan_with_dropout(), one_thread()), second(plan_with_dropout(), one_thread());
    std::int64_t steps = 0;
    first.fit(endless, {.limit = 3, .run_dir = folder / "run", .quiet = true, .stop_requested = [&] { return ++steps == stopped_after; }});
    EXPECT_EQ(second.fit(endless, {.limit = 3, .run_dir = folder / "run", .resume = true, .quiet = true}).earlier_steps, stopped_after);
    EXPECT_EQ(weights(second), weights(whole)) << stopped_after;
  }
}

TEST(StopSignals, InterruptARunThatCanBeGoneOnWith) {
  const test::TempFolder folder;
  Trainer first(plan_with_dropout(), one_thread()), second(plan_with_dropout(), one_thread()), whole(plan_with_dropout(), one_thread());
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    const StopSignals signals;
    EXPECT_FALSE(signals.came()) << "that of an earlier one is forgotten";
    const TrainResult result = first.fit(shuffled(), {.run_dir = folder / fmt::format("run-{}", signal), .quiet = true, .stop_requested = [&] { return signals.came(); }, .on_step = [&](const StepRecord& step) {
                                                        if (step.step == 7) std::raise(signal);
                                                      }});
    EXPECT_EQ(result.end, TrainResult::End::kStopRequested) << signal;
    EXPECT_EQ(result.steps, 7);
    if (signal == SIGINT) second.fit(shuffled(), {.run_dir = folder / fmt::format("run-{}", signal), .resume = true, .quiet = true});
  }
  whole.fit(shuffled(), {.quiet = true});
  EXPECT_EQ(weights(second), weights(whole));
}

TEST(StopSignals, DoAgainWhatTheyDidBefore) {
  static int came = 0;
  const auto before = std::signal(SIGUSR1, [](int) { ++came; });
  {
    const StopSignals signals;
    test::expect_error(Code::kUsage, "signals come to a whole process", [] { const StopSignals another; });
    std::raise(SIGPIPE);
    EXPECT_FALSE(signals.came()) << "nobody reads the progress any more";
    std::raise(SIGUSR1);
    EXPECT_TRUE(signals.came());
    EXPECT_EQ(came, 0);
  }
  EXPECT_EQ(std::signal(SIGPIPE, SIG_DFL), SIG_DFL);
  std::raise(SIGUSR1);
  EXPECT_EQ(came, 1);
  std::signal(SIGUSR1, before);
}

TEST(StopSignals, AHangupIsOneUnlessItIsIgnored) {
  const auto stopped = [](sighandler_t before) {
    std::signal(SIGHUP, before);
    const StopSignals signals;
    std::raise(SIGHUP);
    std::_Exit(signals.came() ? kExitStoppedSaved : 0);
  };
  EXPECT_EXIT(stopped(SIG_DFL), testing::ExitedWithCode(kExitStoppedSaved), "");
  EXPECT_EXIT(stopped(SIG_IGN), testing::ExitedWithCode(0), "");
}

TEST(StopSignals, ASecondInterruptEndsTheProcess) {
  const auto stopped = [](std::initializer_list<int> numbers) {
    const StopSignals signals;
    for (const int number : numbers) std::raise(number);
    std::_Exit(signals.came() ? 0 : 1);
  };
  EXPECT_EXIT(stopped({SIGINT, SIGINT}), testing::ExitedWithCode(kExitStopped), "");
  EXPECT_EXIT(stopped({SIGINT, SIGTERM, SIGUSR1}), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hone
