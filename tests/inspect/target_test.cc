// hone-dump of a plan with programs for several targets: each form shows the one that is asked for, with its own graphs, kernels and steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <set>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class DumpTarget : public ::testing::Test {
 protected:
  DumpTarget() {
    write_conv_net(folder_);
    run_well(folder_.path(), "hone-compile conv.onnx -r train.toml --target cpu,sim --levels x86-64-v3 -o conv.hone");
  }
  std::string dump(const std::string& arguments) const { return run_well(folder_.path(), "hone-dump conv.hone " + arguments).out; }
  json described(const std::string& arguments) const { return json::parse(dump("--as json " + arguments)); }
  TempFolder folder_;
};

TEST_F(DumpTarget, ShowsItsOwnGraphKernelsAndSteps) {
  const json cpu = described(""), sim = described("--target sim");
  EXPECT_EQ(cpu["program"]["target"], "cpu");
  EXPECT_EQ(sim["program"]["target"], "sim");
  EXPECT_EQ(sim["targets"], json::array({"cpu", "sim"}));
  EXPECT_EQ(cpu["stages"], sim["stages"]);
  EXPECT_NE(cpu["program"]["kernels"], sim["program"]["kernels"]) << "a device has kernels of its own";
  std::set<std::string> kernels;
  for (const json& kernel : sim["program"]["kernels"]) kernels.insert(kernel["name"]);
  const json& train = sim["program"]["entries"][0];
  ASSERT_EQ(train["name"], "train_step");
  std::size_t nodes = 0;
  for (const json& step : train["steps"]) {
    nodes += step["nodes"].size();
    if (step["kind"] == "kernel") EXPECT_TRUE(kernels.contains(step["name"])) << step;
    for (const json& node : step["nodes"]) EXPECT_LT(node.get<std::size_t>(), sim["graph"]["nodes"].size());
  }
  EXPECT_GT(nodes, train["steps"].size()) << "what nodes each step stands for";
  EXPECT_TRUE(std::ranges::any_of(train["steps"], [](const json& step) { return step["kind"] == "kernel" and step["flops"].is_number() and step["flops"] > 0; })) << "how much arithmetic a kernel does";
}

TEST_F(DumpTarget, IsWhatEveryFormShows) {
  const json sim = described("--target sim");
  EXPECT_THAT(dump("--target sim"), Not(HasSubstr("program cpu:")));
  EXPECT_THAT(dump(""), HasSubstr("program cpu:"));
  EXPECT_EQ(dump("--target cpu --stage kernels"), dump("--stage kernels"));
  EXPECT_NE(dump("--target sim --stage kernels"), dump("--stage kernels"));
  EXPECT_EQ(dump("--target sim --stage imported"), dump("--stage imported")) << "which is the same for all";
  pugi::xml_document svg;
  ASSERT_TRUE(svg.load_string(dump("--target sim --as svg").c_str(), pugi::parse_full));
  EXPECT_EQ(svg.select_nodes("//g[starts-with(@class, 'item')]").size(), sim["graph"]["nodes"].size());
  EXPECT_NE(dump("--target sim --as dot"), dump("--as dot"));
  EXPECT_NE(dump("--target sim --summary"), dump("--summary")) << "what runs each layer";
  EXPECT_THAT(dump("--target sim --as html"), HasSubstr("\"target\":\"sim\""));
  EXPECT_FALSE(dump("--target sim --as onnx --stage train_step").empty());
}

TEST_F(DumpTarget, OfTwoPlansIsCompared) {
  run_well(folder_.path(), "hone-compile conv.onnx -r train.toml --target cpu,sim --levels x86-64-v3 --passes fold,simplify,cse,dce,loops,layout,library,split,panels,epilogues -o unfused.hone");
  const auto kernels = [&](const std::string& flags) {
    const ToolRun run = run_tool(folder_.path(), "hone-dump diff conv.hone unfused.hone --as json " + flags);
    EXPECT_EQ(run.exit, 1) << run.err;
    std::string text;
    for (const json& one : json::parse(run.out))
      if (one["kind"] == "kernel") text += one.dump() + "\n";
    return text;
  };
  EXPECT_EQ(kernels(""), kernels("--target cpu"));
  EXPECT_NE(kernels("--target sim"), kernels("--target cpu"));
}

TEST_F(DumpTarget, ThatIsNotThereIsRefused) {
  const auto refusal = [&](const std::string& arguments) {
    const ToolRun run = run_tool(folder_.path(), "hone-dump " + arguments);
    EXPECT_EQ(run.exit, 2) << arguments;
    return run.err;
  };
  for (const std::string form : {"text", "json", "html", "svg", "dot", "onnx"}) EXPECT_THAT(refusal("conv.hone --target cuda --as " + form), HasSubstr("it has programs for \"cpu\", \"sim\"")) << form;
  EXPECT_THAT(refusal("conv.hone --target cuda --summary"), HasSubstr("--target \"cuda\""));
  EXPECT_THAT(refusal("diff conv.hone conv.hone --target cuda"), HasSubstr("--target \"cuda\""));
  EXPECT_THAT(refusal("conv.onnx --target cpu"), HasSubstr("has no programs"));
}

/// README's --target cpu,cuda: what is traced is the second program.
TEST_F(DumpTarget, IsThatOfTheTrace) {
  run_well(folder_.path(), "hone-run train conv.hone --train x=x.npy,y=y.npy --valid x=x.npy,y=y.npy --device sim --steps 6 --quiet --out trained.onnx --trace sim.json");
  run_well(folder_.path(), "hone-run bench conv.hone --device cpu --steps 3 --warmup 0 --trace cpu.json");
  for (const std::string target : {"sim", "cpu"}) {
    const json plan = described("--trace " + target + ".json");
    EXPECT_EQ(plan["program"]["target"], target);
    const json& steps = plan["program"]["entries"][0]["steps"];
    for (const json& step : steps)
      if (step["kind"] == "kernel" or step["kind"] == "library") EXPECT_EQ(step.value("runs", 0), target == "sim" ? 6 : 20) << target << " " << step["name"] << ": runs of train_step alone, not of eval_step, which has some of its kernels";
  }
  EXPECT_EQ(described("--trace sim.json --target sim"), described("--trace sim.json"));
  const ToolRun other = run_tool(folder_.path(), "hone-dump conv.hone --as html --trace sim.json --target cpu");
  EXPECT_EQ(other.exit, 2);
  EXPECT_THAT(other.err, HasSubstr("is a trace of the program for sim"));
}

}  // namespace
}  // namespace hone::test
