// The simulation of more devices, against sums done by hand.
#include "runtime/train/scaling.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

/// 10 ms of computing, then 1 MB, 20 ms, then 3 MB, 10 ms.
const StepTimeline kStep{.exchanges = {{0.010, 1e6}, {0.030, 3e6}}, .compute = 0.040};

TEST(Scaling, OneDeviceExchangesNothing) {
  const ScaledStep alone = simulate(kStep, 1, {});
  EXPECT_EQ(alone.sent, 0);
  EXPECT_DOUBLE_EQ(alone.in_turn, 0.040);
  EXPECT_DOUBLE_EQ(alone.overlapped, 0.040);
}

TEST(Scaling, ExchangesTakeWhatTheWireTakes) {
  const Network network{.bytes_per_second = 1e9, .latency = 1e-4, .message = 1e-5};
  const ScaledStep four = simulate(kStep, 4, network);
  EXPECT_DOUBLE_EQ(four.sent, 2 * 3 * (1e6 + 3e6) / 4);
  const double first = 2 * (1e-4 + 3 * (1e-5 + 0.25e6 / 1e9)), second = 2 * (1e-4 + 3 * (1e-5 + 0.75e6 / 1e9));
  EXPECT_DOUBLE_EQ(four.exchange, first + second);
  EXPECT_DOUBLE_EQ(four.in_turn, 0.040 + first + second);
  EXPECT_DOUBLE_EQ(four.overlapped, 0.030 + second + 0.010) << "the first one is over before the second begins";
}

TEST(Scaling, ASlowNetworkMakesExchangesWaitForEachOther) {
  const Network network{.bytes_per_second = 1e7, .latency = 0, .message = 0};
  const ScaledStep two = simulate(kStep, 2, network);
  EXPECT_DOUBLE_EQ(two.exchange, 0.1 + 0.3);
  EXPECT_DOUBLE_EQ(two.overlapped, 0.010 + 0.1 + 0.3 + 0.010);
}

TEST(Scaling, ReadsTheTimelineFromMeasuredSteps) {
  plan::Entry entry;
  entry.name = "replica_step";
  entry.buffers.push_back({.name = "w/gradient", .dtype = DType::kF32, .shape = {Dim(250), Dim(1000)}});
  entry.steps = {{plan::KernelStep{}, ""}, {plan::AllReduceStep{{0}, 2}, ""}, {plan::KernelStep{}, ""}};
  const StepTime times[] = {{.runs = 10, .seconds = 0.1}, {.runs = 10, .seconds = 5}, {.runs = 10, .seconds = 0.05}};
  const StepTimeline timeline = timeline_of(entry, times);
  ASSERT_EQ(timeline.exchanges.size(), 1u);
  EXPECT_DOUBLE_EQ(timeline.exchanges[0].ready, 0.01);
  EXPECT_DOUBLE_EQ(timeline.exchanges[0].bytes, 1e6);
  EXPECT_DOUBLE_EQ(timeline.compute, 0.015);
}

}  // namespace
}  // namespace hone
