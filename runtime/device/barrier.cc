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

bool Barrier::wait(int count, Waiting how) {
  const std::uint32_t round = round_.load(std::memory_order_acquire);  // it cannot change before this thread has arrived
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(count)) {
    arrived_.store(0, std::memory_order_relaxed);  // before anybody goes on to the next round
    // In one order with notify_all's look for sleepers: a look that came first would miss one who is about to sleep and still sees the old round.
    round_.store(round + 1, std::memory_order_seq_cst);
    round_.notify_all();
    return false;
  }
  bool has_slept = false;
  while (round_.load(std::memory_order_acquire) == round and not is_abandoned()) {
    if (how == Waiting::kSpinning and changes_soon(round_, round)) continue;
    has_slept = true;
    round_.wait(round, std::memory_order_acquire);
  }
  return has_slept;
}

void Barrier::abandon() {
  abandoned_.store(true, std::memory_order_release);  // first: who sees the new round sees this, too
  round_.fetch_add(1, std::memory_order_acq_rel);
  round_.notify_all();
}

}  // namespace hone
