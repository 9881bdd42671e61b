// A loss that is no number: training stops, names the step, and leaves weights and files as they were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "formats/npy.h"
#include "runtime/session.h"
#include "runtime/data/batches.h"
#include "runtime/train/training_loop.h"
#include "tests/errors/error_case.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// mlp.hone, and holes.npy: x.npy with NaN in row 9, which the third batch of 4 holds.
void with_nan(const TempFolder& folder) {
  write_mlp_plan(folder);
  const Tensor x = read_npy(folder / "x.npy");
  std::vector<float> values(x.data<float>().begin(), x.data<float>().end());
  values[9 * 4 + 2] = std::numeric_limits<float>::quiet_NaN();
  write_npy(folder / "holes.npy", Tensor::of<float>(x.shape(), std::span<const float>(values)));
}

const std::string kExplode = "hone-run train mlp.hone --train x=x.npy,y=y.npy --epochs 5 --out trained.onnx --set optimizer.learning_rate=1e30";
const std::string kHoles = "hone-run train mlp.hone --train x=holes.npy,y=y.npy --no-shuffle --out trained.onnx";

// the rate of the second step is more than f32 holds
const std::string kBreaks = "hone-run train mlp.hone --train x=x.npy,y=y.npy --save-steps 1 --set optimizer.learning_rate=1e40 --set schedule.kind=piecewise --set schedule.boundaries=[1] --set schedule.fractions=[0,1]";

const ErrorCase kCases[] = {
    {"LearningRateFarTooLarge", kExplode, 8, {"HN-0601", "the loss is", "at epoch 1, step 2", "optimizer.learning_rate (it was 1e+30)"}, write_mlp_plan},
    {"NanInTheData", kHoles, 8, {"HN-0601", "the loss is nan at epoch 1, step 3", "no trained model was written", "look for nan"}, with_nan},
    {"WithARunFolder", kHoles + " --run-dir run --resume --log-every 1", 8, {"HN-0601", "epoch 1, step 3", "the data are not finite: \"x\"", "checkpoint-000002; --resume goes on there"}, with_nan, {"run"}},
    {"UpdateThatLeavesNoWeights", kBreaks + " --run-dir run", 8, {"HN-0601", "epoch 1, step 3", "was not finite before the step", "no checkpoint of these weights; --resume goes on from run/checkpoint-000001"}, write_mlp_plan, {"run"}},
    {"LastUpdateThatLeavesNoWeights", kBreaks + " --steps 2 --run-dir last", 8, {"HN-0601", "the last update, of step 2, made the weight \"dense/kernel\" infinite or nan", "no trained model was written; --resume goes on from last/checkpoint-000001"}, write_mlp_plan, {"last"}},
    {"LastUpdateWithoutARunFolder", "hone-run train mlp.hone --train x=x.npy,y=y.npy --steps 1 --set optimizer.learning_rate=1e39 --out trained.onnx", 8, {"HN-0601", "the last update, of step 1", "the run has no checkpoint to go on from"}, write_mlp_plan},
    {"LastUpdateOfReplicas", "hone-run train mlp.hone --virtual 2 --train x=x.npy,y=y.npy --steps 1 --set optimizer.learning_rate=1e39 --out trained.onnx", 8, {"HN-0601", "the last update, of step 1"}, write_mlp_plan},
};

HONE_ERROR_CASES(NumericErrors, kCases);

TEST(NotFinite, TheRunFolderHoldsTheStepsBefore) {
  const TempFolder folder;
  with_nan(folder);
  EXPECT_EQ(run_tool(folder.path(), kHoles + " --run-dir run --log-every 1").exit, 8);
  const std::string lines = folder.read("run/metrics.jsonl");
  EXPECT_THAT(lines, HasSubstr(R"("step":2)"));
  EXPECT_THAT(lines, Not(HasSubstr(R"("step":3)")));
  EXPECT_THAT(lines, Not(HasSubstr(R"("kind":"epoch")")));
}

/// Everything that training changes, after `steps` steps over holes.npy.
std::map<std::string, std::vector<std::byte>> states_after(const TempFolder& folder, std::int64_t steps, bool fails) {
  const plan::Plan plan = plan::load(folder / "mlp.hone");
  Session session(plan, {.device = "cpu", .threads = 1});
  SessionRunner runner(session);
  const TrainEntries entries = {.step = &session.entry(plan::kTrainStep), .evaluate = &session.entry(plan::kEvalStep)};
  const std::vector<std::string> arguments = {"x=" + folder / "holes.npy", "y=" + folder / "y.npy"};
  const BoundArrays data(*entries.step, parse_data("--train", arguments),
                     {.flag = "--train", .batch_symbol = plan.batch_symbol, .pre_batched = false, .scale = {}});
  const Recipe recipe = recipe_from_json(plan.recipe_json);
  Progress quiet(ProgressMode::kQuiet, [](std::string_view) {});
  BatchReader batches(data, recipe.data.batch_size, {.shuffle = false});
  TrainingLoop loop(runner, entries, recipe, batches, nullptr, {.steps = steps}, quiet);
  if (fails) expect_error(Code::kNotFinite, "step 3", [&] { loop.run(); });
  else loop.run();
  std::map<std::string, std::vector<std::byte>> states;
  for (const plan::Persistent& persistent : plan.programs.front().persistents) {
    const Tensor value = session.read(persistent.name);
    states[persistent.name].assign(value.bytes().begin(), value.bytes().end());
  }
  return states;
}

TEST(NotFinite, WeightsAndMomentsAreThoseBeforeTheStep) {
  const TempFolder folder;
  with_nan(folder);
  const auto before = states_after(folder, 2, false), after = states_after(folder, 3, true);
  EXPECT_GT(before.size(), 4u);
  for (const auto& [name, bytes] : before) EXPECT_TRUE(after.at(name) == bytes) << name << " changed in a step whose loss is NaN";
}

}  // namespace
}  // namespace hone::test
