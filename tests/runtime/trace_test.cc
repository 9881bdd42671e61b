// What a trace keeps when it is longer than its memory.
#include "runtime/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/plan/plan.h"

namespace hone {
namespace {

using Json = nlohmann::json;

std::vector<std::string> names_of(const Trace& trace) {
  std::vector<std::string> names;
  const Json json = Json::parse(trace.to_json());
  for (const Json& event : json.at("traceEvents"))
    if (event.at("ph") == "X") names.push_back(event.at("name"));
  return names;
}

TEST(Trace, BeginsWithAWholeStepOfWhichNothingIsForgotten) {
  Trace trace(16);
  TraceTrack &loop = trace.add_track("training", "loop"), &thread = trace.add_track("device", "thread 0");
  const plan::Step kernel{.what = plan::KernelStep{.symbol = "add_1"}, .origin = "forward: add at node \"a\""};
  std::int64_t now = 1;
  for (int step = 1; step <= 100; ++step) {
    const std::int64_t begin = now;
    for (int i = 0; i < 6; ++i) thread.add({.begin = now, .end = now + 1, .step = &kernel}), now += 2;
    loop.add({.begin = begin, .end = now, .phase = Trace::kStep, .number = step});
  }
  // Of 16 spans two whole steps of six.
  std::vector<std::string> expected = {"step 99", "step 100"};
  expected.resize(2 + 12, "add_1");
  EXPECT_EQ(names_of(trace), expected);
}

TEST(Trace, OfAShortRunIsWhole) {
  Trace trace(16);
  TraceTrack& loop = trace.add_track("training", "loop");
  {
    const TraceScope outer(&loop, "validation");
    const TraceScope inner(&loop, Trace::kStep, 1);
  }
  EXPECT_EQ(names_of(trace), (std::vector<std::string>{"step 1", "validation"}));
}

/// Which program and which of its entries a span is of: kernels of several entries, and of a loop's body, may have one name.
TEST(Trace, SaysOfWhichEntryAStepIs) {
  const plan::Step kernel{.what = plan::KernelStep{.symbol = "add_1"}, .origin = ""};
  const auto entry_of = [](const std::string& name, std::vector<plan::Step> steps) { return plan::Entry{.name = name, .feeds = {}, .results = {}, .buffers = {}, .steps = std::move(steps), .equations = {}}; };
  plan::RegionStep loop{.bodies = {entry_of("body", {kernel})}};
  const plan::Program program{.target = "sim", .code = {}, .persistents = {}, .entries = {entry_of("train_step", {kernel, {.what = loop, .origin = ""}}), entry_of("predict", {kernel})}};
  Trace trace;
  trace.shows(program);
  TraceTrack& track = trace.add_track("device", "thread 0");
  std::int64_t now = 0;
  for (const plan::Step* step : {&program.entries[0].steps[0], &program.entries[1].steps[0], &std::get<plan::RegionStep>(program.entries[0].steps[1].what).bodies[0].steps[0], &kernel}) track.add({.begin = now, .end = ++now, .step = step});
  const Json json = Json::parse(trace.to_json());
  EXPECT_EQ(json.at("otherData").at("targets"), Json::array({"sim"}));
  std::vector<std::string> entries;
  for (const Json& event : json.at("traceEvents"))
    if (event.at("ph") == "X") entries.push_back(event.at("args").value("entry", "none"));
  EXPECT_EQ(entries, (std::vector<std::string>{"train_step", "predict", "train_step, in a body", "none"}));
}

TEST(Trace, HostileNamesAreText) {
  Trace trace;
  const std::string name = "\"},{\"ph\":\"X\x00\xff\n</script>";
  const plan::Step kernel{.what = plan::KernelStep{.symbol = name}, .origin = "forward: " + std::string(1 << 20, 'a') + name, .nodes = {name}};
  trace.add_track(name, name).add({.begin = 1, .end = 2, .step = &kernel});
  EXPECT_EQ(names_of(trace).size(), 1u);
  EXPECT_LT(trace.to_json().size(), 10'000u);
}

}  // namespace
}  // namespace hone
