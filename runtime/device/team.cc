#include "runtime/device/team.h"

#include <xmmintrin.h>

#include <algorithm>

#include "base/check.h"

#if HONE_OPENMP
#include <omp.h>
#else
#include "runtime/device/worker_threads.h"
#endif

namespace hone {
namespace {

/// MXCSR: results that are denormal become zero (bit 15), and so do operands (bit 6).
constexpr unsigned kDenormalsAreZero = 0x8040;

void set_denormals_are_zero() { _mm_setcsr(_mm_getcsr() | kDenormalsAreZero); }

}  // namespace

RangePiece piece_of(std::int64_t range, int pieces, int i) {
  const std::int64_t grain = range >= 64 * std::int64_t{pieces} ? 64 : range >= 16 * std::int64_t{pieces} ? 16 : 1;
  const std::int64_t grains = (range + grain - 1) / grain;
  // grains * pieces may overflow, so the remainder is dealt out one by one to the first pieces.
  const std::int64_t each = grains / pieces, extra = grains % pieces;
  const auto border = [&](std::int64_t piece) { return std::min(range, (each * piece + std::min(piece, extra)) * grain); };
  return {.begin = border(i), .end = border(i + 1)};
}

Team::InUse::InUse(const Team& team) : saved_control_(_mm_getcsr()), saved_threads_(0) {
  set_denormals_are_zero();
#if HONE_OPENMP
  saved_threads_ = omp_get_max_threads();
  omp_set_num_threads(team.threads());
#else
  static_cast<void>(team);
#endif
}

Team::InUse::~InUse() {
#if HONE_OPENMP
  omp_set_num_threads(saved_threads_);
#endif
  _mm_setcsr(saved_control_);
}

DenormalsKept::DenormalsKept() : saved_control_(_mm_getcsr()) { _mm_setcsr(saved_control_ & ~kDenormalsAreZero); }
DenormalsKept::~DenormalsKept() { _mm_setcsr(saved_control_); }

LibraryOnOneThread::LibraryOnOneThread() : saved_threads_(0) {
#if HONE_OPENMP
  saved_threads_ = omp_get_max_threads();
  omp_set_num_threads(1);
#endif
}

LibraryOnOneThread::~LibraryOnOneThread() {
#if HONE_OPENMP
  omp_set_num_threads(saved_threads_);
#endif
}

#if HONE_OPENMP

struct Team::Pool {};

Team::Team(int threads) : threads_(threads), waiting_(Barrier::waiting_of(threads)) { HONE_CHECK(threads >= 1, "a team without threads"); }
Team::~Team() = default;

void Team::run(MemberFunction body, const void* context) {
#pragma omp parallel num_threads(threads_)
  {
    set_denormals_are_zero();  // OpenMP may have started this thread just now
    body(context, Member(omp_get_thread_num(), omp_get_num_threads(), *this));
  }
}

#else

struct Team::Pool {
  explicit Pool(int count) : threads(count) {}
  WorkerThreads threads;
};

Team::Team(int threads) : threads_(threads), waiting_(Barrier::waiting_of(threads)) {
  HONE_CHECK(threads >= 1, "a team without threads");
  pool_ = std::make_unique<Pool>(threads);
}
Team::~Team() = default;

void Team::run(MemberFunction body, const void* context) {
  const struct {
    Team& team;
    MemberFunction body;
    const void* context;
  } job = {*this, body, context};
  (void)pool_->threads.run([&job](int number) {  // one pointer, so that nothing is allocated; kernels throw nothing
    set_denormals_are_zero();
    job.body(job.context, Member(number, job.team.threads_, job.team));
  });
}

#endif

}  // namespace hone
