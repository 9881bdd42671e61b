#include "runtime/device/barrier.h"

#include <immintrin.h>

#include <chrono>

#include "runtime/device/cpu.h"

namespace hone {
namespace {

/// About twice what waking a thread up takes. A thread that goes on spinning beside a busy neighbour keeps the core from the thread it waits for; one that offers its core (sched_yield) instead of sleeping gives it away for a whole slice
/// of the scheduler's, though the others may arrive the next moment (docs/performance.md).
constexpr std::chrono::microseconds kLongestSpin{100};
constexpr int kPausesBetweenLooksAtTheClock = 64;

/// Does `word` change while this thread may spin?
bool changes_soon(const std::atomic<std::uint32_t>& word, std::uint32_t from) {
  const auto changed = [&] {
    for (int i = 0; i < kPausesBetweenLooksAtTheClock; ++i) {
      if (word.load(std::memory_order_acquire) != from) return true;
      _mm_pause();
    }
    return false;
  };
  if (changed()) return true;  // most waits end here, and need no clock
  for (const auto end = std::chrono::steady_clock::now() + kLongestSpin; std::chrono::steady_clock::now() < end;)
    if (changed()) return true;
  return false;
}

}  // namespace

Barrier::Waiting Barrier::waiting_of(int threads) { return threads > usable_cores() ? Waiting::kSleeping : Waiting::kSpinning; }

Barrier::Waited Barrier::wait(int count, Waiting how) {
  std::uint32_t before = round_.load(std::memory_order_acquire);  // the round cannot change before this thread has arrived
  if ((before & kAbandoned) != 0) return {.have_all_come = false, .has_slept = false};
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(count)) {
    arrived_.store(0, std::memory_order_relaxed);  // before anybody goes on to the next round
    // In one order with notify_all's look for sleepers: a look that came first would miss one who is about to sleep and still sees the old round.
    const bool have_all_come = round_.compare_exchange_strong(before, before + kRound, std::memory_order_seq_cst);  // else it was abandoned, and all see that
    round_.notify_all();
    return {.have_all_come = have_all_come, .has_slept = false};
  }
  bool has_slept = false;
  std::uint32_t now = before;
  while ((now = round_.load(std::memory_order_acquire)) / kRound == before / kRound and (now & kAbandoned) == 0) {
    if (how == Waiting::kSpinning and changes_soon(round_, now)) continue;
    has_slept = true;
    round_.wait(now, std::memory_order_acquire);
  }
  return {.have_all_come = now / kRound != before / kRound, .has_slept = has_slept};
}

void Barrier::abandon() {
  round_.fetch_or(kAbandoned, std::memory_order_acq_rel);
  round_.notify_all();
}

}  // namespace hone
