// hone-run with train.precision = "f16": steps whose gradients overflow are left out, told, and the same after a stop, with replicas, and where batches are added up.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/tools/run_folders.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class ScaledLosses : public testing::Test {
 protected:
  /// The scale begins far too large, and grows soon.
  void compile(const std::string& set = "") {
    write_mlp(folder_);
    write_demanding_recipe(folder_, 5, "precision = \"f16\"\nloss_scale = 16777216.0\nloss_scale_growth_steps = 12");
    write_floats(folder_, "x.npy", {97, 4});
    write_classes(folder_, "y.npy", 97, 3);
    run_well(folder_.path(), "hone-compile mlp.onnx -r train.toml -o f16.hone" + set);
  }
  std::string command(const std::string& name, const std::string& flags = "") const {
    return fmt::format("hone-run train f16.hone --train x=x.npy,y=y.npy --run-dir {0} --out {0}.onnx --save-steps 1 --keep 1000 --log-every 1 {1}", name, flags);
  }
  void train(const std::string& name, const std::string& flags = "") const { run_well(folder_.path(), command(name, flags + " --quiet")); }
  std::vector<Json> lines(const std::string& name, const std::string& kind) const { return lines_of_kind(folder_, name, kind); }

  /// What the log says of each step follows GradScaler's rule from one step to the next.
  void expect_scales_follow(const std::string& name) const {
    const std::vector<Json> steps = lines(name, "step"), skipped = lines(name, "skipped_step");
    ASSERT_GE(skipped.size(), 3U);
    ASSERT_LT(skipped.size(), steps.size() / 2);
    double scale = 16777216;
    std::size_t left_out = 0, good = 0;
    for (const Json& step : steps) {
      ASSERT_EQ(step["loss_scale"].get<double>(), scale) << step;
      const bool is_skipped = left_out < skipped.size() and skipped[left_out]["step"] == step["step"];
      if (is_skipped) {
        EXPECT_EQ(skipped[left_out]["loss_scale"].get<double>(), scale);
        EXPECT_GT(skipped[left_out]["overflows"].get<double>(), 0);
        ++left_out;
        good = 0;
        scale /= 2;
      } else if (++good == 12) {
        good = 0;
        scale *= 2;
      }
      EXPECT_EQ(step["skipped_steps"].get<std::size_t>(), left_out) << step;
    }
    EXPECT_EQ(left_out, skipped.size());
  }

  TempFolder folder_;
};

TEST_F(ScaledLosses, FollowGradScalersRuleAndSaySo) {
  compile();
  const std::string said = run_well(folder_.path(), command("f16")).err;
  expect_scales_follow("f16");
  EXPECT_THAT(said, HasSubstr(fmt::format("skipped_steps: {}", lines("f16", "skipped_step").size())));
}

TEST_F(ScaledLosses, SayWhereNothingWasLearned) {
  compile(" --set train.loss_scale=1e30");
  const std::string said = run_well(folder_.path(), command("f16", "--steps 3")).err;
  EXPECT_THAT(said, HasSubstr("note: gradients overflowed f16 in all 3 steps, which were left out, and nothing was learned: each halves the scale of the loss (2.5e+29 in the last one)"));
}

TEST_F(ScaledLosses, LearnAsInF32WhereNothingOverflows) {
  compile(" --set train.loss_scale=256 --set train.loss_scale_growth_steps=2000");
  train("f16");
  EXPECT_TRUE(lines("f16", "skipped_step").empty());
  run_well(folder_.path(), "hone-compile mlp.onnx -r train.toml --set train.precision=f32 -o f32.hone");
  run_well(folder_.path(), "hone-run train f32.hone --train x=x.npy,y=y.npy --run-dir f32 --quiet");
  const auto loss = [&](const char* name) { return lines(name, "epoch").back().at("loss").get<double>(); };
  EXPECT_NEAR(loss("f16"), loss("f32"), 0.005 * loss("f32"));
}

/// Weights and moments are as before the step, and the next one is the first.
TEST_F(ScaledLosses, LeaveNothingOfAStepThatOverflows) {
  compile();
  train("f16", "--steps 1");
  train("two", "--steps 2");
  ASSERT_EQ(lines("two", "skipped_step").size(), 2U);
  EXPECT_EQ(folder_.read("f16/checkpoint-000001/model.safetensors"), folder_.read("two/checkpoint-000002/model.safetensors"));
}

TEST_F(ScaledLosses, GoOnWhereTheyWereStopped) {
  compile();
  train("whole");
  for (const int step : {2, 30}) {
    const std::string name = fmt::format("stopped{}", step);
    stop_run_after(folder_, step, name, "whole");
    train(name, "--resume");
    EXPECT_EQ(folder_.read(name + ".onnx"), folder_.read("whole.onnx")) << "after step " << step;
    EXPECT_EQ(lines(name, "skipped_step"), lines("whole", "skipped_step"));
  }
}

TEST_F(ScaledLosses, AreLeftOutByAllReplicasTogether) {
  compile();
  const std::string flags = "--virtual 3 --global-batch";
  train("plain", flags);
  expect_scales_follow("plain");
  train("shared", flags + " --shard-optimizer");
  EXPECT_EQ(folder_.read("shared.onnx"), folder_.read("plain.onnx"));
  EXPECT_EQ(lines("shared", "skipped_step"), lines("plain", "skipped_step"));
}

TEST_F(ScaledLosses, AreThoseOfAllBatchesThatAreAddedUp) {
  compile(" --set train.gradient_accumulation_steps=2 --set train.loss_scale_growth_steps=12");
  train("f16");
  expect_scales_follow("f16");
  stop_run_after(folder_, 20, "stopped", "f16");
  train("stopped", "--resume");
  EXPECT_EQ(folder_.read("stopped.onnx"), folder_.read("f16.onnx"));
}

TEST_F(ScaledLosses, AreNotForGradientsAlone) {
  write_mlp(folder_);
  const auto refused = run_tool(folder_.path(), "hone-compile mlp.onnx -r train.toml --set train.precision=f16 --gradients-of loss --wrt x -o grad.hone");
  EXPECT_EQ(refused.exit, 5);
  EXPECT_THAT(refused.err, HasSubstr("without training nothing finds the scale of the loss"));
}

}  // namespace
}  // namespace hone::test
