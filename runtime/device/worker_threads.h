// Threads that do the same job side by side again and again, and sleep in between.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

namespace hone {

class WorkerThreads {
 public:
  /// `count` >= 1, the calling thread among them.
  explicit WorkerThreads(int count);
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  /// Calls job(0), job(1) ... at the same time, job(0) in the calling thread; returns when all are done: what each threw, or null.
  const std::vector<std::exception_ptr>& run(const std::function<void(int)>& job);

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace hone
