// hone-dump --stage: every stage on the way to a plan can be looked at; what is drawn is all there, and what is not drawn says why.
#include <gmock/gmock.h>
#include <graphviz/cgraph.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class DumpStages : public ::testing::Test {
 protected:
  DumpStages() { write_conv_plan(folder_); }
  std::string run(const std::string& command) const { return run_well(folder_.path(), command).out; }
  std::string dump(const std::string& arguments) const { return run("hone-dump conv.hone " + arguments); }
  std::size_t items_of_svg(const std::string& stage) const {
    pugi::xml_document svg;
    EXPECT_TRUE(svg.load_string(dump("--as svg --stage " + stage).c_str(), pugi::parse_full)) << stage;
    return svg.select_nodes("//g[starts-with(@class, 'item')]").size();
  }
  int boxes_of_dot(const std::string& stage, char first) const {
    const std::unique_ptr<Agraph_t, int (*)(Agraph_t*)> read(agmemread(dump("--as dot --stage " + stage).c_str()), agclose);
    EXPECT_NE(read, nullptr) << stage;
    int count = 0;
    for (Agnode_t* node = read ? agfstnode(read.get()) : nullptr; node != nullptr; node = agnxtnode(read.get(), node)) count += agnameof(node)[0] == first;
    return count;
  }
  std::size_t steps_of(const std::string& entry) const {
    const json plan = json::parse(dump("--as json"));
    for (const json& one : plan["program"]["entries"])
      if (one["name"] == entry) return one["steps"].size();
    return 0;
  }
  TempFolder folder_;
};

TEST_F(DumpStages, AreThoseOfTheCompiler) {
  for (const std::string stage : {"imported", "training", "kernels", "schedule"}) EXPECT_EQ(dump("--stage " + stage), run("hone-compile conv.onnx -r train.toml --emit " + stage)) << stage;
  EXPECT_EQ(dump("--stage eval_step.schedule").find("entry eval_step"), 0U);
  EXPECT_THAT(dump("--stage schedule"), HasSubstr(dump("--stage eval_step.schedule")));
}

TEST_F(DumpStages, AreDrawn) {
  for (const std::string stage : {"imported", "training", "train_step", "eval_step", "predict"}) {
    const std::size_t nodes = json::parse(dump("--as json --stage " + stage))["graph"]["nodes"].size();
    EXPECT_EQ(items_of_svg(stage), nodes) << stage;
    EXPECT_EQ(boxes_of_dot(stage, 'n'), static_cast<int>(nodes)) << stage;
  }
}

TEST_F(DumpStages, DrawSchedulesStepByStep) {
  for (const std::string entry : {"train_step", "eval_step", "replica_step"}) {
    EXPECT_EQ(items_of_svg(entry + ".schedule"), steps_of(entry)) << entry;
    EXPECT_EQ(boxes_of_dot(entry + ".schedule", 'i'), static_cast<int>(steps_of(entry))) << entry;
  }
  EXPECT_EQ(dump("--as svg --stage schedule"), dump("--as svg --stage train_step.schedule"));
  EXPECT_GT(boxes_of_dot("schedule", 's'), 4) << "weights and data that steps read";
}

TEST_F(DumpStages, ThatAreTextAloneSayWhy) {
  const auto refusal = [&](const std::string& arguments) {
    const ToolRun run = run_tool(folder_.path(), "hone-dump conv.hone " + arguments);
    EXPECT_EQ(run.exit, 2) << arguments;
    return run.err;
  };
  for (const std::string form : {"svg", "dot"}) {
    EXPECT_THAT(refusal("--stage kernels --as " + form), HasSubstr("each kernel is a loop nest by itself, which is text; --stage schedule draws the steps that call them")) << form;
    EXPECT_THAT(refusal("--stage train_step.nodes --as " + form), HasSubstr("it is a list of numbers")) << form;
    EXPECT_THAT(refusal("--stage train_step_norms.schedule --as " + form), HasSubstr("\"replica_step.schedule\"")) << form << ": a variation of it is drawn";
    EXPECT_THAT(refusal("--stage optimised --as " + form), HasSubstr("\"schedule\"")) << form;
  }
  EXPECT_THAT(refusal("--stage schedule --as json"), HasSubstr("--as svg and dot draw it"));
}

}  // namespace
}  // namespace hone::test
