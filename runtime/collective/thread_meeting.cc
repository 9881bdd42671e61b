#include "runtime/collective/thread_meeting.h"

#include <fmt/format.h>

namespace hone {

Error replica_has_failed(int rank, const char* why) {
  return Error(Code::kPeer, fmt::format("replica {} has failed: {}", rank, why), {}, {"the other replicas cannot go on without it"});
}

ThreadMeeting::ThreadMeeting(int size) : size_(size), waiting_(Barrier::waiting_of(size)), barrier_(std::in_place) {}

void ThreadMeeting::meet() {
  if (not barrier_->wait(size_, waiting_).have_all_come) check();
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
