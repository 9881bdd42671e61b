// A thread that notices when another one does not come back from a library.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace hone {

class CallWatch {
 public:
  /// `look` is called now and then, in a thread of the watch; `stuck`, when one call has lasted as long as `patience`. Time in which the process did not run does not count.
  CallWatch(std::chrono::steady_clock::duration patience, std::function<void()> look, std::function<void()> stuck);

  /// While it lives, the thread is in a call. One thread at a time, and not one within another.
  class Call {
   public:
    explicit Call(CallWatch& watch) : turns_(watch.turns_) { step(); }
    ~Call() { step(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    void step() { turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
    std::atomic<std::uint64_t>& turns_;
  };

  bool is_in_call() const { return turns_.load(std::memory_order_acquire) % 2 == 1; }

 private:
  std::atomic<std::uint64_t> turns_ = 0;  // odd within a call
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace hone
