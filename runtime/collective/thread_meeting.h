// Where the replicas of one process wait for each other, until one of them fails.
#pragma once

#include <mutex>
#include <optional>

#include "base/diag.h"
#include "runtime/device/barrier.h"

namespace hone {

/// What the others hear when the replica of that rank has failed.
Error replica_has_failed(int rank, const char* why);

class ThreadMeeting {
 public:
  explicit ThreadMeeting(int size);

  int size() const { return size_; }
  /// Returns when all have called it, also if one of them has failed since; what they wrote before is then seen. Else throws the first failure, then and ever after.
  void meet();
  /// Throws the first failure, if there is one. Waits for nobody.
  void check();
  void fail(const Error& failure) noexcept;
  /// Forgets failures. Nobody is in meet(), and all that were have come back.
  void renew();

 private:
  const int size_;
  const Barrier::Waiting waiting_;
  std::optional<Barrier> barrier_;
  std::mutex mutex_;  // of `failure_`
  std::optional<Error> failure_;
};

}  // namespace hone
