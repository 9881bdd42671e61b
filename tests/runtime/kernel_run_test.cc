// How neighbouring kernels are shared out among threads, the barrier between them, and the trial of one thread against all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "runtime/kernel_run.h"

namespace hone {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kLarge = 1'000'000, kSmall = 10'000;  // work: split, not split, in a run that is worth a team

/// The first `read_only` buffers are read, the others written.
BoundKernel kernel(std::int64_t work, std::vector<std::uint32_t> buffers, std::uint32_t read_only) {
  return {.buffers = std::move(buffers), .read_only = read_only, .range = work == kSmall ? 1 : 1000, .work = work};
}

/// Each in a space of its own.
std::vector<MemoryRange> apart(std::uint32_t count) {
  std::vector<MemoryRange> memory;
  for (std::uint32_t i = 0; i < count; ++i) memory.push_back({.space = i, .begin = 0, .end = 100});
  return memory;
}

std::vector<bool> waits(std::vector<BoundKernel> kernels, const std::vector<MemoryRange>& memory, int threads = 2) {
  KernelRun run{.kernels = std::move(kernels), .trial = {}};
  share_out(run, memory, threads);
  std::vector<bool> found;
  for (const BoundKernel& kernel : run.kernels) found.push_back(kernel.waits);
  return found;
}

TEST(ShareOut, WaitsOnlyForWhatAnotherThreadDid) {
  const auto memory = apart(6);
  EXPECT_THAT(waits({kernel(kLarge, {0, 1}, 1), kernel(kLarge, {0, 2}, 1), kernel(kLarge, {0, 3}, 1)}, memory), ElementsAre(false, false, false))
      << "all read one buffer";
  EXPECT_THAT(waits({kernel(kLarge, {0, 1}, 1), kernel(kLarge, {1, 2}, 1), kernel(kLarge, {2, 3}, 1)}, memory), ElementsAre(false, true, true))
      << "each reads what the last one wrote";
  EXPECT_THAT(waits({kernel(kLarge, {0, 1}, 1), kernel(kLarge, {2, 0}, 1)}, memory), ElementsAre(false, true)) << "overwrites what was read";
  EXPECT_THAT(waits({kernel(kLarge, {0, 1}, 1), kernel(kLarge, {2, 1}, 1)}, memory), ElementsAre(false, true)) << "writes again";
  EXPECT_THAT(waits({kernel(kLarge, {0, 1}, 1), kernel(kLarge, {1, 2}, 1), kernel(kLarge, {1, 3}, 1)}, memory), ElementsAre(false, true, false))
      << "one barrier serves two";
  EXPECT_THAT(waits({kernel(kLarge, {0, 1}, 0), kernel(kLarge, {0, 2}, 0)}, memory), ElementsAre(false, true)) << "may write to all";
}

TEST(ShareOut, MemoryThatOverlapsIsShared) {
  const std::vector<MemoryRange> memory = {{0, 0, 100}, {0, 100, 200}, {0, 150, 250}, {1, 150, 250}, {0, 200, 200}};
  EXPECT_THAT(waits({kernel(kLarge, {0, 1}, 1), kernel(kLarge, {0, 2}, 1)}, memory), ElementsAre(false, true));
  EXPECT_THAT(waits({kernel(kLarge, {0, 1}, 1), kernel(kLarge, {0, 3}, 1)}, memory), ElementsAre(false, false)) << "another space";
  EXPECT_THAT(waits({kernel(kLarge, {0, 2}, 1), kernel(kLarge, {0, 4}, 1)}, memory), ElementsAre(false, false)) << "an empty buffer";
}

TEST(ShareOut, SmallKernelsThatNeedEachOtherStayOnOneThread) {
  KernelRun run{.kernels = {kernel(kSmall, {0, 1}, 1), kernel(kSmall, {0, 2}, 1), kernel(kSmall, {2, 3}, 1), kernel(kSmall, {1, 3, 4}, 2)}, .trial = {}};
  run.kernels[2].work = 9'000;  // so that the last one goes to the other thread
  share_out(run, apart(5), 2);
  const auto thread_of = [&](std::size_t i) { return run.kernels[i].pieces[0].end > 0 ? 0 : 1; };
  EXPECT_NE(thread_of(0), thread_of(1)) << "independent";
  EXPECT_EQ(thread_of(2), thread_of(1));
  EXPECT_FALSE(run.kernels[2].waits) << "the same thread did what it needs";
  EXPECT_TRUE(run.kernels[3].waits) << "two threads did";
}

TEST(ShareOut, LittleWorkIsNotTried) {
  KernelRun run{.kernels = {kernel(100, {0, 1}, 1), kernel(100, {1, 2}, 1)}, .trial = {}};
  share_out(run, apart(3), 2);
  EXPECT_FALSE(run.trial.wants_time());
  EXPECT_EQ(run.trial.next(), Trial::Way::kAlone);
}

TEST(ShareOut, MuchWorkIsNotTriedEither) {
  KernelRun run{.kernels = {kernel(kLarge, {0, 1}, 1), kernel(kSmall, {1, 2}, 1)}, .trial = {}};
  run.kernels[0].work = std::int64_t{1} << 30;
  share_out(run, apart(3), 2);
  EXPECT_FALSE(run.trial.wants_time());
  EXPECT_EQ(run.trial.next(), Trial::Way::kTeam);
  KernelRun one_point = {.kernels = {run.kernels[0]}, .trial = {}};
  one_point.kernels[0].range = 1;
  share_out(one_point, apart(3), 2);
  EXPECT_TRUE(one_point.trial.wants_time()) << "threads have nothing to share";
}

/// Whatever two threads touch, one of them writing, has a barrier between.
TEST(ShareOut, IsFreeOfRaces) {
  std::mt19937 random(7);
  const auto below = [&random](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  for (int round = 0; round < 300; ++round) {
    const int threads = 2 + static_cast<int>(below(3));
    std::vector<MemoryRange> memory;
    for (int i = 0; i < 12; ++i) {
      const std::size_t begin = below(20);
      memory.push_back({.space = below(3), .begin = begin, .end = begin + below(6)});
    }
    KernelRun run;
    for (int i = 0; i < 30; ++i)
      run.kernels.push_back(kernel(below(3) == 0 ? kSmall : below(3) == 0 ? 5'000 : kLarge, {below(12), below(12), below(12)}, below(4)));
    share_out(run, memory, threads);
    const auto conflict = [&](const BoundKernel& a, const BoundKernel& b) {
      for (std::size_t i = 0; i < a.buffers.size(); ++i)
        for (std::size_t j = 0; j < b.buffers.size(); ++j) {
          const MemoryRange &x = memory[a.buffers[i]], &y = memory[b.buffers[j]];
          if ((i >= a.read_only or j >= b.read_only) and x.space == y.space and std::max(x.begin, y.begin) < std::min(x.end, y.end)) return true;
        }
      return false;
    };
    const auto on_other_threads = [&](const BoundKernel& a, const BoundKernel& b) {
      for (int i = 0; i < threads; ++i)
        for (int j = 0; j < threads; ++j) {
          const RangePiece &x = a.pieces[static_cast<std::size_t>(i)], &y = b.pieces[static_cast<std::size_t>(j)];
          if (i != j and x.begin < x.end and y.begin < y.end) return true;
        }
      return false;
    };
    for (std::size_t j = 0; j < run.kernels.size(); ++j)
      for (std::size_t i = j; i-- > 0 and not run.kernels[i + 1].waits;)
        ASSERT_FALSE(conflict(run.kernels[i], run.kernels[j]) and on_other_threads(run.kernels[i], run.kernels[j]))
            << "round " << round << ", kernels " << i << " and " << j;
  }
}

TEST(ShareOut, PiecesCoverEachKernelOnce) {
  KernelRun run{.kernels = {kernel(kLarge, {0, 1}, 1), kernel(kSmall, {1, 2}, 1), kernel(kLarge, {2, 3}, 1)}, .trial = {}};
  share_out(run, apart(4), 3);
  for (const BoundKernel& kernel : run.kernels) {
    std::int64_t points = 0;
    for (const RangePiece& piece : kernel.pieces) points += piece.end - piece.begin;
    EXPECT_EQ(points, kernel.range);
  }
}

TEST(TeamRun, MembersMeetAtEveryBarrier) {
  Team team(3);
  const Team::InUse in_use(team);
  constexpr int kRounds = 2000;
  std::atomic<int> arrived = 0, late = 0;
  team.run([&](const Team::Member& member) {
    for (int round = 1; round <= kRounds; ++round) {
      ++arrived;
      member.wait();
      if (arrived < round * member.count()) ++late;
      member.wait();
    }
  });
  EXPECT_EQ(late, 0);
}

TEST(TeamRun, WaitsForAMemberThatTakesLong) {  // so long that the others sleep
  Team team(2);
  const Team::InUse in_use(team);
  int written = 0, seen = 0, count = 0;
  for (int slow = 0; slow < 2; ++slow) {
    team.run([&](const Team::Member& member) {
      if (member.number() == slow) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        written = 1 + slow;
      }
      member.wait();
      if (member.number() != slow) seen = written;
      if (member.number() == 0) count = member.count();
    });
    if (count == 2) { EXPECT_EQ(seen, 1 + slow); }
  }
}

/// Runs the trial to its end; seconds(way, i) is what the i-th run of a turn takes. Returns the number of runs.
template <typename Seconds>
int run_to_end(Trial& trial, const Seconds& seconds) {
  int runs = 0, in_a_row = 0;
  Trial::Way last = Trial::Way::kAlone;
  for (; trial.wants_time(); ++runs) {
    const Trial::Way way = trial.next();
    in_a_row = way == last ? in_a_row : 0;
    last = way;
    trial.add(seconds(way, in_a_row++));
  }
  return runs;
}

TEST(Trial, KeepsTheFasterWayAndForgetsTheFirstRunOfATurn) {
  for (const Trial::Way faster : {Trial::Way::kAlone, Trial::Way::kTeam}) {
    Trial trial;
    run_to_end(trial, [&](Trial::Way way, int i) { return i == 0 ? 1e-9 : way == faster ? 1e-6 : 2e-6; });
    EXPECT_EQ(trial.next(), faster);
  }
}

TEST(Trial, MayRestBeforeItsFirstLook) {
  Trial trial(3);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(trial.wants_time());
    EXPECT_EQ(trial.next(), Trial::Way::kAlone);
  }
  EXPECT_TRUE(trial.wants_time()) << "the third run";
  run_to_end(trial, [](Trial::Way way, int) { return way == Trial::Way::kAlone ? 2e-6 : 1e-6; });
  EXPECT_EQ(trial.next(), Trial::Way::kTeam);
}

TEST(Trial, AWayThatIsSlowToStartMayBeTheFasterOne) {
  Trial trial;
  run_to_end(trial, [](Trial::Way way, int i) { return way == Trial::Way::kAlone ? 2e-6 : i == 0 ? 1e-3 : 1e-6; });
  EXPECT_EQ(trial.next(), Trial::Way::kTeam) << "its threads slept while the other way was tried";
}

TEST(Trial, TakesTheBestTimeOfEach) {
  Trial trial;
  int tries = 0;
  run_to_end(trial, [&](Trial::Way way, int) { return way == Trial::Way::kAlone ? 5e-6 : tries++ == 4 ? 4e-6 : 1e-3; });
  EXPECT_EQ(trial.next(), Trial::Way::kTeam) << "disturbed all but once";
}

TEST(Trial, OfWhatTakesLongEndsSoon) {
  Trial trial;
  EXPECT_EQ(run_to_end(trial, [](Trial::Way, int) { return 1; }), 18) << "three turns of each, three runs in a turn";
  EXPECT_EQ(trial.next(), Trial::Way::kAlone) << "of equals the one that needs less";
}

TEST(Trial, RestsLongerEachTimeUnlessItIsToldOtherwise) {
  const auto rests = [](Trial trial) {
    std::vector<std::int64_t> found;
    for (int look = 0; look < 3; ++look) {
      run_to_end(trial, [](Trial::Way, int) { return 1e-6; });
      std::int64_t runs = 2;  // one did not want to be timed, one does
      while (not trial.wants_time()) ++runs;
      trial.add(1e-6);
      found.push_back(runs);
    }
    return found;
  };
  EXPECT_THAT(rests(Trial()), ElementsAre(1000, 10'000, 100'000));
  EXPECT_THAT(rests(Trial(0, 1000)), ElementsAre(1000, 1000, 1000));
}

TEST(Trial, LooksAgain) {
  Trial trial;
  run_to_end(trial, [](Trial::Way way, int) { return way == Trial::Way::kAlone ? 1e-6 : 2e-6; });
  EXPECT_EQ(trial.next(), Trial::Way::kAlone);
  std::int64_t runs = 1;  // one did not want to be timed
  while (not trial.wants_time()) ++runs;
  EXPECT_EQ(runs + 1, 1000);
  while (true) {
    trial.add(trial.next() == Trial::Way::kAlone ? 2e-6 : 1e-6);
    if (not trial.wants_time()) break;
  }
  EXPECT_EQ(trial.next(), Trial::Way::kTeam) << "what was slower is faster now";
}

TEST(Trial, WhatIsDecidedIsNotLookedAtAgain) {
  Trial trial;
  trial.decide(Trial::Way::kTeam);
  for (int i = 0; i < 3000; ++i) ASSERT_FALSE(trial.wants_time());
  EXPECT_EQ(trial.next(), Trial::Way::kTeam);
}

}  // namespace
}  // namespace hone
