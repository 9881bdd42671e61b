// Dropout by recipe as a user asks for it: what the compiler says, what training does, and that nothing else changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class DropoutByRecipe : public ::testing::Test {
 protected:
  DropoutByRecipe() {
    write_mlp(folder_);
    folder_.write("drop.toml", folder_.read("train.toml") + "[model]\ndropout = { after = \"relu\", rate = 0.4 }\n");
  }
  ToolRun run(const std::string& command) const { return run_well(folder_.path(), command); }
  /// The bytes of the trained model. Without shuffling: what differs is the dropout's doing.
  std::string trained(const std::string& plan, const std::string& flags = "") const {
    run("hone-run train " + plan + " --train x=x.npy,y=y.npy --no-shuffle --epochs 3 --out trained.onnx " + flags);
    return folder_.read("trained.onnx");
  }
  TempFolder folder_;
};

TEST_F(DropoutByRecipe, TheCompilerSaysWhereItWent) {
  EXPECT_THAT(run("hone-compile mlp.onnx -r drop.toml -o drop.hone").err, HasSubstr("dropout after     relu\n"));
  EXPECT_THAT(run("hone-compile mlp.onnx -r drop.toml --check").out, HasSubstr("\ntraining drops 0.4 of the elements after: relu\n"));
  EXPECT_THAT(run("hone-compile mlp.onnx -r drop.toml --check --json").out, HasSubstr(R"({"kind":"dropout","after":"relu","rate":0.4})"));
  EXPECT_THAT(run("hone-compile mlp.onnx -r drop.toml --emit training").out, ContainsRegex("random_uniform.*at \"relu\" from \"part of dropout"));
  EXPECT_THAT(run("hone-compile mlp.onnx -r train.toml -o plain.hone").err, Not(HasSubstr("dropout")));
  EXPECT_THAT(run("hone-compile mlp.onnx -r drop.toml --check-grad").out, HasSubstr("gradients agree"));
}

TEST_F(DropoutByRecipe, TrainingFollowsTheSeed) {
  run("hone-compile mlp.onnx -r train.toml -o plain.hone");
  run("hone-compile mlp.onnx -r drop.toml -o drop.hone");
  run("hone-compile mlp.onnx -r drop.toml --set train.seed=6 -o six.hone");
  const std::string zero = trained("drop.hone");
  EXPECT_EQ(zero, trained("drop.hone"));
  EXPECT_EQ(trained("plain.hone"), trained("plain.hone", "--seed 6")) << "in order, the seed decides nothing but dropout";
  EXPECT_NE(zero, trained("plain.hone"));
  EXPECT_NE(zero, trained("drop.hone", "--seed 6"));
  EXPECT_EQ(trained("six.hone"), trained("drop.hone", "--seed 6"));
}

TEST_F(DropoutByRecipe, EvaluationIsThatOfThePlainModel) {
  run("hone-compile mlp.onnx -r train.toml -o plain.hone");
  run("hone-compile mlp.onnx -r drop.toml -o drop.hone");
  EXPECT_EQ(run("hone-run eval drop.hone --data x=x.npy,y=y.npy --json").out, run("hone-run eval plain.hone --data x=x.npy,y=y.npy --json").out);
}

}  // namespace
}  // namespace hone::test
