#include "runtime/device/team.h"

#include <xmmintrin.h>

#include <algorithm>

#include "base/check.h"
#include "runtime/device/cpu.h"

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

int checked(int threads) {
  HONE_CHECK(threads >= 1, "a team without threads");
  return threads;
}

/// None is seen anywhere yet.
std::unique_ptr<std::atomic<int>[]> no_cores(int threads) {
  auto cores = std::make_unique<std::atomic<int>[]>(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) cores[static_cast<std::size_t>(i)] = -1;
  return cores;
}

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

void Team::enter(int member) {
  set_denormals_are_zero();
  is_on(member, this_core());
}

/// Written where it has changed alone: the cores share the line.
void Team::is_on(int member, int core) {
  std::atomic<int>& seen = cores_[static_cast<std::size_t>(member)];
  if (seen.load(std::memory_order_relaxed) != core) seen.store(core, std::memory_order_relaxed);
}

void Team::keep_apart(int member) {
  if (waiting_ == Barrier::Waiting::kSleeping) return;  // there are not cores enough
  const int core = this_core();
  bool is_shared = false;
  for (int i = 0; i < threads_; ++i) is_shared |= i != member and cores_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed) == core;
  if (is_shared) leave_this_core();
  is_on(member, is_shared ? this_core() : core);
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

Team::Team(int threads) : threads_(checked(threads)), waiting_(Barrier::waiting_of(threads)), cores_(no_cores(threads)) {}
Team::~Team() = default;

void Team::run(MemberFunction body, const void* context) {
#pragma omp parallel num_threads(threads_)
  {
    enter(omp_get_thread_num());  // OpenMP may have started this thread just now
    body(context, Member(omp_get_thread_num(), omp_get_num_threads(), *this));
  }
}

#else

struct Team::Pool {
  explicit Pool(int count) : threads(count) {}
  WorkerThreads threads;
};

Team::Team(int threads) : threads_(checked(threads)), waiting_(Barrier::waiting_of(threads)), cores_(no_cores(threads)), pool_(std::make_unique<Pool>(threads)) {}
Team::~Team() = default;

void Team::run(MemberFunction body, const void* context) {
  const struct {
    Team& team;
    MemberFunction body;
    const void* context;
  } job = {*this, body, context};
  (void)pool_->threads.run([&job](int number) {  // one pointer, so that nothing is allocated; kernels throw nothing
    job.team.enter(number);
    job.body(job.context, Member(number, job.team.threads_, job.team));
  });
}

#endif

}  // namespace hone
