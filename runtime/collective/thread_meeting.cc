#include "runtime/collective/thread_meeting.h"

#include "runtime/device/cpu.h"

namespace hone {

ThreadMeeting::ThreadMeeting(int size) : size_(size), waiting_(size > usable_cores() ? Barrier::Waiting::kSleeping : Barrier::Waiting::kSpinning), barrier_(std::in_place) {}

void ThreadMeeting::meet() {
  if (not barrier_->is_abandoned()) barrier_->wait(size_, waiting_);
  check();
}

void ThreadMeeting::check() {
  if (not barrier_->is_abandoned()) return;
  const std::lock_guard lock(mutex_);
  throw Error(*failure_);
}

void ThreadMeeting::fail(const Error& failure) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (not failure_) failure_ = failure;
  }
  barrier_->abandon();
}

void ThreadMeeting::renew() {
  barrier_.emplace();
  failure_.reset();
}

}  // namespace hone
