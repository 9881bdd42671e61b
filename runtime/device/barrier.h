// Where threads that work on one thing wait for each other.
#pragma once

#include <atomic>
#include <cstdint>

namespace hone {

/// A waiting thread spins for some microseconds, about twice what waking it up would take, and then sleeps: where another process has the core of a
/// thread that is still to come, that process is not kept from finishing, and neither is the thread.
class Barrier {
 public:
  /// Threads of which some wait for a core, as there are more of them than cores, had better not spin.
  enum class Waiting : std::uint8_t { kSpinning, kSleeping };
  /// What suits so many threads on the cores that this process may use.
  static Waiting waiting_of(int threads);
  struct Waited {
    bool have_all_come;  ///< false: it was abandoned before
    bool has_slept;      ///< this thread
  };
  /// Returns when `count` threads have called it as often as this one; what they wrote before is then seen. All give the same count.
  Waited wait(int count, Waiting how = Waiting::kSpinning);
  /// All waits return at once, those that have begun and those to come. Where all had come before, their wait has still ended well.
  void abandon();
  bool is_abandoned() const { return (round_.load(std::memory_order_acquire) & kAbandoned) != 0; }

 private:
  static constexpr std::uint32_t kAbandoned = 1, kRound = 2;

  alignas(64) std::atomic<std::uint32_t> arrived_ = 0;
  alignas(64) std::atomic<std::uint32_t> round_ = 0;  // how many, times kRound, and whether it is abandoned: one word, so that nobody takes one for the other
};

}  // namespace hone
