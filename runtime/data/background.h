// A thread that does one job again and again, whenever it is told to.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace hone {

class BackgroundJob {
 public:
  explicit BackgroundJob(std::function<void()> job);
  /// Waits for a job that is under way.
  ~BackgroundJob();
  BackgroundJob(const BackgroundJob&) = delete;
  BackgroundJob& operator=(const BackgroundJob&) = delete;

  /// Does the job once, in the background. The one before is finished.
  void begin();
  /// Waits until it is done, if it was begun, and throws what it threw. Allocates nothing.
  void finish();

 private:
  enum class State { kIdle, kWanted, kStop };
  void work();

  std::function<void()> job_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;
  std::exception_ptr failure_;
  std::thread thread_;  // last, because it uses the others
};

}  // namespace hone
