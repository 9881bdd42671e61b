#include "runtime/data/background.h"

#include <utility>

namespace hone {

BackgroundJob::BackgroundJob(std::function<void()> job) : job_(std::move(job)), thread_([this] { work(); }) {}

BackgroundJob::~BackgroundJob() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return state_ == State::kIdle; });
    state_ = State::kStop;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundJob::begin() {
  {
    const std::lock_guard lock(mutex_);
    state_ = State::kWanted;
  }
  changed_.notify_all();
}

void BackgroundJob::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return state_ == State::kIdle; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void BackgroundJob::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return state_ != State::kIdle; });
    if (state_ == State::kStop) return;
    lock.unlock();
    std::exception_ptr failure;
    try {
      job_();
    } catch (...) { failure = std::current_exception(); }
    lock.lock();
    failure_ = failure;
    state_ = State::kIdle;
    changed_.notify_all();
  }
}

}  // namespace hone
