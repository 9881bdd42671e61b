// hone-compile's stages, reports and plans of a small convolutional net, as a person reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Emit : public ::testing::Test {
 protected:
  Emit() { write_conv_net(folder_); }
  std::string stage(const std::string& name) const {
    const ToolRun run = run_well(folder_.path(), "hone-compile conv.onnx -r train.toml --emit " + name);
    EXPECT_EQ(run.err, "");
    return run.out;
  }
  TempFolder folder_;
};

/// The lines between the heading of a part and the next one.
std::string part_of(const std::string& training, const std::string& part) {
  const std::size_t begin = training.find("  // " + part + "\n");
  if (begin == std::string::npos) return "";
  return training.substr(begin, training.find("\n  // ", begin + 1) - begin);
}

TEST_F(Emit, ImportedShowsTheModelWithItsOwnNames) {
  const std::string text = stage("imported");
  EXPECT_THAT(text, HasSubstr("graph conv("));
  EXPECT_THAT(text, HasSubstr("input %image: f32[N,1,8,8]"));
  EXPECT_THAT(text, HasSubstr("weight %conv/kernel: f32[4,1,3,3]"));
  EXPECT_THAT(text, ContainsRegex("= conv\\(%image, %conv/kernel\\).*at \"conv\""));
  EXPECT_THAT(text, HasSubstr("batch_norm("));
  EXPECT_THAT(text, HasSubstr("output \"logits\" %logits"));
  EXPECT_THAT(text, Not(HasSubstr("target")));
}

TEST_F(Emit, TrainingShowsAllPartsOfTheStep) {
  const std::string text = stage("training");
  EXPECT_THAT(text, HasSubstr("graph train_step("));
  EXPECT_THAT(text, HasSubstr("input %target: i64[N] in [0, 3)"));
  EXPECT_THAT(text, HasSubstr("state %dense/kernel/m: f32[64,3]"));
  for (const std::string part : {"loss", "backward", "all_reduce", "update"}) EXPECT_NE(part_of(text, part), "") << part << " is missing in\n" << text;
  const std::string forward = text.substr(0, text.find("  // loss\n"));
  EXPECT_THAT(forward, ContainsRegex("= matmul\\(.*%dense/kernel\\).*at \"dense\""));
  EXPECT_THAT(part_of(text, "loss"), HasSubstr("softmax_cross_entropy"));
  EXPECT_THAT(part_of(text, "loss"), HasSubstr("part of accuracy"));
}

TEST_F(Emit, TrainingsBackwardPartNamesWhatItIsTheGradientOf) {
  const std::string backward = part_of(stage("training"), "backward");
  EXPECT_THAT(backward, ContainsRegex("f32\\[4,1,3,3\\] = conv_weight_grad\\(.*at \"conv\".*from \"gradient"));
  EXPECT_THAT(backward, ContainsRegex("f32\\[64,3\\] = matmul\\(.*at \"dense\".*from \"gradient"));
  EXPECT_THAT(backward, ContainsRegex("max_pool_grad\\(.*at \"max_pool\".*from \"gradient"));
}

TEST_F(Emit, TrainingReducesEveryGradientAndUpdatesEveryWeight) {
  const std::string text = stage("training");
  const std::string reduce = part_of(text, "all_reduce"), update = part_of(text, "update");
  EXPECT_THAT(reduce, ContainsRegex("f32\\[\\], .*f32\\[\\] = all_reduce\\(.*loss of all replicas"));
  for (const std::string result : {"%conv/kernel/gradient: f32[4,1,3,3]", "%dense/kernel/gradient: f32[64,3]", "%dense/bias/gradient: f32[3]"}) EXPECT_THAT(reduce, HasSubstr(result));
  for (const std::string weight : {"conv/kernel", "dense/kernel", "dense/bias"}) {
    EXPECT_THAT(update, HasSubstr("update of " + weight));
    EXPECT_THAT(text, HasSubstr("alias %" + weight + " <- ")) << "the weight is replaced";
    EXPECT_THAT(text, HasSubstr("alias %" + weight + "/m <- ")) << "and its moment";
  }
  EXPECT_THAT(update, HasSubstr("is_finite("));
}

TEST_F(Emit, OptimizedHasFewerNodesAndTheSameInputs) {
  const std::string training = stage("training"), optimized = stage("optimized");
  const auto nodes = [](const std::string& text) { return std::count(text.begin(), text.end(), '='); };
  EXPECT_LT(nodes(optimized), nodes(training));
  EXPECT_THAT(optimized, AllOf(HasSubstr("graph train_step("), HasSubstr("weight %conv/kernel"), HasSubstr("input %target"), HasSubstr("// update")));
}

TEST_F(Emit, KernelsAreLoopsThatAPersonCanRead) {
  const std::string text = stage("kernels");
  EXPECT_THAT(text, ContainsRegex("kernel [a-z_0-9]+\\(x0: f32\\[N"));
  EXPECT_THAT(text, ContainsRegex("  for [a-z0-9]+ in N"));
  EXPECT_THAT(text, HasSubstr("exp("));
  EXPECT_THAT(text, ContainsRegex("sum over [a-z0-9]+ in"));
}

TEST_F(Emit, ScheduleListsCallsAndKernelsOfEveryEntryInOrder) {
  const std::string text = stage("schedule");
  for (const std::string entry : {"train_step", "eval_step", "predict"}) EXPECT_THAT(text, HasSubstr("entry " + entry + ": "));
  EXPECT_THAT(text, ContainsRegex("call onednn.conv\\(.*conv/kernel.*// forward: .*at node \"conv\" in conv.onnx"));
  EXPECT_THAT(text, ContainsRegex("kernel [a-z_0-9]+\\(.*\\) over "));
  for (const std::string entry : {"train_step", "train_step_norms"}) {
    const std::size_t begin = text.find("entry " + entry + ":");
    ASSERT_NE(begin, std::string::npos) << entry;
    EXPECT_THAT(text.substr(begin, text.find("\nentry ", begin) - begin), Not(HasSubstr("all_reduce"))) << "a replica that is alone has nobody to exchange anything with";
  }
  EXPECT_THAT(text, ContainsRegex("all_reduce .*dense/bias/gradient, .*conv/kernel/gradient.*\\(bucket 2, until step [0-9]+\\)")) << "what travels together, the last weights first";
  EXPECT_LT(text.find("// forward"), text.find("// backward"));
  EXPECT_LT(text.find("// backward"), text.find("// update"));
}

/// Each step once, with its nodes behind it; and it is a graph that reads back.
TEST_F(Emit, FusedShowsWhichNodesAreOneStep) {
  const std::string schedule = stage("schedule"), text = stage("fused");
  std::istringstream steps(schedule.substr(schedule.find("entry train_step:"), schedule.find("  result ")));
  std::size_t kernels = 0;
  for (std::string line; std::getline(steps, line) and not line.starts_with("  result ");) {
    const std::size_t begin = line.find("  kernel ");
    if (begin == std::string::npos) continue;
    EXPECT_THAT(text, ContainsRegex("\n  // " + line.substr(begin + 9, line.find('(') - begin - 9) + "(, of nodes that stand above)?\n"));
    ++kernels;
  }
  EXPECT_GT(kernels, 5);
  EXPECT_THAT(text, ContainsRegex("  // where_and_[0-9a-z_]+\n(  // update\n)?  %[^\n]+\n(  // update\n)?  %[^\n]+\n"));
  folder_.write("fused.hir", text);
  EXPECT_EQ(run_well(folder_.path(), "hone-opt fused.hir").out, run_well(folder_.path(), "hone-opt - < fused.hir").out);
  EXPECT_TRUE(run_well(folder_.path(), "hone-dump - --as text < fused.hir").out == run_well(folder_.path(), "hone-dump fused.hir --as text").out);
}

TEST_F(Emit, LlvmDefinesAFunctionForEachKernel) {
  const std::string kernels = stage("kernels"), text = stage("llvm");
  std::size_t count = 0;
  for (std::size_t at = kernels.find("kernel "); at != std::string::npos; at = kernels.find("\nkernel ", at + 1)) {
    const std::size_t begin = kernels.find("kernel ", at) + 7;
    EXPECT_THAT(text, HasSubstr("@" + kernels.substr(begin, kernels.find('(', begin) - begin) + "("));
    ++count;
  }
  EXPECT_GT(count, 10u);
}

TEST_F(Emit, CodeIsThatOfTheLevelsThatAreNamed) {
  const std::string both = stage("asm --levels x86-64-v3,x86-64-v4"), wide = stage("asm --levels x86-64-v4"), narrow = stage("llvm --levels x86-64-v3");
  EXPECT_THAT(both, AllOf(HasSubstr("# code for x86-64-v3\n"), HasSubstr("# code for x86-64-v4\n")));
  EXPECT_THAT(wide, AllOf(HasSubstr("# code for x86-64-v4\n"), HasSubstr("%zmm"), Not(HasSubstr("x86-64-v3"))));
  EXPECT_TRUE(both.ends_with(wide)) << "one behind the other, in the order of --levels";
  EXPECT_THAT(narrow, AllOf(HasSubstr("; code for x86-64-v3\n"), HasSubstr("\"target-cpu\"=\"x86-64-v3\""), Not(HasSubstr("x86-64-v4"))));
  EXPECT_THAT(stage("ptx --levels sm_90"), AllOf(HasSubstr("// code for sm_90\n"), HasSubstr(".target sm_90"), Not(HasSubstr("sm_80"))));
}

TEST_F(Emit, GoesIntoAFileWhenToldSo) {
  EXPECT_EQ(run_well(folder_.path(), "hone-compile conv.onnx --emit imported:imported.hir").out, "");
  EXPECT_EQ(folder_.read("imported.hir"), stage("imported"));
}

TEST_F(Emit, TwoCompilationsGiveTheSameBytes) {
  for (const std::string name : {"a.hone", "b.hone"}) run_well(folder_.path(), "hone-compile conv.onnx -r train.toml -o " + name);
  EXPECT_EQ(folder_.read("a.hone"), folder_.read("b.hone"));
}

TEST_F(Emit, PlansHaveCodeForTheProcessorsThatAreNamed) {
  const auto levels = [&](const std::string& flags) {
    run_well(folder_.path(), "hone-compile conv.onnx -o predict.hone" + flags);
    std::vector<std::string> found;
    for (const std::string& line : split(run_well(folder_.path(), "hone-dump predict.hone").out, '\n'))
      if (line.starts_with("  code ")) found.push_back(line.substr(7, line.find(':') - 7));
    return found;
  };
  EXPECT_EQ(levels(" --levels x86-64-v4,x86-64-v3"), (std::vector<std::string>{"x86-64-v4", "x86-64-v3"}));
  EXPECT_EQ(levels(" --levels x86-64"), (std::vector<std::string>{"x86-64"}));
}

TEST_F(Emit, CheckReportsOperatorsAndWeights) {
  const std::string text = run_well(folder_.path(), "hone-compile conv.onnx -r train.toml --check").out;
  EXPECT_THAT(text, ContainsRegex("Conv +1 +yes +yes +onednn.conv"));
  EXPECT_THAT(text, ContainsRegex("dense/kernel +f32\\[64,3\\] +yes"));
  EXPECT_THAT(text, HasSubstr("running statistic"));
  EXPECT_THAT(text, HasSubstr("0 are not reached by a gradient"));
  EXPECT_THAT(run_well(folder_.path(), "hone-compile conv.onnx -r train.toml --check -o plan.hone").err, HasSubstr("note: --check writes no plan"));
  EXPECT_EQ(folder_.names(), (std::vector<std::string>{"conv.onnx", "train.toml", "x.npy", "y.npy"})) << "--check writes nothing";
}

TEST_F(Emit, WhyNamesAKernelForEachNode) {
  const std::string text = run_well(folder_.path(), "hone-compile conv.onnx -r train.toml --why").out;
  EXPECT_THAT(text, ContainsRegex("conv +calls onednn.conv, channels last +at node \"conv\""));
  EXPECT_THAT(text, HasSubstr("generated kernel"));
}

TEST_F(Emit, WhySaysWhatWasFusedAndWhatNot) {
  const std::string command = "hone-compile conv.onnx -r train.toml --why", text = run_well(folder_.path(), command).out;
  EXPECT_THAT(text, ContainsRegex("  one kernel of [0-9]+ nodes:\n(    .*\n)*    exp  .*part of softmax_cross_entropy"));
  EXPECT_THAT(text, ContainsRegex("  not one kernel, because [^\n]+:\n    [a-z_0-9]+ .*\n      and [a-z_0-9]+ "));
  const std::string unfused = run_well(folder_.path(), command + " --passes fold,simplify,library").out;
  EXPECT_THAT(unfused, AllOf(Not(HasSubstr("one kernel")), HasSubstr("generated kernel")));
}

TEST_F(Emit, PassesRunOnAHirFile) {
  run_well(folder_.path(), "hone-compile conv.onnx --emit imported:imported.hir");
  const std::string same = run_well(folder_.path(), "hone-opt imported.hir").out;
  EXPECT_THAT(same, HasSubstr("batch_norm("));
  const std::string expanded = run_well(folder_.path(), "hone-opt imported.hir --passes expand,cse,dce").out;
  EXPECT_THAT(expanded, Not(HasSubstr("= batch_norm(")));
  EXPECT_THAT(expanded, HasSubstr("output \"logits\""));
  run_well(folder_.path(), "hone-opt imported.hir --passes expand -o expanded.hir");
  EXPECT_EQ(run_well(folder_.path(), "hone-opt expanded.hir --passes cse,dce").out, expanded);
}

}  // namespace
}  // namespace hone::test
