// hone-run bench on data of the user's, and hone-bench, the program that joins the comparison of training speeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST(BenchTool, TrainsOnTheDataThatItIsGiven) {
  const TempFolder folder;
  write_conv_plan(folder);
  const std::string bench = "hone-run bench conv.hone --steps 200 --warmup 0 --batch 10 --json";
  const Json given = Json::parse(run_well(folder.path(), bench + " --data x=x.npy,y=y.npy").out), made_up = Json::parse(run_well(folder.path(), bench).out);
  EXPECT_LT(given.at("final_loss").get<double>(), 0.2) << "these classes can be learned";
  EXPECT_GT(made_up.at("final_loss").get<double>(), 0.2) << "made-up ones cannot";
  EXPECT_EQ(given.at("batch"), 10);
}

TEST(BenchTool, SaysWhereTheTimeGoes) {
  const TempFolder folder;
  write_conv_plan(folder);
  const std::string bench = "hone-run bench conv.hone --steps 3 --breakdown";
  const std::string text = run_well(folder.path(), bench).out;
  for (const char* part : {" kernels, ", " library, ", " overhead\n", "onednn.conv ", "forward: conv at node"}) EXPECT_THAT(text, HasSubstr(part));
  const Json sums = Json::parse(run_well(folder.path(), bench + " --json").out).at("breakdown");
  for (const char* kind : {"kernels_ms", "library_ms", "overhead_ms"}) EXPECT_GT(sums.at(kind).get<double>(), 0) << kind;
}

TEST(BenchTool, SaysWhichDataDoNotFit) {
  const TempFolder folder;
  write_mlp_plan(folder);
  const ToolRun run = run_tool(folder.path(), "hone-run bench mlp.hone --data x=x.npy");
  EXPECT_EQ(run.exit, 4);
  EXPECT_THAT(run.err, HasSubstr("target"));
}

TEST(HoneBench, PrintsTheLineOfTheComparison) {
  const TempFolder folder;
  const std::string out = run_well(folder.path(), "hone-bench --workload tiny_mlp --threads 1 --seconds 0.1 --warmup 0.05 --json").out;
  EXPECT_EQ(std::ranges::count(out, '\n'), 1);
  const Json line = Json::parse(out);
  EXPECT_EQ(line.at("workload"), "tiny_mlp");
  EXPECT_EQ(line.at("framework"), "hone");
  EXPECT_EQ(line.at("variant"), "f32");
  EXPECT_EQ(line.at("threads"), 1);
  EXPECT_EQ(line.at("batch"), 16);
  for (const char* field : {"steps_timed", "ms_per_step_median", "ms_p10", "ms_p90", "samples_per_s", "peak_rss_mb", "compile_s", "steps_per_chunk"}) {
    ASSERT_TRUE(line.contains(field)) << field;
    EXPECT_GT(line.at(field).get<double>(), 0) << field;
  }
  EXPECT_LE(line.at("ms_p10"), line.at("ms_per_step_median"));
  EXPECT_LE(line.at("ms_per_step_median"), line.at("ms_p90"));
  for (const char* field : {"other_load", "first_step_s"}) EXPECT_GE(line.at(field).get<double>(), 0) << field;
  for (const char* field : {"version", "cpu"}) EXPECT_NE(line.at(field), "") << field;
  EXPECT_LT(line.at("final_loss").get<double>(), line.at("first_loss").get<double>() / 2);
  EXPECT_THAT(out, HasSubstr("\"other_load\": ")) << "the comparison's scripts look for a blank there";
}

TEST(HoneBench, KeepsWhatItIsToldTo) {
  const TempFolder folder;
  const std::string out = run_well(folder.path(), "hone-bench --workload tiny_mlp --seconds 0 --warmup 0 --keep kept").out;
  EXPECT_THAT(out, HasSubstr("workload             tiny_mlp\n"));
  for (const char* name : {"model.onnx", "train.toml", "x.npy", "y.npy", "plan.hone"}) EXPECT_NE(folder.read(std::string("kept/") + name), "") << name;
}

TEST(HoneBench, NamesTheNearestWorkload) {
  const TempFolder folder;
  const ToolRun run = run_tool(folder.path(), "hone-bench --workload tiny_mpl");
  EXPECT_EQ(run.exit, 2);
  EXPECT_THAT(run.err, HasSubstr("did you mean \"tiny_mlp\"?"));
}

}  // namespace
}  // namespace hone::test
