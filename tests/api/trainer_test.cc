// Trainer: fit, evaluate and predict on data sets, and going on after a stop.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "runtime/collective/thread_communicators.h"
#include "runtime/train/replica_runner.h"
#include "tests/api/small_fit.h"
#include "tests/api/training_run.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using test::Batch;
using test::kSamples;
using test::one_thread;
using test::plan_with_dropout;
using test::samples;
using test::shuffled;
using test::weights;
using ::testing::AllOf;
using ::testing::HasSubstr;

double loss_of(const NamedNumbers& numbers) {
  for (const auto& [name, value] : numbers)
    if (name == "loss") return value;
  ADD_FAILURE() << "no loss";
  return 0;
}

/// Nothing is ever better than the first epoch by as much as this.
void stop_early(Trainer& trainer, std::int64_t patience, bool restore_best) {
  trainer.recipe().train.early_stopping_monitor = "loss";
  trainer.recipe().train.early_stopping_min_delta = 100;
  trainer.recipe().train.early_stopping_patience = patience;
  trainer.recipe().train.early_stopping_restore_best = restore_best;
}

TEST(Trainer, ReplicasThatShareTheOptimizersWorkHoldTheirPartOfIt) {
  Trainer plain(plan_with_dropout(), one_thread(), {.local = 4}), shared(plan_with_dropout(), one_thread(), {.local = 4, .shard_optimizer = true});
  for (Trainer* trainer : {&plain, &shared}) trainer->fit(shuffled(), {.epochs = 2, .quiet = true});
  std::int64_t moments = 0;
  for (const plan::Persistent& persistent : plain.session().program().persistents) {
    if (persistent.in_parts) moments += static_cast<std::int64_t>(persistent.initial.byte_count());
    else EXPECT_EQ(plain.session().read(persistent.name).bytes().size(), shared.session().read(persistent.name).bytes().size());
    if (persistent.trained and persistent.in_model) EXPECT_TRUE(std::ranges::equal(plain.session().read(persistent.name).bytes(), shared.session().read(persistent.name).bytes())) << persistent.name;
  }
  EXPECT_GT(moments, 0);
  const auto held = [](Trainer& trainer) { return trainer.session().memory("eval_step").persistent; };
  EXPECT_NEAR(static_cast<double>(held(plain) - held(shared)), 0.75 * static_cast<double>(moments), 128.0 * static_cast<double>(plain.session().program().persistents.size()));
}

/// A program in two processes, which are threads here.
struct TwoPrograms {
  using Program = std::function<void(Trainer&, int process)>;
  std::array<std::map<std::string, std::vector<double>>, 2> learned = {};
  std::array<std::string, 2> said = {};

  explicit TwoPrograms(const Program& program) {
    ThreadCommunicators between(2);
    const auto run = [&](int process) {
      const auto number = static_cast<std::size_t>(process);
      try {
        Trainer trainer(plan_with_dropout(), one_thread(), {.processes = &between.of(process)});
        program(trainer, process);
        learned[number] = weights(trainer);
      } catch (const Error& error) {
        said[number] = error.what();
        between.of(process).fail(error.what());
      }
    };
    std::jthread second(run, 1);
    run(0);
  }
};

TEST(Trainer, ProcessesLearnWhatReplicasOfOneProcessLearnAndTheFirstWrites) {
  const test::TempFolder folder;
  Trainer replicas(plan_with_dropout(), one_thread(), {.local = 2});
  replicas.fit(shuffled(), {.quiet = true});
  replicas.save(folder / "replicas.onnx");
  const FitOptions options = {.run_dir = folder / "run", .resume = true, .check_every = 1, .quiet = true};
  const TwoPrograms stopped([&](Trainer& trainer, int process) {
    FitOptions until = options;
    std::int64_t steps = 0;
    until.stop_requested = [&steps, process] { return process == 1 and ++steps == 7; };
    EXPECT_EQ(trainer.fit(shuffled(), until).end, TrainResult::End::kStopRequested);
  });
  EXPECT_THAT(stopped.said, ::testing::Each(""));
  const TwoPrograms rest([&](Trainer& trainer, int) {
    EXPECT_EQ(trainer.fit(shuffled(), options).earlier_steps, 7);
    trainer.save(folder / "processes.onnx");
  });
  EXPECT_THAT(rest.said, ::testing::Each(""));
  EXPECT_THAT(rest.learned, ::testing::Each(weights(replicas)));
  EXPECT_TRUE(folder.read("processes.onnx") == folder.read("replicas.onnx"));
}

TEST(Trainer, ProcessesMakeTheirOwnSamplesAlone) {
  const auto learn = [](Trainer& trainer, std::int64_t* made) {
    const Dataset data = samples().map([made](Example example) { return ++*made, example; });
    trainer.fit(data.batch(6), {.valid = data.batch(10).prefetch(), .epochs = 2, .quiet = true});
    return loss_of(trainer.evaluate(data.batch(kSamples)));
  };
  std::int64_t alone = 0;
  std::array<std::int64_t, 2> made = {};
  std::array<double, 2> loss = {};
  Trainer replicas(plan_with_dropout(), one_thread(), {.local = 2});
  const double expected = learn(replicas, &alone);
  const TwoPrograms programs([&](Trainer& trainer, int process) { loss[static_cast<std::size_t>(process)] = learn(trainer, &made[static_cast<std::size_t>(process)]); });
  EXPECT_THAT(programs.said, ::testing::Each(""));
  EXPECT_THAT(programs.learned, ::testing::Each(weights(replicas)));
  EXPECT_THAT(loss, ::testing::Each(expected));
  EXPECT_EQ(alone, 5 * kSamples);
  EXPECT_THAT(made, ::testing::Each(alone / 2));
}

TEST(Trainer, ProcessesNameOneThatHasOtherWeights) {
  const test::TempFolder folder;
  const TwoPrograms programs([&](Trainer& trainer, int process) {
    trainer.fit(shuffled(), {.epochs = 1, .quiet = true});
    const std::string& name = trainer.session().program().persistents.front().name;
    if (process == 1) trainer.session().write(name, Tensor::zeros(trainer.session().read(name).dtype(), trainer.session().read(name).shape()));
    trainer.save(folder / "trained.onnx");
  });
  for (const std::string& said : programs.said) EXPECT_THAT(said, AllOf(HasSubstr("rank 1 of 2 has other weights"), HasSubstr("in step 5")));
  EXPECT_THAT(folder.names(), ::testing::IsEmpty());
}

/// They take the weights' places in all replicas, so that what is trained further and saved is the same in all.
TEST(Trainer, ReplicasKeepTheirAveragesAlike) {
  const test::TempFolder folder;
  static const plan::Plan plan = test::compiled(test::kLoss + "[optimizer]\nkind = \"adam\"\n[train]\nepochs = 2\nema_decay = 0.9\n");
  Trainer one(plan, one_thread(), {.local = 1, .shards = 2}), two(plan, one_thread(), {.local = 2, .shards = 2});
  for (Trainer* trainer : {&one, &two})
    for (int i = 0; i < 2; ++i) trainer->fit(shuffled(), {.quiet = true});
  EXPECT_EQ(weights(two), weights(one));
  EXPECT_EQ(loss_of(two.evaluate(shuffled())), loss_of(one.evaluate(shuffled())));
}

/// Replicas of one process are compared, too.
TEST(Trainer, AReplicaThatHasOtherWeightsIsNamed) {
  const plan::Plan& plan = plan_with_dropout();
  Replicas replicas(plan, {.local = 4}, one_thread());
  ReplicaRunner runner(replicas, plan.batch_symbol);
  runner.compare_every(3);
  runner.save({});
  const std::string& name = replicas.session().program().persistents.front().name;
  const Tensor before = replicas.session(2).read(name);
  replicas.session(2).write(name, Tensor::zeros(before.dtype(), before.shape()));
  try {
    runner.save([](const StateReader& reader) { reader.confirm(); });
    FAIL() << "nothing was said";
  } catch (const Error& error) {
    EXPECT_EQ(error.diags().front().code, Code::kPeer);
    EXPECT_THAT(error.what(), HasSubstr("replica 2 of 4 has other weights in this process"));
  }
  replicas.session(2).write(name, before);
  runner.save([](const StateReader& reader) { reader.confirm(); });
}

/// The first process's checkpoint of the best epoch is gone; the other one has that in memory.
TEST(Trainer, ProcessesKeepTheirLastWeightsWhereTheBestAreGone) {
  const test::TempFolder folder;
  const TwoPrograms programs([&](Trainer& trainer, int process) {
    stop_early(trainer, 2, true);
    const auto remove = [&](const EpochRecord&) {
      for (const std::filesystem::path checkpoint : {folder / "run/checkpoint-000005", folder / "run/checkpoint-000010"})
        if (process == 0) std::filesystem::remove_all(checkpoint);
    };
    trainer.fit(shuffled(), {.run_dir = folder / "run", .quiet = true, .on_epoch = remove});
  });
  EXPECT_THAT(programs.said[0], HasSubstr("the best one"));
  EXPECT_EQ(programs.said[1], "");
}

/// One replica finds a class that is none, in the second batch; the other one waits for it in vain.
TEST(Trainer, ReplicasGoOnAfterAnError) {
  for (const std::int64_t group : {1, 2}) {
    const plan::Plan plan = test::compiled(test::kLoss + fmt::format("[optimizer]\nkind = \"adam\"\n[train]\nepochs = 2\ngradient_accumulation_steps = {}\n", group));
    Trainer after_error(plan, one_thread(), {.local = 2}), without(plan, one_thread(), {.local = 2});
    Batch wrong(0, 16);
    std::vector<std::int64_t> classes(16, 1);
    classes[14] = 99;
    wrong.target = Tensor::of<std::int64_t>({16}, std::span<const std::int64_t>(classes));
    test::expect_error(Code::kDataRange, "99", [&] { after_error.fit(Dataset::from_tensor_slices({{"x", wrong.x}, {"y", wrong.target}}).batch(8), {.quiet = true}); });
    classes[14] = 1;
    const Tensor right = Tensor::of<std::int64_t>({16}, std::span<const std::int64_t>(classes));
    if (group == 1) without.fit(Dataset::from_tensor_slices({{"x", wrong.x}, {"y", right}}).batch(8), {.steps = 1, .quiet = true});  // what was done before the error
    for (Trainer* trainer : {&after_error, &without}) trainer->fit(samples().batch(8), {.quiet = true});
    EXPECT_EQ(weights(after_error), weights(without)) << "batches in a group: " << group;
  }
}

TEST(Trainer, FitsEvaluatesAndPredicts) {
  Trainer trainer(plan_with_dropout(), one_thread());
  const double before = loss_of(trainer.evaluate(samples().batch(16)));
  std::int64_t steps = 0, epochs = 0;
  const TrainResult result = trainer.fit(shuffled(), {.valid = samples().batch(16),
                                                      .epochs = 6,
                                                      .quiet = true,
                                                      .on_step = [&](const StepRecord&) { ++steps; },
                                                      .on_epoch = [&](const EpochRecord&) { ++epochs; }});
  EXPECT_EQ(result.steps, 30);
  EXPECT_EQ(steps, 30);
  EXPECT_EQ(epochs, 6);
  ASSERT_EQ(result.history.size(), 6u);
  for (const char* name : {"loss", "accuracy", "val_loss", "val_accuracy"}) EXPECT_TRUE(std::isfinite(value_of(result.history[3], name))) << name;
  EXPECT_EQ(result.history[3].epoch, 4);
  EXPECT_EQ(result.history.back().values, result.values);
  EXPECT_LT(loss_of(trainer.evaluate(samples().batch(16))), before);

  const NamedTensors outputs = trainer.predict(samples().batch(16));  // of 16, 16 and 8
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].first, "y");
  EXPECT_EQ(outputs[0].second.shape(), (std::vector<std::int64_t>{kSamples, test::kClasses}));
  const NamedTensors at_once = trainer.predict(samples().batch(kSamples));
  for (std::int64_t i = 0; i < outputs[0].second.element_count(); ++i) EXPECT_NEAR(outputs[0].second.at(i), at_once[0].second.at(i), 1e-6);
}

TEST(Trainer, SavedWeightsComeBack) {
  const test::TempFolder folder;
  Trainer trainer(plan_with_dropout(), one_thread()), other(plan_with_dropout(), one_thread());
  trainer.fit(shuffled(), {.epochs = 1, .quiet = true});
  for (const char* file : {"weights.safetensors", "trained.onnx"}) {
    trainer.save(folder / file);
    other.load(folder / file);
    EXPECT_EQ(loss_of(other.evaluate(samples().batch(8))), loss_of(trainer.evaluate(samples().batch(8)))) << file;
  }
}

/// Dropout, shuffling and the optimizer's states go on as if nothing had happened.
TEST(Trainer, GoesOnInTheMiddleOfAnEpoch) {
  const test::TempFolder folder;
  Trainer whole(plan_with_dropout(), one_thread());
  const TrainResult at_once = whole.fit(shuffled(), {.quiet = true});
  {
    Trainer first(plan_with_dropout(), one_thread());
    std::int64_t steps = 0;
    const TrainResult part = first.fit(shuffled(), {.run_dir = folder / "run", .quiet = true, .stop_requested = [&] { return ++steps == 7; }});
    EXPECT_EQ(part.end, TrainResult::End::kStopRequested);
    EXPECT_EQ(part.steps, 7);
  }
  Trainer second(plan_with_dropout(), one_thread());
  const TrainResult rest = second.fit(shuffled(), {.run_dir = folder / "run", .resume = true, .quiet = true});
  EXPECT_EQ(rest.earlier_steps, 7);
  ASSERT_EQ(rest.history.size(), 4u) << "the epoch before it went on is one of them";
  EXPECT_EQ(rest.history.front().epoch, 1);
  EXPECT_EQ(rest.history.front().values, at_once.history.front().values) << "to the last digit";
  EXPECT_EQ(weights(second), weights(whole));
}
TEST(Trainer, ARunThatStoppedEarlyStaysStopped) {
  const test::TempFolder folder;
  std::map<std::string, std::vector<double>> stopped;
  for (const bool resume : {false, true}) {
    Trainer trainer(plan_with_dropout(), one_thread());
    stop_early(trainer, 2, false);
    const TrainResult result = trainer.fit(shuffled(), {.run_dir = folder / "run", .resume = resume, .quiet = true});
    EXPECT_EQ(result.end, TrainResult::End::kNoProgress);
    EXPECT_EQ(result.epochs, 3);
    EXPECT_EQ(result.earlier_steps, resume ? 15 : 0);
    if (resume) EXPECT_EQ(weights(trainer), stopped);
    stopped = weights(trainer);
  }
  EXPECT_THAT(folder.read("run/metrics.csv"), HasSubstr("\n3,")) << "nothing was trained, so nothing of the log went";
}

/// Whose every epoch is better than the one before: with a patience of 0, the default.
TEST(Trainer, AnImprovingRunGoesOnWithoutPatience) {
  const test::TempFolder folder;
  for (const bool resume : {false, true}) {
    Trainer trainer(plan_with_dropout(), one_thread());
    trainer.recipe().train.early_stopping_monitor = "val_loss";
    std::int64_t steps = 0;
    const TrainResult result = trainer.fit(shuffled(), {.valid = samples().batch(8), .run_dir = folder / "run", .resume = resume, .quiet = true, .stop_requested = [&] { return not resume and ++steps == 10; }});
    EXPECT_EQ(result.end, resume ? TrainResult::End::kDone : TrainResult::End::kStopRequested);
    if (resume) EXPECT_EQ(result.steps, 20);
  }
}

/// What was the best loss says nothing of an accuracy.
TEST(Trainer, WhatStopsARunBeginsAnewWithWhatIsMonitored) {
  const test::TempFolder folder;
  TrainResult result;
  for (const char* monitor : {"loss", "accuracy"}) {
    Trainer trainer(plan_with_dropout(), one_thread());
    trainer.recipe().train.early_stopping_monitor = monitor;
    trainer.recipe().train.early_stopping_patience = 3;
    result = trainer.fit(shuffled(), {.epochs = monitor[0] == 'l' ? 3 : 5, .run_dir = folder / "run", .resume = monitor[0] == 'a', .quiet = true});
  }
  EXPECT_EQ(result.epochs, 5);
  ASSERT_TRUE(result.best.has_value());
  EXPECT_EQ(result.best->name, "accuracy");
  EXPECT_GT(result.best->epoch, 3) << "an accuracy is below the best loss";
}

/// Of the first epoch four of ten batches are done; then an epoch has two.
TEST(Trainer, AllEpochsAreTrainedWhereTheyBecomeShorter) {
  const test::TempFolder folder;
  const auto fit = [&](FitOptions options) {
    options.run_dir = folder / "run";
    options.quiet = true;
    Trainer trainer(plan_with_dropout(), one_thread());
    return trainer.fit(samples().batch(4), std::move(options));
  };
  fit({.epochs = 3, .steps = 4});
  const TrainResult result = fit({.epochs = 3, .limit = 2, .resume = true});
  EXPECT_EQ(result.epochs, 3);
  EXPECT_EQ(result.steps, 8);
  EXPECT_EQ(result.history.size(), 3U);
}

TEST(Trainer, TheBestWeightsComeBackAlsoFromTheMiddleOfAnEpoch) {
  Trainer one(plan_with_dropout(), one_thread()), more(plan_with_dropout(), one_thread());
  one.fit(shuffled(), {.epochs = 1, .quiet = true});
  stop_early(more, 10, true);
  const TrainResult result = more.fit(shuffled(), {.steps = 7, .quiet = true});
  EXPECT_EQ(result.restored_epoch, 1);
  for (const plan::Persistent& persistent : one.session().program().persistents)
    if (persistent.in_model) EXPECT_EQ(weights(more).at(persistent.name), weights(one).at(persistent.name)) << persistent.name;
}

TEST(Trainer, OtherDataInTheMiddleOfAnEpochAreRefused) {
  const test::TempFolder folder;
  {
    Trainer first(plan_with_dropout(), one_thread());
    std::int64_t steps = 0;
    first.fit(shuffled(), {.run_dir = folder / "run", .quiet = true, .stop_requested = [&] { return ++steps == 7; }});
  }
  Trainer second(plan_with_dropout(), one_thread());
  const auto go_on = [&](const Dataset& data) { second.fit(data, {.run_dir = folder / "run", .resume = true, .quiet = true}); };
  test::expect_error(Code::kPlanMismatch, "it would be 40 rows, shuffle(16, seed 4), batch(8)", [&] { go_on(shuffled(4)); });
  test::expect_error(Code::kPlanMismatch, "it would be 40 rows, shuffle(16, seed 3), batch(4)", [&] { go_on(samples().shuffle(16, 3).batch(4)); });
  test::expect_error(Code::kPlanMismatch, "it would be 24 rows, shuffle(16, seed 3), batch(8)", [&] { go_on(samples(24).shuffle(16, 3).batch(8)); });
  go_on(shuffled().prefetch());  // the same batches
}

}  // namespace
}  // namespace hone
