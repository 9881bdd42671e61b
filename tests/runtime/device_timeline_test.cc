// When what was put into a device's streams ran: on the track of its stream, in its order, within the host's time of it, also where it is replayed.
#include "runtime/device_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/device/sim_device.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Json = nlohmann::json;

constexpr TraceSpan kOuter = {.phase = "outer"}, kFirst = {.phase = "first"}, kSecond = {.phase = "second"};

class DeviceTimelineTest : public testing::Test {
 protected:
  DeviceTimelineTest() {
    timeline_.show(compute_, trace_.add_track("p", "computing"));
    timeline_.show(other_, trace_.add_track("p", "other"));
    timeline_.set_clock(compute_);
  }

  void put(Stream stream, const TraceSpan& what) {
    const Event begin = timeline_.begin(stream);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    device_.copy(stream, stream == compute_ ? b_ : c_, a_, 64);
    timeline_.end(stream, begin, what);
  }
  void wait() {
    device_.synchronize(compute_);
    device_.synchronize(other_);
    timeline_.flush();
  }
  struct Shown {
    std::string name;
    int track;
    double begin, end;  ///< microseconds
  };
  std::vector<Shown> shown() const {
    std::vector<Shown> spans;
    const Json json = Json::parse(trace_.to_json());
    for (const Json& event : json.at("traceEvents"))
      if (event.at("ph") == "X") spans.push_back({event.at("name"), event.at("tid"), event.at("ts"), event.at("ts").get<double>() + event.at("dur").get<double>()});
    return spans;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const Shown& span : shown()) list.push_back(std::to_string(span.track) + " " + span.name);
    return list;
  }

  Trace trace_;
  SimDevice device_{{.memory_bytes = 1 << 20}};
  Stream compute_ = device_.make_stream(), other_ = device_.make_stream();
  std::byte *a_ = device_.allocate(64, "a"), *b_ = device_.allocate(64, "b"), *c_ = device_.allocate(64, "c");
  DeviceTimeline timeline_{device_};
};

TEST_F(DeviceTimelineTest, SpansAreOfTheirStreamAndWithinTheHostsTime) {
  const double before = static_cast<double>(trace_.now()) / 1e3;
  put(compute_, kFirst);
  put(other_, kSecond);
  timeline_.flush();
  EXPECT_THAT(names(), IsEmpty()) << "nobody has waited for it";
  wait();
  const double after = static_cast<double>(trace_.now()) / 1e3;
  EXPECT_THAT(names(), ElementsAre("0 first", "1 second"));
  const std::vector<Shown> spans = shown();
  constexpr double kClocks = 50;  // between the host's reading and the device's
  EXPECT_GT(spans[0].begin, before - kClocks);
  EXPECT_GE(spans[0].end - spans[0].begin, 50);
  EXPECT_GE(spans[1].begin, spans[0].end) << "sim does one after the other";
  EXPECT_LT(spans[1].end, after);
}

TEST_F(DeviceTimelineTest, SpansInEachOther) {
  const Event begin = timeline_.begin(compute_);
  put(compute_, kFirst);
  put(compute_, kSecond);
  timeline_.end(compute_, begin, kOuter);
  wait();
  EXPECT_THAT(names(), ElementsAre("0 first", "0 second", "0 outer")) << "a span is there when it has ended";
  const std::vector<Shown> spans = shown();
  EXPECT_LE(spans[2].begin, spans[0].begin);
  EXPECT_GE(spans[2].end, spans[1].end);
}

TEST_F(DeviceTimelineTest, EachReplayHasTimesOfItsOwn) {
  device_.begin_capture(compute_);
  timeline_.begin_capture();
  put(compute_, kFirst);
  put(compute_, kSecond);
  const StepGraph graph = device_.end_capture(compute_);
  const std::vector<TimedSpan> spans = timeline_.end_capture();
  wait();
  EXPECT_THAT(names(), IsEmpty()) << "captured is not done";
  for (int run = 0; run < 3; ++run) {
    timeline_.set_clock(compute_);
    device_.replay(compute_, graph);
    timeline_.replayed(spans);
    put(other_, kOuter);
    wait();
  }
  EXPECT_THAT(names(), ElementsAre("0 first", "0 second", "0 first", "0 second", "0 first", "0 second", "1 outer", "1 outer", "1 outer"));
  const std::vector<Shown> all = shown();
  for (std::size_t i = 1; i < 6; ++i) EXPECT_GE(all[i].begin, all[i - 1].end - 1e-3);
  for (std::size_t run = 0; run < 3; ++run) EXPECT_GE(all[6 + run].begin, all[2 * run + 1].end - 1e-3) << run;
}

TEST_F(DeviceTimelineTest, WhatIsUnderWayKeepsItsClock) {
  put(other_, kFirst);
  for (int run = 0; run < 4; ++run) {
    timeline_.set_clock(compute_);
    put(compute_, kSecond);
    device_.synchronize(compute_);
    timeline_.flush();
  }
  EXPECT_THAT(names(), ElementsAre("0 second", "0 second", "0 second", "0 second"));
  wait();
  const std::vector<Shown> all = shown();
  ASSERT_EQ(all.size(), 5U);
  EXPECT_LE(all[4].end, all[0].begin + 1e-3) << "it ran before all others";
}

}  // namespace
}  // namespace hone
