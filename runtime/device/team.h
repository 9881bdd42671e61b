// The threads that one session computes with. oneDNN and generated kernels share them: OpenMP's pool, whose threads wait spinning
// between parallel regions, so a second pool would fight it for the cores. Built without OpenMP (for ThreadSanitizer, which does not
// understand libgomp) it is a plain pool of std::threads.
#pragma once

#include <cstdint>
#include <memory>

namespace hone {

class Team {
 public:
  /// `threads` >= 1, the calling thread among them.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int threads() const { return threads_; }

  /// Splits 0..range-1 into one contiguous piece a thread and calls body(begin, end) for each that is not empty, all at the same time; returns
  /// when all are done. `body` must not throw. The calling thread must hold an InUse of this team.
  template <typename Body>
  void split(std::int64_t range, const Body& body) {
    split(
        range, [](const void* context, std::int64_t begin, std::int64_t end) { (*static_cast<const Body*>(context))(begin, end); }, &body);
  }

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
  using RangeFunction = void (*)(const void* context, std::int64_t begin, std::int64_t end);
  void split(std::int64_t range, RangeFunction body, const void* context);

  struct Pool;
  int threads_;
  std::unique_ptr<Pool> pool_;  // null with OpenMP
};

/// Piece `i` of `pieces` of 0..range-1. Borders lie at multiples of 64 points, or of fewer when the range is short: so each thread writes its own
/// cache lines, and the points that a kernel handles outside of its vector loop are the same for any number of threads.
struct RangePiece {
  std::int64_t begin = 0, end = 0;
};
RangePiece piece_of(std::int64_t range, int pieces, int i);

}  // namespace hone
