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
