// hone-dump --summary: the numbers of its table, against what is known of the model and what a run says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class SummaryTool : public ::testing::Test {
 protected:
  SummaryTool() { write_mlp_plan(folder_); }
  std::string summary(const std::string& arguments) const { return run_well(folder_.path(), "hone-dump --summary " + arguments).out; }
  TempFolder folder_;
};

TEST_F(SummaryTool, CountsTheArithmeticOfEachLayer) {
  // 8 samples; dense: 4 to 5, dense_1: 5 to 3; biases are nodes of their own.
  const std::string model = summary("mlp.onnx --batch 8");
  EXPECT_THAT(model, ContainsRegex("dense \\(matmul\\) +\\(None, 5\\) +20 +320\n"));
  EXPECT_THAT(model, ContainsRegex("relu \\(relu\\) +\\(None, 5\\) +0 +40\n"));
  EXPECT_THAT(model, ContainsRegex("dense_1 \\(matmul\\) +\\(None, 3\\) +15 +240\n"));
  EXPECT_THAT(model, HasSubstr("FLOPs at batch 8: 664\n"));
  EXPECT_THAT(model, Not(HasSubstr("Gradient"))) << "a model alone is not trained";
}

TEST_F(SummaryTool, OfAPlanSaysWhatTrainingMakesOfALayer) {
  const std::string plan = summary("mlp.hone --batch 8");
  for (const char* column : {"FLOPs", "Gradient", "Backward", "Saved", "Kernel"}) EXPECT_THAT(plan, HasSubstr(column));
  EXPECT_THAT(plan, ContainsRegex("dense \\(matmul\\) +\\(None, 5\\) +20 +320 +yes +[0-9]+ .*relu"));
  EXPECT_THAT(plan, ContainsRegex("FLOPs at batch 8: .* forward, .* backward, .* of updates"));
  EXPECT_THAT(plan, ContainsRegex("Peak memory at batch 8: .* of weights and states, .* of activations and gradients, .* of library scratch"));
}

/// dense_1's gradients: its weight's and its input's are a product as large as its own each.
TEST_F(SummaryTool, CountsTheBackwardPass) { EXPECT_THAT(summary("mlp.hone --batch 8"), ContainsRegex("dense_1 \\(matmul\\) +\\(None, 3\\) +15 +240 +yes +480 ")); }

/// Of 4*5 + 5 + 5*3 + 3 elements the first product's, or the two factors of its adapter with rank 2, which the model does not have.
TEST_F(SummaryTool, CountsWhatAPlanTrainsAsTrainable) {
  run_well(folder_.path(), "hone-compile mlp.onnx -r train.toml --set model.freeze=[\"dense_1/*\"] -o frozen.hone");
  EXPECT_THAT(summary("frozen.hone"), HasSubstr("Total params: 43\nTrainable params: 25\nNon-trainable params: 18\n"));
  run_well(folder_.path(), "hone-compile mlp.onnx -r train.toml --set lora.targets=[\"dense/kernel\"] --set lora.rank=2 -o adapted.hone");
  EXPECT_THAT(summary("adapted.hone"), HasSubstr("Total params: 61\nTrainable params: 18\nNon-trainable params: 43\n"));
}

/// Its gradient is the sum's: there is no node for it.
TEST_F(SummaryTool, KnowsThatAGradientFlowsThroughASum) {
  EXPECT_THAT(summary("mlp.hone"), ContainsRegex("dense/Add[^\n]* +yes "));
}

TEST_F(SummaryTool, KnowsTheLargestBatchThatARunTakes) {
  std::string text = summary("mlp.hone --memory-limit 64KiB");
  std::erase(text, ',');  // of 1,237
  const std::string run = run_well(folder_.path(), "hone-run bench mlp.hone --batch auto --memory-limit 64KiB --steps 1 --warmup 0 --json").out;
  EXPECT_THAT(text, HasSubstr("Largest batch in 64 KiB: " + nlohmann::json::parse(run).at("batch").dump() + "\n"));
  EXPECT_THAT(summary("mlp.hone --memory-limit 1KiB"), HasSubstr("Largest batch in 1 KiB: not even one sample fits\n"));
}

}  // namespace
}  // namespace hone::test
