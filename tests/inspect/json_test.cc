// hone-dump --as json: it parses, its numbers name what is there, and what it says of memory holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using nlohmann::json;

json dump(const TempFolder& folder, const std::string& arguments) { return json::parse(run_well(folder.path(), "hone-dump " + arguments + " --as json").out); }

class DumpJson : public ::testing::Test {
 protected:
  DumpJson() {
    write_conv_plan(folder_);
    plan_ = dump(folder_, "conv.hone");
  }
  const json& entry(const std::string& name) const {
    for (const json& one : plan_["program"]["entries"])
      if (one["name"] == name) return one;
    throw std::runtime_error("no entry " + name);
  }
  const json& weight(const std::string& name) const {
    for (const json& one : plan_["weights"])
      if (one["name"] == name) return one;
    throw std::runtime_error("no weight " + name);
  }
  TempFolder folder_;
  json plan_;
};

TEST_F(DumpJson, SaysWhatItIs) {
  EXPECT_EQ(plan_["schema"], 1);
  EXPECT_EQ(plan_["kind"], "plan");
  EXPECT_EQ(plan_["stage"], "train_step");
  EXPECT_EQ(plan_["sizes"], json({{"N", 4}})) << "the recipe's batch";
  EXPECT_EQ(plan_["recipe"]["optimizer"]["kind"], "adam");
}

TEST_F(DumpJson, NumbersOfValuesAndNodesArePositions) {
  const json& graph = plan_["graph"];
  for (std::size_t i = 0; i < graph["values"].size(); ++i) EXPECT_EQ(graph["values"][i]["id"], i);
  for (std::size_t i = 0; i < graph["nodes"].size(); ++i) {
    const json& node = graph["nodes"][i];
    EXPECT_EQ(node["id"], i);
    EXPECT_TRUE(graph["ops"].contains(node["op"]));
    for (const json& operand : node["operands"])
      if (not operand.is_null()) EXPECT_LT(operand.get<std::size_t>(), graph["values"].size());
    for (const json& result : node["results"]) EXPECT_EQ(graph["values"][result.get<std::size_t>()]["producer"], i);
    for (const json& partner : node["partners"]) EXPECT_NE(graph["nodes"][partner.get<std::size_t>()]["part"] == "backward", node["part"] == "backward");
  }
}

TEST_F(DumpJson, EveryNodeThatIsReadRunsInAStep) {
  std::set<int> run;
  for (const json& step : entry("train_step")["steps"]) run.insert(step["nodes"].begin(), step["nodes"].end());
  std::set<int> read;
  for (const json& node : plan_["graph"]["nodes"])
    for (const json& operand : node["operands"])
      if (not operand.is_null()) read.insert(operand.get<int>());
  std::size_t counted = 0;
  for (const json& node : plan_["graph"]["nodes"]) {
    if (node.contains("view") or node["op"] == "all_reduce" or not read.contains(node["results"][0].get<int>())) continue;
    ++counted;
    EXPECT_TRUE(run.contains(node["id"].get<int>())) << node;
  }
  EXPECT_GT(counted, 100U);
}

TEST_F(DumpJson, NodesOfOneKernelAreOneStep) {
  const json& steps = entry("train_step")["steps"];
  EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [](const json& step) { return step["kind"] == "kernel" and step["nodes"].size() > 3; }));
  std::set<std::string> kernels;
  for (const json& kernel : plan_["program"]["kernels"]) {
    kernels.insert(kernel["name"]);
    EXPECT_TRUE(kernel["text"].get<std::string>().starts_with("kernel " + kernel["name"].get<std::string>() + "(")) << kernel;
  }
  for (const json& step : steps)
    if (step["kind"] == "kernel") EXPECT_TRUE(kernels.contains(step["name"])) << step;
}

TEST_F(DumpJson, SaysWhereAGradientIsReduced) {
  const json& dense = weight("dense/kernel");
  const json& reduced = plan_["graph"]["nodes"][dense["all_reduce"]["node"].get<std::size_t>()];
  EXPECT_EQ(reduced["op"], "all_reduce");
  EXPECT_EQ(plan_["graph"]["values"][dense["gradient"].get<std::size_t>()]["producer"], reduced["id"]);
  const json& step = entry("replica_step")["steps"][dense["all_reduce"]["step"].get<std::size_t>()];
  EXPECT_EQ(step["kind"], "exchange");
  EXPECT_EQ(step["bucket"], dense["all_reduce"]["bucket"]);
  EXPECT_EQ(plan_["graph"]["nodes"][dense["updated_by"].get<std::size_t>()]["part"], "update");
}

TEST_F(DumpJson, NoTwoBuffersThatAreAliveTogetherOverlap) {
  const json& train = entry("train_step");
  std::vector<json> placed;
  for (const json& buffer : train["buffers"])
    if (buffer["storage"] == "arena") placed.push_back(buffer);
  ASSERT_GT(placed.size(), 5U);
  for (const json& a : placed) {
    EXPECT_LE(a["offset"].get<int>() + a["bytes"].get<int>(), train["memory"]["arena_bytes"].get<int>());
    for (const json& b : placed) {
      const bool together = a["first_step"] <= b["last_step"] and b["first_step"] <= a["last_step"];
      const bool overlap = a["offset"].get<int>() < b["offset"].get<int>() + b["bytes"].get<int>() and b["offset"].get<int>() < a["offset"].get<int>() + a["bytes"].get<int>();
      if (a["id"] != b["id"]) EXPECT_FALSE(together and overlap) << a << b;
    }
  }
}

TEST_F(DumpJson, ThePeakIsWhatIsAliveThere) {
  const json& train = entry("train_step");
  int bytes = 0;
  for (const json& id : train["memory"]["alive_at_peak"]) {
    const json& buffer = train["buffers"][id.get<std::size_t>()];
    EXPECT_LE(buffer["first_step"], train["memory"]["peak_step"]);
    EXPECT_GE(buffer["last_step"], train["memory"]["peak_step"]);
    bytes += buffer["bytes"].get<int>();
  }
  EXPECT_EQ(bytes, train["memory"]["peak_bytes"]);
  for (const json& live : train["memory"]["live"]) EXPECT_LE(live, train["memory"]["peak_bytes"]);
}

/// conv of [N,1,8,8] with four 3x3 filters: 9 products and 9 sums for each of N*4*8*8 results, those at the border, with zeros, included.
TEST_F(DumpJson, CountsArithmeticAtTheBatch) {
  const auto conv_flops = [](const json& plan) {
    for (const json& node : plan["graph"]["nodes"])
      if (node["op"] == "conv" and node["part"] == "forward") return node["flops"].get<double>();
    return 0.0;
  };
  EXPECT_EQ(conv_flops(plan_), 2.0 * 9 * 4 * 4 * 8 * 8);
  EXPECT_EQ(conv_flops(dump(folder_, "conv.hone --batch 8")), 2 * conv_flops(plan_));
}

TEST_F(DumpJson, OfOtherFiles) {
  run_well(folder_.path(), "hone-compile conv.onnx --emit imported:conv.hir");
  const json model = dump(folder_, "conv.onnx"), graph = dump(folder_, "conv.hir"), imported = dump(folder_, "conv.hone --stage imported");
  EXPECT_EQ(model["kind"], "model");
  EXPECT_EQ(graph["kind"], "graph");
  const auto ops = [](const json& file) {
    std::vector<std::string> list;
    for (const json& node : file["graph"]["nodes"]) list.push_back(node["op"]);
    return list;
  };
  EXPECT_EQ(ops(model), ops(graph));
  EXPECT_EQ(ops(imported), ops(graph));
  EXPECT_EQ(model["tensors"].size(), 8U) << "kernel and bias of two layers, and four of the batch normalization";
}

TEST_F(DumpJson, OfACheckpointIsItsTensorsAndItsState) {
  run_well(folder_.path(), "hone-run train conv.hone --train x=x.npy,y=y.npy --epochs 1 --run-dir run --quiet --out trained.safetensors");
  const json trained = dump(folder_, "trained.safetensors");
  EXPECT_EQ(trained["kind"], "tensors");
  EXPECT_EQ(trained["tensors"].size(), 8U);
  std::string newest;
  for (const auto& one : std::filesystem::directory_iterator(folder_ / "run"))
    if (const std::string name = one.path().filename(); name.starts_with("checkpoint-")) newest = std::max(newest, name);
  const json checkpoint = dump(folder_, "run/" + newest);
  EXPECT_EQ(checkpoint["kind"], "checkpoint");
  EXPECT_TRUE(checkpoint["state"].contains("step")) << checkpoint["state"];
  EXPECT_GT(checkpoint["tensors"].size(), trained["tensors"].size());
  EXPECT_THAT(run_well(folder_.path(), "hone-dump run/" + newest).out, ::testing::HasSubstr("optimizer.safetensors:"));
}

}  // namespace
}  // namespace hone::test
