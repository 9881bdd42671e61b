// hone-dump diff: what changed, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/npy.h"
#include "formats/onnx_file.h"
#include "inspect/diff.h"
#include "ir/parse.h"
#include "tests/frontend/test_model.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Json = nlohmann::json;

/// "kind change name" of each difference.
std::vector<std::string> lines_of(const std::vector<Difference>& differences) {
  constexpr const char* kChanges[] = {"changed", "added", "removed"};
  std::vector<std::string> lines;
  for (const Difference& difference : differences) lines.push_back(difference.kind + " " + kChanges[static_cast<std::size_t>(difference.change)] + " " + difference.name);
  return lines;
}

// --- Graphs ---

constexpr const char* kNet = R"(graph g(
  input %x: f32[N,4],
  input %w: f32[4,8]) {
  %h: f32[N,8] = matmul(%x, %w)  // at "fc"
  %a: f32[N,8] = relu(%h)  // at "act"
  %y: f32[N,8] = add(%a, %a)  // at "twice"
  output "y" %y
}
)";

/// What differs between kNet and kNet with every `from` replaced.
std::vector<std::string> after(const std::string& from, const std::string& to) {
  std::string text = kNet;
  for (std::size_t at = 0; not from.empty() and (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  std::vector<Difference> out;
  compare_graphs(parse_graph(kNet, "a.hir"), parse_graph(text, "b.hir"), out);
  return lines_of(out);
}

TEST(DiffOfGraphs, NamesTheNodeThatChangedAndNothingElse) {
  EXPECT_THAT(after("", ""), ElementsAre());
  EXPECT_THAT(after("relu(%h)", "tanh(%h)"), ElementsAre("node changed act"));
  EXPECT_THAT(after("add(%a, %a)", "add(%a, %h)"), ElementsAre("node changed twice"));
}

TEST(DiffOfGraphs, DoesNotCallConsequencesDifferences) {
  EXPECT_THAT(after("8]", "9]"), ElementsAre("input changed w")) << "all nodes have other types, because of one weight";
}

TEST(DiffOfGraphs, FindsANodeUnderAnotherName) {
  EXPECT_THAT(after("\"act\"", "\"activation\""), ElementsAre());
  EXPECT_THAT(after("%h", "%hidden"), ElementsAre()) << "names of values are nobody's";
}

TEST(DiffOfGraphs, NamesWhatWasAddedAndWhoReadsIt) {
  EXPECT_THAT(after("  %y: f32[N,8] = add(%a, %a)", "  %b: f32[N,8] = exp(%a)  // at \"new\"\n  %y: f32[N,8] = add(%b, %b)"), UnorderedElementsAre("node added new", "node changed twice"));
}

TEST(DiffOfGraphs, SeesInputsAndOutputs) {
  EXPECT_THAT(after("output \"y\"", "output \"z\""), UnorderedElementsAre("output removed y", "output added z"));
}

TEST(DiffOfGraphs, SeesOutputsAndStatesThatAreOthers) {
  const auto between = [](const std::string& a, const std::string& b) {
    const auto whole = [](const std::string& rest) { return parse_graph("graph g(input %x: f32[4], state %s: f32[4], constant %k: i64[] = " + rest + "}\n", "test"); };
    std::vector<Difference> out;
    compare_graphs(whole(a), whole(b), out);
    return lines_of(out);
  };
  const std::string nodes = "1) {\n%a: f32[4] = exp(%x)  // at \"a\"\n%b: f32[4] = neg(%x)  // at \"b\"\n%c: i64[] = add(%k, %k)  // at \"c\"\n";
  const auto with = [&](const char* y, const char* z, const char* state) { return nodes + "output \"y\" " + y + "\noutput \"z\" " + z + "\nalias %s <- " + state + "\n"; };
  EXPECT_THAT(between(with("%a", "%b", "%a"), with("%a", "%b", "%a")), ElementsAre());
  EXPECT_THAT(between(with("%a", "%b", "%a"), with("%b", "%a", "%a")), UnorderedElementsAre("output changed y", "output changed z"));
  EXPECT_THAT(between(with("%a", "%b", "%a"), with("%a", "%b", "%b")), ElementsAre("update changed s"));
}

// --- Files ---

class DiffTool : public ::testing::Test {
 protected:
  DiffTool() { write_conv_plan(folder_); }
  ToolRun diff(const std::string& files) const { return run_tool(folder_.path(), "hone-dump diff " + files); }
  /// Of files that differ.
  Json json(const std::string& files) const {
    const ToolRun run = diff(files + " --as json");
    EXPECT_EQ(run.exit, 1) << run.err;
    return Json::parse(run.out);
  }
  static std::set<std::string> fields(const Json& differences, const char* field) {
    std::set<std::string> values;
    for (const Json& one : differences) values.insert(one.at(field).get<std::string>());
    return values;
  }
  void run(const std::string& command) const { run_well(folder_.path(), command); }
  TempFolder folder_;
};

TEST_F(DiffTool, OfTheSameFileIsNothing) {
  for (const char* file : {"conv.hone", "conv.onnx", "train.toml"}) {
    const ToolRun same = diff(std::string(file) + " " + file);
    EXPECT_EQ(same.exit, 0) << file << same.err;
    EXPECT_EQ(same.out, "") << file;
  }
  EXPECT_EQ(diff("conv.onnx conv.hone").exit, 0) << "the plan has the model's nodes and weights";
}

TEST_F(DiffTool, AfterTrainingNamesTheWeightsThatMoved) {
  run("hone-run train conv.hone --train x=x.npy,y=y.npy --steps 10 --out trained.onnx --quiet");
  for (const char* before : {"conv.hone", "conv.onnx"}) {
    const Json differences = json(std::string(before) + " trained.onnx");
    EXPECT_EQ(fields(differences, "kind"), (std::set<std::string>{"weight"}));
    const std::set<std::string> names = fields(differences, "name");
    for (const char* name : {"conv/kernel", "dense/kernel", "dense/bias"}) EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST_F(DiffTool, SaysNothingOfWeightsThatAreFrozen) {
  run("hone-compile conv.onnx -r train.toml --set model.train_only=[\"dense/bias\"] --set model.batch_norm=frozen -o bias.hone");
  run("hone-run train bias.hone --train x=x.npy,y=y.npy --steps 10 --out trained.onnx --quiet");
  EXPECT_EQ(fields(json("bias.hone trained.onnx"), "name"), (std::set<std::string>{"dense/bias"}));
}

TEST_F(DiffTool, MeasuresHowFarAWeightMoved) {
  const auto with_bias = [&](const std::string& file, std::vector<float> values) {
    TestModel model;
    model.input("x", {"N", 2}).output("y").initializer("b", f32({2, 2}, std::move(values)));
    model.node("MatMul", {"x", "b"}, {"y"}).named("fc");
    folder_.write(file, model.proto.SerializeAsString());
  };
  with_bias("a.onnx", {3, 4, 0, 1});
  with_bias("b.onnx", {3, 1, 4, 1});
  const Json one = json("a.onnx b.onnx").at(0);
  EXPECT_EQ(one.at("name"), "b");
  const Json& elements = one.at("elements");
  EXPECT_EQ(elements.at("differing"), 2);
  EXPECT_EQ(elements.at("all"), 4);
  EXPECT_DOUBLE_EQ(elements.at("norm"), 5);
  EXPECT_DOUBLE_EQ(elements.at("relative"), 5 / std::sqrt(26.0));
  EXPECT_DOUBLE_EQ(elements.at("largest"), 4);
  EXPECT_EQ(elements.at("at"), (std::vector<int>{1, 0}));
  EXPECT_THAT(diff("a.onnx b.onnx").out, HasSubstr("~ b: f32[2,2]: 2 of 4 elements differ; norm of the difference 5, 0.98 of its own; the largest is 4 at [1,0]: 0 -> 4\n"));
}

TEST_F(DiffTool, OfTwoRecipesNamesTheOptimizer) {
  folder_.write("other.toml", "[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"sgd\"\nlearning_rate = 0.01\n[metrics]\nlist = [\"accuracy\"]\n[data]\nbatch_size = 4\n[train]\nepochs = 1\n");
  EXPECT_EQ(fields(json("train.toml other.toml"), "name"), (std::set<std::string>{"optimizer.kind"}));
  run("hone-compile conv.onnx -r other.toml -o other.hone");
  const Json differences = json("conv.hone other.hone");
  for (const Json& one : differences) {
    const std::string kind = one.at("kind"), name = one.at("name");
    EXPECT_TRUE(kind == "recipe" or kind == "memory" or kind == "kernel" or kind == "state") << one << "\nneither the model nor a weight changed";
    if (kind == "recipe") EXPECT_TRUE(name.starts_with("optimizer.")) << one;
  }
  EXPECT_TRUE(fields(differences, "name").contains("optimizer.kind"));
}

TEST_F(DiffTool, OfTwoModelsNamesTheNode) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(folder_.read("conv.onnx")));
  std::string name;
  for (auto& node : *model.mutable_graph()->mutable_node())
    if (node.op_type() == "Relu") node.set_op_type("Tanh"), name = node.name();
  folder_.write("tanh.onnx", model.SerializeAsString());
  const Json differences = json("conv.onnx tanh.onnx");
  ASSERT_EQ(differences.size(), 1u) << differences;
  EXPECT_EQ(differences[0].at("kind"), "node");
  EXPECT_EQ(differences[0].at("name"), name);
  EXPECT_EQ(differences[0].at("before"), "relu");
  EXPECT_EQ(differences[0].at("after"), "tanh");
}

TEST_F(DiffTool, OfTwoCheckpointsNamesWeightsStatesAndTheRun) {
  run("hone-run train conv.hone --train x=x.npy,y=y.npy --epochs 2 --run-dir run --quiet");
  std::vector<std::string> checkpoints;
  for (const std::string& name : std::vector<std::string>{"checkpoint-000013", "checkpoint-000026"})
    if (std::filesystem::exists(folder_ / ("run/" + name))) checkpoints.push_back("run/" + name);
  ASSERT_EQ(checkpoints.size(), 2u);
  const Json differences = json(checkpoints[0] + " " + checkpoints[1]);
  const std::set<std::string> names = fields(differences, "name");
  for (const char* name : {"dense/kernel", "dense/kernel/m", "step", "epoch"}) EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_EQ(fields(differences, "kind"), (std::set<std::string>{"run", "weight", "state"}));
  EXPECT_TRUE(fields(json(checkpoints[0] + "/model.safetensors " + checkpoints[1] + "/model.safetensors"), "name").contains("dense/kernel"));
}

}  // namespace
}  // namespace hone::test
