// Replicas that are threads of one process: they read each other's memory. Each sums a part of every tensor, in the order of the ranks, and gives it to all.
#pragma once

#include <memory>

#include "runtime/collective/communicator.h"

namespace hone {

class ThreadCommunicators {
 public:
  explicit ThreadCommunicators(int size);
  ~ThreadCommunicators();
  ThreadCommunicators(const ThreadCommunicators&) = delete;
  ThreadCommunicators& operator=(const ThreadCommunicators&) = delete;

  int size() const;
  /// For one thread at a time; lives as long as this.
  Communicator& of(int rank);
  /// After a failure, when all calls have come back: from now on they exchange again.
  void renew();

 private:
  struct Shared;
  class Member;
  std::unique_ptr<Shared> shared_;
};

}  // namespace hone
