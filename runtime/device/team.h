// The threads that one session computes with. oneDNN and generated kernels share them: OpenMP's pool, whose threads wait spinning
// between parallel regions, so a second pool would fight it for the cores. Built without OpenMP (for ThreadSanitizer, which does not
// understand libgomp) it is a plain pool of std::threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/device/barrier.h"

namespace hone {

class Team {
 public:
  /// `threads` >= 1, the calling thread among them.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int threads() const { return threads_; }

  /// One of the threads at work in run().
  class Member {
   public:
    int number() const { return number_; }  ///< 0 is the calling thread
    int count() const { return count_; }    ///< of the threads at work
    /// Returns when all members have called it as often as this one; what they wrote before is then seen.
    void wait() const {
      if (team_.barrier_.wait(count_, team_.waiting_).has_slept) team_.keep_apart(number_);
    }

   private:
    friend class Team;
    Member(int number, int count, Team& team) : number_(number), count_(count), team_(team) {}
    int number_, count_;
    Team& team_;
  };

  /// Calls body(member) in each thread at the same time, normally in threads() of them, fewer if the system gives fewer; returns when all are done.
  /// `body` must not throw. The calling thread must hold an InUse of this team. OpenMP, and so the library, has but one thread inside.
  template <typename Body>
  void run(const Body& body) {
    run([](const void* context, const Member& member) { (*static_cast<const Body*>(context))(member); }, &body);
  }

  /// The calling thread by itself.
  Member caller() { return {0, 1, *this}; }

  /// While it lives, the calling thread computes as the team's first: oneDNN uses as many threads as the team has, and denormal numbers are
  /// zero, as in all the team's threads. A sum that dies out would otherwise take a hundred times as long.
  class InUse {
   public:
    explicit InUse(const Team& team);
    ~InUse();
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

   private:
    unsigned saved_control_;
    int saved_threads_;
  };

 private:
  using MemberFunction = void (*)(const void* context, const Member& member);
  void run(MemberFunction body, const void* context);

  /// A member begins: it computes as all do, and its core is known.
  void enter(int member);
  void is_on(int member, int core);
  /// Moves a member that has a core together with another one to a core of its own, if there is one. The scheduler counts threads: two of a team on one core and two of a busy neighbour's on the other are even to it, though the team's then wait for each other all the time.
  void keep_apart(int member);

  struct Pool;
  int threads_;
  Barrier::Waiting waiting_;
  std::unique_ptr<std::atomic<int>[]> cores_;  // by member: where it was last seen
  Barrier barrier_;
  std::unique_ptr<Pool> pool_;  // null with OpenMP
};

/// While it lives, this thread computes with denormal numbers as they are.
class DenormalsKept {
 public:
  DenormalsKept();
  ~DenormalsKept();
  DenormalsKept(const DenormalsKept&) = delete;
  DenormalsKept& operator=(const DenormalsKept&) = delete;

 private:
  unsigned saved_control_;
};

/// While it lives, what the library makes or runs in this thread is for one thread.
class LibraryOnOneThread {
 public:
  LibraryOnOneThread();
  ~LibraryOnOneThread();
  LibraryOnOneThread(const LibraryOnOneThread&) = delete;
  LibraryOnOneThread& operator=(const LibraryOnOneThread&) = delete;

 private:
  int saved_threads_;
};

/// Piece `i` of `pieces` of 0..range-1. Borders lie at multiples of 64 points, or of fewer when the range is short: so each thread writes its own
/// cache lines, and the points that a kernel handles outside of its vector loop are the same for any number of threads.
struct RangePiece {
  std::int64_t begin = 0, end = 0;
};
RangePiece piece_of(std::int64_t range, int pieces, int i);

}  // namespace hone
