#include "runtime/device/worker_threads.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace hone {

/// Each round has a number; the workers take part in it once and count themselves out.
struct WorkerThreads::Pool {
  std::mutex mutex;
  std::condition_variable begun, done;
  std::uint64_t round = 0;
  std::size_t running = 0;
  bool stopping = false;
  const std::function<void(int)>* job = nullptr;
  std::vector<std::exception_ptr> errors;
  std::vector<std::thread> threads;

  void call(int number) {
    std::exception_ptr& error = errors[static_cast<std::size_t>(number)];
    error = nullptr;
    try {
      (*job)(number);
    } catch (...) { error = std::current_exception(); }
  }
  void work(int number) {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      begun.wait(lock, [&] { return stopping or round != seen; });
      if (stopping) return;
      seen = round;
      lock.unlock();
      call(number);
      lock.lock();
      if (--running == 0) done.notify_one();
    }
  }
};

WorkerThreads::WorkerThreads(int count) : pool_(std::make_unique<Pool>()) {
  pool_->errors.resize(static_cast<std::size_t>(count));
  for (int number = 1; number < count; ++number) pool_->threads.emplace_back([pool = pool_.get(), number] { pool->work(number); });
}

WorkerThreads::~WorkerThreads() {
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->stopping = true;
  }
  pool_->begun.notify_all();
  for (std::thread& thread : pool_->threads) thread.join();
}

const std::vector<std::exception_ptr>& WorkerThreads::run(const std::function<void(int)>& job) {
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->job = &job;
    pool_->running = pool_->threads.size();
    ++pool_->round;
  }
  pool_->begun.notify_all();
  pool_->call(0);
  std::unique_lock lock(pool_->mutex);
  pool_->done.wait(lock, [this] { return pool_->running == 0; });
  return pool_->errors;
}

}  // namespace hone
