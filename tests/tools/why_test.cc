// hone-compile --why NODE: the story of one node, from the file to the steps that run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/frontend/test_model.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class WhyTool : public ::testing::Test {
 protected:
  WhyTool() { write_conv_net(folder_); }
  std::string why(const std::string& arguments) const { return run_well(folder_.path(), "hone-compile " + arguments).out; }
  TempFolder folder_;
};

TEST_F(WhyTool, TellsOfANodeFromTheFileToTheStep) {
  const std::string story = why("conv.onnx -r train.toml --why conv");
  EXPECT_THAT(story, StartsWith("conv\n\nimported\n  Conv(image, "));
  EXPECT_THAT(story, HasSubstr("becomes forward: conv"));
  EXPECT_THAT(story, HasSubstr("train_step as it is built"));
  EXPECT_THAT(story, ContainsRegex("backward: [a-z_]*conv")) << "its gradients are told of, too";
  EXPECT_THAT(story, HasSubstr("what runs it on cpu"));
  EXPECT_THAT(story, HasSubstr("calls onednn.conv"));
  EXPECT_THAT(story, ContainsRegex("step [0-9]+: onednn.conv \\(forward: conv at node \"conv\""));
  EXPECT_THAT(story, ContainsRegex("reads .*is fed as \"image\""));
  EXPECT_THAT(story, ContainsRegex("arena, alive in steps [0-9]+ to [0-9]+.* at batch 4"));
  EXPECT_THAT(story, ContainsRegex("\"conv/kernel\" is updated in step [0-9]+"));
}

TEST_F(WhyTool, NamesTheNodesThatAreOneKernelWithIt) {
  const std::string story = why("conv.onnx -r train.toml --why relu");
  EXPECT_THAT(story, ContainsRegex("one kernel of [0-9]+ nodes:"));
  EXPECT_THAT(story, ContainsRegex("\\* relu .*\"relu\""));
  EXPECT_THAT(story, Not(HasSubstr("its weights"))) << "it has none";
}

TEST_F(WhyTool, OfAModelThatIsNotTrainedFollowsThePrediction) {
  const std::string story = why("conv.onnx --why dense");
  EXPECT_THAT(story, HasSubstr("steps of predict"));
  EXPECT_THAT(story, HasSubstr("\"dense/kernel\" is not trained"));
  EXPECT_THAT(story, Not(HasSubstr("backward: ")));
}

TEST_F(WhyTool, TellsOfAllEntriesAndTargets) {
  const std::string story = why("conv.onnx -r train.toml --target cpu,sim --levels x86-64-v3 --why conv");
  for (const char* heading : {"what runs it on cpu\n", "what runs it on cpu, in predict\n", "what runs it on sim\n", "steps of train_step on cpu\n", "steps of predict on cpu\n", "steps of train_step on sim\n"})
    EXPECT_THAT(story, HasSubstr(std::string("\n") + heading));
}

TEST_F(WhyTool, TellsOfWhatRunsInLoops) {
  TestModel model;
  model.input("series", {4, "N", 3}).output("last").initializer("wx", wavy({1, 6, 3})).initializer("wh", wavy({1, 6, 2}));
  model.node("GRU", {"series", "wx", "wh"}, {"", "last"}).named("loop").set("hidden_size", 2);
  folder_.write("loop.onnx", model.proto.SerializeAsString());
  const std::string story = why("loop.onnx --why loop");
  EXPECT_THAT(story, HasSubstr("in the body of scan: forward: tanh"));
  EXPECT_THAT(story, ContainsRegex("in the body of scan: one kernel of [0-9]+ nodes:"));
  EXPECT_THAT(story, ContainsRegex("step [0-9]+, body 0, step [0-9]+: "));
  EXPECT_THAT(story, ContainsRegex("forward: scan[^\n]*: runs its bodies"));
}

/// What is no kernel is not called one, with a name and without.
TEST_F(WhyTool, TellsWhatTheHostDoes) {
  TestModel model;
  model.input("x", {"N", 8}).output("best").initializer("k", i64({1}, {3}));
  model.node("TopK", {"x", "k"}, {"best", ""}).named("top");
  folder_.write("top.onnx", model.proto.SerializeAsString());
  for (const char* node : {" top", ""}) {
    const std::string text = why(std::string("top.onnx --target cpu,sim --levels x86-64-v3 --why") + node);
    EXPECT_THAT(text, ContainsRegex("arg_top_k[^\n]* host function")) << text;
    EXPECT_THAT(text, HasSubstr("host function, between copies from the device and back"));
    EXPECT_THAT(text, Not(ContainsRegex("arg_top_k[^\n]*generated kernel")));
  }
}

TEST_F(WhyTool, TellsWhichRulesFired) {
  TestModel model;
  model.input("x", {"N", 4}).output("y").initializer("w", wavy({3, 4}));
  model.node("Transpose", {"w"}, {"t"}).named("turned").set("perm", std::vector<std::int64_t>{1, 0});
  model.node("Mul", {"x", "one"}, {"s"}).named("times");
  model.node("MatMul", {"s", "t"}, {"y"}).named("product");
  model.initializer("one", f32({1}, {1}));
  folder_.write("rules.onnx", model.proto.SerializeAsString());
  EXPECT_THAT(why("rules.onnx --why times"), HasSubstr("x * 1 -> x"));
  const std::string product = why("rules.onnx --why product");
  EXPECT_THAT(product, HasSubstr("simplify, by the rules:\n      matmul(transpose(a), b) -> matmul{ta}(a, b)\n"));
  EXPECT_THAT(product, ContainsRegex("  - forward: matmul -> f32\\[N,3\\]"));
  EXPECT_THAT(product, ContainsRegex("  \\+ forward: matmul.*tb.* -> f32\\[N,3\\]"));
}

TEST_F(WhyTool, OfAllTellsWhatLeavesItsLoop) {
  TestModel model;
  model.input("series", {"T", "N", 3}).output("last").initializer("wx", wavy({1, 6, 3})).initializer("wh", wavy({1, 6, 2}));
  model.node("GRU", {"series", "wx", "wh"}, {"", "last"}).named("loop").set("hidden_size", 2);
  folder_.write("loop.onnx", model.proto.SerializeAsString());
  const std::string train = "loop.onnx --set loss.kind=mse --set optimizer.kind=sgd --why", all = why(train);
  EXPECT_THAT(all, ContainsRegex("of loops, read from what an earlier loop stacks of it, rather than computed again:\n    [a-z]+ +at node \"loop\""));
  EXPECT_THAT(all, ContainsRegex("of loops, computed for all iterations at once, behind the loop:\n(    .*\n)*    matmul +gradient at node \"loop\""));
  EXPECT_THAT(why(train + " --passes fold,simplify"), Not(HasSubstr("of loops"))) << "without the passes over loops nothing leaves them";
}

TEST_F(WhyTool, OfAllTellsWhatIsSummedInParts) {
  TestModel model;
  model.input("x", {"N", 32, 32, 16}).output("y");
  model.node("ReduceSum", {"x", "axes"}, {"y"}).named("sum").set("keepdims", 0);
  model.initializer("axes", ints({0, 1, 2}));
  folder_.write("sum.onnx", model.proto.SerializeAsString());
  EXPECT_THAT(why("sum.onnx --why"), ContainsRegex("reduce_sum +reduces f32\\[N,32,32,16\\] to few results: part by part over axes \\[1,2\\], which threads share, then over the parts, axes \\[0\\]; at node \"sum\""));
  EXPECT_THAT(why("sum.onnx --why --passes fold,simplify"), Not(HasSubstr("part by part")));
}

TEST_F(WhyTool, OfAllTellsWhenWeightsAreUpdated) {
  const std::string all = why("conv.onnx -r train.toml --why");
  EXPECT_THAT(all, HasSubstr("when weights are updated:\n  train_step: "));
  for (const char* weight : {"conv/kernel", "dense/kernel", "dense/bias"}) EXPECT_THAT(all, ContainsRegex(std::string("\n  train_step: ") + weight + " at step [0-9]+ of [0-9]+.*; the backward pass ends with step [0-9]+\n"));
  EXPECT_THAT(all, HasSubstr(", in the kernel that makes its gradient"));
  EXPECT_THAT(all, Not(HasSubstr("  predict: conv/kernel"))) << "which changes no weight";
}

TEST_F(WhyTool, WithoutANameTellsOfAll) {
  const std::string all = why("conv.onnx -r train.toml --why");
  EXPECT_THAT(all, StartsWith("train_step for cpu:\n"));
  EXPECT_EQ(why("--why conv.onnx -r train.toml"), all) << "a flag before the model takes nothing from it";
}

}  // namespace
}  // namespace hone::test
