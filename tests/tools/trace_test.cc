// hone-run --trace and --roofline: files that Perfetto can draw, and numbers that follow from the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

struct Span {
  double begin, end;
  std::string name, category;
  Json arguments;
};

/// The spans of a trace by "process/thread", as a viewer sorts them: by their begin, the longer one first.
std::map<std::string, std::vector<Span>> tracks_of(const Json& trace) {
  std::map<std::pair<int, int>, std::string> threads;
  std::map<int, std::string> processes;
  std::map<std::string, std::vector<Span>> tracks;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "M") continue;
    if (event.at("name") == "process_name") processes[event.at("pid")] = event.at("args").at("name");
    else threads[{event.at("pid"), event.at("tid")}] = event.at("args").at("name");
  }
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts"), duration = event.at("dur");
    tracks[processes.at(event.at("pid")) + "/" + threads.at({event.at("pid"), event.at("tid")})].push_back(
        {begin, begin + duration, event.at("name"), event.at("cat"), event.value("args", Json())});
  }
  for (auto& [name, spans] : tracks) std::ranges::stable_sort(spans, [](const Span& a, const Span& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  return tracks;
}

/// Spans lie in each other or one after the other.
void expect_no_overlaps(const std::map<std::string, std::vector<Span>>& tracks) {
  constexpr double kRounding = 1e-3;  // of the last digit, a nanosecond
  for (const auto& [track, spans] : tracks) {
    std::vector<const Span*> open;
    for (const Span& span : spans) {
      EXPECT_GE(span.end, span.begin);
      while (not open.empty() and open.back()->end <= span.begin + kRounding) open.pop_back();
      if (not open.empty()) EXPECT_LE(span.end, open.back()->end + kRounding) << track << ": " << span.name << " overlaps " << open.back()->name;
      open.push_back(&span);
    }
  }
}

std::vector<std::string> names_of(const std::vector<Span>& spans) {
  std::vector<std::string> names;
  for (const Span& span : spans) names.push_back(span.name);
  return names;
}

class TraceTool : public ::testing::Test {
 protected:
  TraceTool() { write_conv_plan(folder_); }
  Json trace(const std::string& command) {
    run_well(folder_.path(), command + " --trace trace.json");
    return Json::parse(folder_.read("trace.json"));
  }
  TempFolder folder_;
};

TEST_F(TraceTool, ShowsStepsAndWhatRunsInThem) {
  const auto tracks = tracks_of(trace("hone-run train conv.hone --train x=x.npy,y=y.npy --valid x=x.npy,y=y.npy --steps 7 --run-dir run --quiet"));
  expect_no_overlaps(tracks);
  const std::vector<Span>& loop = tracks.at("training/training loop");
  const auto names = names_of(loop);
  for (const char* name : {"step 1", "step 7", "next batch", "validation of epoch 1", "save"}) EXPECT_THAT(names, Contains(name));
  EXPECT_EQ(std::ranges::count_if(names, [](const std::string& name) { return name.starts_with("step "); }), 7);
  const std::vector<Span>& device = tracks.at("device/thread 0, which calls libraries");
  std::set<std::string> parts;
  for (const Span& span : device) parts.insert(span.category);
  for (const char* part : {"forward", "backward", "update"}) EXPECT_TRUE(parts.contains(part)) << part;
  const auto conv = std::ranges::find(device, "onednn.conv", &Span::name);
  ASSERT_NE(conv, device.end());
  EXPECT_THAT(conv->arguments.at("origin").get<std::string>(), StartsWith("forward: conv at node"));
  EXPECT_THAT(conv->arguments.at("nodes"), Contains("conv"));
  const auto first = std::ranges::find(loop, "step 1", &Span::name);
  EXPECT_GE(device.front().begin, first->begin) << "what runs runs in a step";
}

TEST_F(TraceTool, HasATrackForEachThreadOfEachReplica) {
  const auto tracks = tracks_of(trace("hone-run train conv.hone --train x=x.npy,y=y.npy --steps 3 --virtual 2 --threads 4 --quiet --out trained.onnx"));
  expect_no_overlaps(tracks);
  for (const std::string replica : {"replica 0", "replica 1"}) {
    const auto& caller = tracks.at(replica + "/thread 0, which calls libraries");
    EXPECT_THAT(names_of(caller), Contains("all_reduce")) << replica;
    EXPECT_GE(std::ranges::count(names_of(caller), "onednn.conv"), 3) << replica;
  }
}

TEST_F(TraceTool, HasATrackForEachStreamOfADevice) {
  run_well(folder_.path(), "hone-compile conv.onnx -r train.toml --target cpu,sim -o conv.hone");
  const auto tracks = tracks_of(trace("hone-run train conv.hone --train x=x.npy,y=y.npy --device sim --steps 6 --quiet --out trained.onnx"));
  expect_no_overlaps(tracks);
  const std::vector<Span>& computing = tracks.at("device/sim:0, computing");
  std::set<std::string> parts;
  for (const Span& span : computing) parts.insert(span.category);
  for (const char* part : {"forward", "backward", "update", "run"}) EXPECT_TRUE(parts.contains(part)) << part;
  const auto names = names_of(computing);
  EXPECT_THAT(names, Contains("feed"));
  EXPECT_THAT(names, Contains("copy to the host"));
  const auto forward = std::ranges::find(computing, "forward", &Span::category);
  ASSERT_NE(forward, computing.end());
  EXPECT_EQ(std::ranges::count(names, forward->name), 6) << "once a step, replayed or not";
  EXPECT_THAT(forward->arguments.at("origin").get<std::string>(), StartsWith("forward: "));
  EXPECT_EQ(tracks.at("device/sim:0, batches to come").size(), 6U) << "in each step the batch of the next one";
  std::vector<const Span*> steps;
  for (const Span& span : tracks.at("training/training loop"))
    if (span.name.starts_with("step ")) steps.push_back(&span);
  ASSERT_EQ(steps.size(), 6U);
  constexpr double kClocks = 300;  // microseconds between the host's reading of its clock and the device's
  for (const Span& span : computing)
    if (span.category != "run")
      EXPECT_TRUE(std::ranges::any_of(steps, [&](const Span* step) { return span.begin > step->begin - kClocks and span.end < step->end + kClocks; })) << span.name << " runs outside of all steps";
}

TEST_F(TraceTool, ShowsExchangesOfDevicesBesideTheBackwardPass) {
  run_well(folder_.path(), "hone-compile conv.onnx -r train.toml --target cpu,sim -o conv.hone");
  const auto tracks = tracks_of(trace("hone-run train conv.hone --train x=x.npy,y=y.npy --device sim:0,1 --steps 4 --quiet --out trained.onnx"));
  expect_no_overlaps(tracks);
  for (const std::string replica : {"0", "1"}) {
    const auto& exchanges = tracks.at("replica " + replica + "/sim:" + replica + ", exchanges");
    EXPECT_EQ(std::ranges::count(names_of(exchanges), "all_reduce") % 4, 0);
    EXPECT_THAT(names_of(exchanges), Contains("all_reduce"));
    EXPECT_EQ(tracks.at("replica " + replica + "/sim:" + replica + ", batches to come").size(), 4U);
  }
  const auto shared = tracks_of(trace("hone-run train conv.hone --train x=x.npy,y=y.npy --device sim --virtual 2 --steps 4 --quiet --out trained.onnx"));
  EXPECT_THAT(names_of(shared.at("replica 1/sim:0, exchanges")), Contains("all_reduce"));
  const auto through_host = tracks_of(trace("hone-run train conv.hone --train x=x.npy,y=y.npy --device sim --virtual 2 --shards 4 --steps 4 --quiet --out trained.onnx"));
  EXPECT_THAT(names_of(through_host.at("replica 1/host")), Contains("all_reduce"));
}

TEST_F(TraceTool, OfABenchmarkIsOfStepsBehindTheTimedOnes) {
  const auto tracks = tracks_of(trace("hone-run bench conv.hone --steps 3 --warmup 0 --roofline"));
  expect_no_overlaps(tracks);
  EXPECT_EQ(tracks.at("training/benchmark").size(), 20u);
  EXPECT_THAT(names_of(tracks.at("device/thread 0, which calls libraries")), Contains("onednn.conv"));
}

TEST_F(TraceTool, GivesHoneDumpItsTimes) {
  run_well(folder_.path(), "hone-run bench conv.hone --steps 3 --warmup 0 --trace trace.json");
  const Json plan = Json::parse(run_well(folder_.path(), "hone-dump conv.hone --as json --trace trace.json").out);
  const auto& entries = plan.at("program").at("entries");
  const auto entry = std::ranges::find_if(entries, [](const Json& each) { return each.at("name") == "train_step"; });
  ASSERT_NE(entry, entries.end());
  for (const Json& step : entry->at("steps"))
    if (step.at("name") == "onednn.conv") EXPECT_EQ(step.at("runs"), 20) << step;
}

TEST_F(TraceTool, IsRefusedBeforeTheStartWhereItCannotBeWritten) {
  const std::string train = "hone-run train conv.hone --train x=x.npy,y=y.npy --out trained.onnx --trace ";
  const ToolRun run = run_tool(folder_.path(), train + "no/trace.json");
  EXPECT_EQ(run.exit, 7);
  EXPECT_THAT(run.err, HasSubstr("no/trace.json"));
  EXPECT_EQ(run_tool(folder_.path(), train + "trace.json --dry-run").exit, 2);
}

TEST_F(TraceTool, RooflineTellsHowNearThePeakEachKernelIs) {
  const std::string bench = "hone-run bench conv.hone --steps 3 --warmup 0 --batch 32 --roofline";
  const std::string text = run_well(folder_.path(), bench).out;
  for (const char* part : {"roofline: 1 thread of this machine can move", "GB/s", "GFLOP/s", "onednn.conv", "memory", "worth looking at", "of peak"}) EXPECT_THAT(text, HasSubstr(part));
  const Json sums = Json::parse(run_well(folder_.path(), bench + " --json").out).at("roofline");
  // Nothing that computes reaches a core's bandwidth of 1 TB/s or 1 TFLOP/s on one thread.
  EXPECT_GT(sums.at("peak_gb_per_s").get<double>(), 0.1);
  EXPECT_LT(sums.at("peak_gb_per_s").get<double>(), 1000);
  EXPECT_GT(sums.at("peak_gflop_per_s").get<double>(), 0.1);
  EXPECT_LT(sums.at("peak_gflop_per_s").get<double>(), 1000);
  // conv: 3x3 windows of 1 channel to 4 channels at 8x8 points, forward and for its weight's gradient; dense: 64 to 3, forward and for both gradients.
  // pool: windows of 25 elements, with a comparison each; its gradient: 25 windows for each of 64 points, with a comparison, a choice and a sum each.
  constexpr double kConv = 2.0 * 32 * 4 * 64 * 9, kDense = 2.0 * 32 * 64 * 3, kPool = 32.0 * 4 * 25 * (16 + 3 * 64);
  EXPECT_GT(sums.at("gflop_per_step").get<double>() * 1e9, 2 * kConv + 3 * kDense);
  EXPECT_LT(sums.at("gflop_per_step").get<double>() * 1e9, 4 * (2 * kConv + 3 * kDense + kPool)) << "elementwise work is of the same order in so small a net";
  EXPECT_GT(sums.at("share_of_peak").get<double>(), 0);
  EXPECT_LE(sums.at("share_of_peak").get<double>(), 1);
}

/// The host plays it: what the host could do says nothing of it.
TEST_F(TraceTool, RooflineOfADeviceIsNotHeldAgainstTheHost) {
  run_well(folder_.path(), "hone-compile conv.onnx -r train.toml --target sim --levels x86-64-v3 -o sim.hone");
  const std::string bench = "hone-run bench sim.hone --device sim --steps 3 --warmup 0 --roofline";
  const std::string text = run_well(folder_.path(), bench).out;
  EXPECT_THAT(text, testing::AllOf(HasSubstr("what sim:0 can do at most is not known"), HasSubstr("until the host has waited for it"), HasSubstr("GFLOP/s"), Not(HasSubstr("this machine")), Not(HasSubstr(" %  x"))));
  EXPECT_THAT(text, Not(testing::ContainsRegex("[0-9] % +(memory|arithmetic)")));
  const Json sums = Json::parse(run_well(folder_.path(), bench + " --json").out).at("roofline");
  EXPECT_GT(sums.at("gflop_per_step").get<double>(), 0);
  EXPECT_FALSE(sums.contains("peak_gb_per_s"));
  EXPECT_FALSE(sums.contains("share_of_peak"));
}

}  // namespace
}  // namespace hone::test
