// Exchanges between replicas that go on while the caller computes.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/prepare.h"
#include "runtime/trace.h"

namespace hone {

/// In the order in which they are begun: in a thread of their own where the communicator mostly waits for a network, else at once.
class Exchanges {
 public:
  /// The communicator is used by nobody else between begin() and the end of that. Null: a replica that is alone, which keeps what it has.
  explicit Exchanges(Communicator* communicator);
  /// Waits for what is under way.
  ~Exchanges();
  Exchanges(const Exchanges&) = delete;
  Exchanges& operator=(const Exchanges&) = delete;

  /// It, and what it exchanges, stay as they are until it has ended. Allocates nothing for as many as were under way before.
  void begin(const BoundExchange& exchange);
  /// Waits for the first `count` of those begun since the last end_all(). Throws the first failure so far: Error kPeer with the bucket and its weights; what was begun behind it is not tried.
  void end(std::size_t count);
  void end_all();
  /// Waits for those begun so far, which may be waited for again.
  void end_begun();
  /// Do they go on in a thread of their own?
  bool has_thread() const { return thread_.joinable(); }
  /// Puts what that thread exchanges on a track from now on, while nothing is under way; null: no longer.
  void trace(TraceTrack* track) { track_ = track; }
  /// Waits for all, and forgets failures: the caller has one of its own.
  void abandon() noexcept;

 private:
  void run(const BoundExchange& exchange);
  void work(const std::stop_token& stop);
  void forget();

  Communicator* const communicator_;
  TraceTrack* track_ = nullptr;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<const BoundExchange*> begun_;  // since the last end_all()
  std::size_t ended_ = 0;
  std::exception_ptr failure_;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace hone
