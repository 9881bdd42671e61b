#include "runtime/device/barrier.h"

#include <immintrin.h>

#include <chrono>
#include <thread>

namespace hone {
namespace {

/// A sleeping thread takes some 50 us to come back; on a virtual machine whose core went to sleep with it, 10 ms were seen. So after that long a thread offers its
/// core to others, but stays awake, and sleeps only when the wait is long beside any step's.
constexpr std::chrono::microseconds kLongestSpin{50}, kLongestWait{2000};
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
  const auto begin = std::chrono::steady_clock::now();
  for (auto now = begin; now < begin + kLongestWait; now = std::chrono::steady_clock::now()) {
    if (changed()) return true;
    if (now > begin + kLongestSpin) std::this_thread::yield();
  }
  return false;
}

}  // namespace

void Barrier::wait(int count, Waiting how) {
  const std::uint32_t round = round_.load(std::memory_order_acquire);  // it cannot change before this thread has arrived
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(count)) {
    arrived_.store(0, std::memory_order_relaxed);  // before anybody goes on to the next round
    round_.store(round + 1, std::memory_order_release);
    round_.notify_all();
    return;
  }
  while (round_.load(std::memory_order_acquire) == round and not is_abandoned())
    if (how == Waiting::kSleeping or not changes_soon(round_, round)) round_.wait(round, std::memory_order_acquire);
}

void Barrier::abandon() {
  abandoned_.store(true, std::memory_order_release);  // first: who sees the new round sees this, too
  round_.fetch_add(1, std::memory_order_acq_rel);
  round_.notify_all();
}

}  // namespace hone
