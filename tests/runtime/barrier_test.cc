#include "runtime/device/barrier.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "runtime/device/cpu.h"

namespace hone {
namespace {

using Waiting = Barrier::Waiting;

class Barriers : public testing::TestWithParam<Waiting> {};
INSTANTIATE_TEST_SUITE_P(Both, Barriers, testing::Values(Waiting::kSpinning, Waiting::kSleeping), [](const auto& of) { return of.param == Waiting::kSpinning ? "Spinning" : "Sleeping"; });

/// body(number) in each of `count` threads.
template <typename Body>
void in_threads(int count, const Body& body) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
}

TEST_P(Barriers, ShowWhatAllWroteBefore) {
  constexpr int kThreads = 3, kRounds = 5'000;
  Barrier barrier;
  std::vector<int> written(kThreads, -1);
  std::vector<int> wrong(kThreads, 0);
  in_threads(kThreads, [&](int me) {
    for (int round = 0; round < kRounds; ++round) {
      written[static_cast<std::size_t>(me)] = round;
      // Now and then one comes so late that the others sleep, each time a little later.
      if (round % 50 == 0 and round / 50 % kThreads == me) std::this_thread::sleep_for(std::chrono::microseconds(round / 10));
      barrier.wait(kThreads, GetParam());
      for (const int other : written) wrong[static_cast<std::size_t>(me)] += other != round;
      barrier.wait(kThreads, GetParam());
    }
  });
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

TEST_P(Barriers, LetEverybodyGoOnceAbandoned) {
  Barrier barrier;
  in_threads(3, [&](int me) {
    if (me == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      barrier.abandon();
    }
    EXPECT_FALSE(barrier.wait(3, GetParam()).have_all_come);
  });
  EXPECT_TRUE(barrier.is_abandoned());
}

TEST_P(Barriers, ARoundThatAllReachedIsWholeThoughItIsAbandonedAtOnce) {
  for (int i = 0; i < 300; ++i) {
    Barrier barrier;
    in_threads(2, [&](int me) {
      EXPECT_TRUE(barrier.wait(2, GetParam()).have_all_come);
      if (me == 0) barrier.abandon();
    });
    EXPECT_FALSE(barrier.wait(2, GetParam()).have_all_come);
  }
}

TEST(BarrierWaiting, OfMoreThreadsThanCoresSleep) {
  EXPECT_EQ(Barrier::waiting_of(usable_cores()), Waiting::kSpinning);
  EXPECT_EQ(Barrier::waiting_of(usable_cores() + 1), Waiting::kSleeping);
}

TEST(Cores, AThreadLeavesItsOwnAndMayStillUseAll) {
  const int cores = usable_cores();
  if (cores < 2) GTEST_SKIP() << "one core";
  int left = 0;
  for (int i = 0; i < 20; ++i) {  // the scheduler may move it, too
    const int before = this_core();
    leave_this_core();
    left += this_core() != before;
  }
  EXPECT_GT(left, 15);
  EXPECT_EQ(usable_cores(), cores);
}

}  // namespace
}  // namespace hone
