// What hone-run says before and after training, as text.
#include "runtime/train/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "runtime/train/report.h"
#include "tests/support/temp_folder.h"
#include "tests/support/text_lines.h"

namespace hone {
namespace {

using test::lines_of;
using plan::Buffer;
using plan::Persistent;
using test::TempFolder;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

Persistent tensor(const std::string& name, Persistent::Role role, std::vector<std::int64_t> shape, bool trained, bool in_model) {
  return {.name = name, .role = role, .trained = trained, .in_model = in_model, .initial = Tensor::zeros(DType::kF32, std::move(shape))};
}

/// A dense layer with batch normalization, adam's moments, and a step whose only activation is f32[N,256].
plan::Program small_program() {
  plan::Program program;
  program.persistents = {tensor("dense/kernel", Persistent::Role::kWeight, {784, 64}, true, true),
                         tensor("dense/bias", Persistent::Role::kWeight, {64}, false, true),
                         tensor("bn/moving_mean", Persistent::Role::kState, {64}, true, true),
                         tensor("dense/kernel:m", Persistent::Role::kState, {784, 64}, true, false),
                         tensor("dense/kernel:v", Persistent::Role::kState, {784, 64}, true, false),
                         tensor("table", Persistent::Role::kConstant, {1000}, false, true)};
  plan::Entry step;
  step.name = plan::kTrainStep;
  Buffer activation;
  activation.shape = {Dim::symbol("N"), Dim(256)};
  step.buffers = {activation};
  program.entries = {step};
  return program;
}

TEST(Summary, ListsWeightsAndTotals) {
  const plan::Program program = small_program();
  EXPECT_EQ(model_summary(program, {.model_name = "digits.onnx", .batch_size = 32, .planned = planned_memory(program, "N", 32)}),
            "Model: digits.onnx\n"
            "_________________________________________\n"
            "Weight          Shape     Params  Trained\n"
            "=========================================\n"
            "dense/kernel    [784,64]  50,176  yes\n"
            "dense/bias      [64]          64  no\n"
            "bn/moving_mean  [64]          64  running\n"
            "=========================================\n"
            "Total params: 50,304 (196 KiB)\n"
            "Trained params: 50,176 (196 KiB)\n"
            "Other params: 128 (512 B)\n"
            "Optimizer state: 392 KiB\n"
            "Planned memory at batch 32: 624 KiB (592 KiB of weights and states, 32 KiB of activations and gradients)");
}

TEST(Summary, SaysNothingOfMemoryThatIsNotKnownBefore) {
  plan::Program program = small_program();
  program.entries[0].buffers[0].shape = {Dim::symbol("N"), Dim::symbol("T")};
  EXPECT_FALSE(planned_memory(program, "N", 32));
  EXPECT_THAT(model_summary(program, {.batch_size = 32}), EndsWith("Optimizer state: 392 KiB"));
  program.entries.clear();
  EXPECT_FALSE(planned_memory(program, "N", 32));
}

/// Memory is planned for whatever the run calls: an evaluation may take more than a step that makes activations again.
TEST(Summary, CountsWhatTakesMostOfWhatARunCalls) {
  plan::Program program = small_program();
  const auto add = [&](const char* name, std::int64_t width) {
    plan::Entry entry = program.entries[0];
    entry.name = name;
    entry.buffers[0].shape = {Dim::symbol("N"), Dim(width)};
    program.entries.push_back(entry);
  };
  add(plan::kAccumulateStep, 300);
  add(plan::kEvalStep, 1000);
  add(plan::kTrainStepNorms, 2000);
  const auto arena = [&](RunCalls calls) { return planned_memory(program, "N", 32, calls)->arena; };
  EXPECT_EQ(arena({}), 32 * 300 * 4);
  EXPECT_EQ(arena({.evaluates = true}), 32 * 1000 * 4);
  EXPECT_EQ(arena({.norms = true, .evaluates = true}), 32 * 2000 * 4);
}

TEST(Summary, LongListsAreShortenedInTheMiddle) {
  plan::Program program;
  for (int i = 0; i < 100; ++i) program.persistents.push_back(tensor("layer_" + std::to_string(i), Persistent::Role::kWeight, {10}, true, true));
  const std::string text = model_summary(program, {});
  for (const char* name : {"layer_0 ", "layer_19 ", "... 61 more, with --verbose\nlayer_81 ", "layer_99 "}) EXPECT_THAT(text, HasSubstr(name));
  EXPECT_THAT(text, Not(HasSubstr("layer_20 ")));
  EXPECT_THAT(text, HasSubstr("Total params: 1,000 ("));
  const std::string whole = model_summary(program, {.all_weights = true});
  EXPECT_THAT(lines_of(whole), SizeIs(100 + 1 + 4 + 4));
  EXPECT_THAT(whole, Not(HasSubstr("more")));
  program.persistents.resize(40);
  EXPECT_THAT(model_summary(program, {}), Not(HasSubstr("more")));
}

TEST(Summary, LongNamesGiveWayInNarrowTerminals) {
  plan::Program program;
  program.persistents = {tensor(std::string(150, 'n') + "\x1b[31m", Persistent::Role::kWeight, {16, 3, 3, 3}, true, true)};
  const std::string text = model_summary(program, {.columns = 39});
  const std::vector<std::string> lines = lines_of(text);
  for (std::size_t i = 1; i <= 5; ++i) EXPECT_LE(lines[i].size(), 39u) << lines[i];
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("[16,3,3,3]     432  yes"));
}

TEST(Report, SaysSpeedBestEpochMemoryAndFiles) {
  const TempFolder folder;
  folder.write("metrics.csv", "");
  RunReport report = {.steps = 376, .samples = 24'000, .seconds = 2, .best = BestEpoch{3, "val_loss", 0.0641}, .peak_bytes = 60 << 20};
  report.planned = PlannedMemory{.persistent = 1 << 20, .arena = 4 << 20};
  report.run_dir = folder.path();
  EXPECT_EQ(run_report(report),
            "Speed: 188 steps/s, 12,000 samples/s\n"
            "Best epoch: 3, val_loss: 0.0641\n"
            "Memory: 60 MiB at the peak; planned 5 MiB (1 MiB of weights and states, 4 MiB of activations and gradients)\n"
            "Files: metrics.csv in " +
                folder.path() + "; tensorboard --logdir " + folder.path() + " shows them, too");
}

TEST(Report, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(run_report({.steps = 3, .seconds = 2}),
            "Speed: 1.50 steps/s");
  EXPECT_EQ(run_report({}), "");
}

TEST(Report, GroupsDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'000), "1,000");
  EXPECT_EQ(grouped(-123'456), "-123,456");
  EXPECT_EQ(grouped(-1'234'567), "-1,234,567");
}

}  // namespace
}  // namespace hone
