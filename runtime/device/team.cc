#include "runtime/device/team.h"

#include <xmmintrin.h>

#include <algorithm>

#include "base/check.h"

#if HONE_OPENMP
#include <omp.h>
#else
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
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

Team::Team(int threads) : threads_(threads) { HONE_CHECK(threads >= 1, "a team without threads"); }
Team::~Team() = default;

void Team::run(MemberFunction body, const void* context) {
#pragma omp parallel num_threads(threads_)
  {
    set_denormals_are_zero();  // OpenMP may have started this thread just now
    body(context, Member(omp_get_thread_num(), omp_get_num_threads(), barrier_));
  }
}

#else

/// Each round has a number; the workers take part in it once and count themselves out.
struct Team::Pool {
  std::mutex mutex;
  std::condition_variable started, finished;
  std::uint64_t round = 0;
  int running = 0;
  bool stopping = false;
  MemberFunction body = nullptr;
  const void* context = nullptr;
  std::vector<std::thread> threads;

  void work(const Member& member) {
    set_denormals_are_zero();
    std::uint64_t done = 0;
    std::unique_lock lock(mutex);
    while (true) {
      started.wait(lock, [&] { return stopping or round != done; });
      if (stopping) return;
      done = round;
      lock.unlock();
      body(context, member);
      lock.lock();
      if (--running == 0) finished.notify_one();
    }
  }
};

Team::Team(int threads) : threads_(threads), pool_(std::make_unique<Pool>()) {
  HONE_CHECK(threads >= 1, "a team without threads");
  for (int i = 1; i < threads; ++i) pool_->threads.emplace_back([pool = pool_.get(), member = Member(i, threads, barrier_)] { pool->work(member); });
}

Team::~Team() {
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->stopping = true;
  }
  pool_->started.notify_all();
  for (std::thread& thread : pool_->threads) thread.join();
}

void Team::run(MemberFunction body, const void* context) {
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->body = body, pool_->context = context;
    pool_->running = threads_ - 1;
    ++pool_->round;
  }
  pool_->started.notify_all();
  body(context, Member(0, threads_, barrier_));
  std::unique_lock lock(pool_->mutex);
  pool_->finished.wait(lock, [this] { return pool_->running == 0; });
}

#endif

}  // namespace hone
