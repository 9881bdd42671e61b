#include "runtime/kernel_run.h"

#include <algorithm>
#include <chrono>

namespace hone {
namespace {

/// Scalar operations from which on a kernel is split among threads, and of all kernels of a run from which on a team is tried: what one core does
/// in the time of a barrier, and of waking a team that spins.
constexpr std::int64_t kWorkWorthSplitting = 8'192, kWorkWorthATeam = 16'384;
/// From which on nothing is tried: a millisecond and more. To look at the slower way several times would take seconds of a large model's first steps.
constexpr std::int64_t kWorkBeyondDoubt = std::int64_t{1} << 27;

/// Deals kernels out in order. What was touched since the last barrier, and by whom, decides where the next one is needed.
class Dealer {
 public:
  Dealer(std::span<const MemoryRange> memory, int threads) : memory_(memory), loads_(static_cast<std::size_t>(threads)) {}

  void deal(BoundKernel& kernel) {
    const bool split = kernel.range > 1 and kernel.work >= kWorkWorthSplitting;
    int owner = whom_it_needs(kernel);
    if (split ? owner != kNobody : owner == kSeveral) {
      kernel.waits = true;
      touched_.clear();
      std::ranges::fill(loads_, 0);
      owner = kNobody;
    }
    if (not split and owner == kNobody) owner = least_loaded();
    give(kernel, split ? kSeveral : owner);
  }

 private:
  static constexpr int kNobody = -1, kSeveral = -2;  // else the number of a thread
  struct Touch {
    MemoryRange memory;
    bool written;
    int thread;
  };

  static bool overlap(const MemoryRange& a, const MemoryRange& b) { return a.space == b.space and std::max(a.begin, b.begin) < std::min(a.end, b.end); }

  /// The threads without which this kernel must not begin.
  int whom_it_needs(const BoundKernel& kernel) const {
    int owner = kNobody;
    for (std::size_t i = 0; i < kernel.buffers.size() and owner != kSeveral; ++i)
      for (const Touch& touch : touched_) {
        if ((i < kernel.read_only and not touch.written) or not overlap(memory_[kernel.buffers[i]], touch.memory)) continue;
        owner = owner == kNobody or owner == touch.thread ? touch.thread : kSeveral;
      }
    return owner;
  }

  int least_loaded() const { return static_cast<int>(std::ranges::min_element(loads_) - loads_.begin()); }

  /// To one thread, or to all.
  void give(BoundKernel& kernel, int thread) {
    const int threads = static_cast<int>(loads_.size());
    for (int i = 0; i < threads; ++i) {
      kernel.pieces.push_back(thread == kSeveral ? piece_of(kernel.range, threads, i) : RangePiece{0, thread == i ? kernel.range : 0});
      if (thread == kSeveral or thread == i) loads_[static_cast<std::size_t>(i)] += thread == kSeveral ? kernel.work / threads : kernel.work;
    }
    for (std::size_t i = 0; i < kernel.buffers.size(); ++i) touched_.push_back({memory_[kernel.buffers[i]], i >= kernel.read_only, thread});
  }

  std::span<const MemoryRange> memory_;
  std::vector<std::int64_t> loads_;  // of each thread since the last barrier
  std::vector<Touch> touched_;       // since then
};

// How pieces are run: run_piece(kernel, piece, number of the thread). Before, each thread that takes part makes its copies of feeds.

template <typename RunPiece>
void execute_alone(const KernelRun& run, const RunPiece& run_piece) {
  for (const BoundKernel& kernel : run.kernels) run_piece(kernel, RangePiece{0, kernel.range}, 0);
}

template <typename RunPiece>
void execute_shared(const KernelRun& run, const Team::Member& member, const RunPiece& run_piece) {
  const int number = member.number();
  for (const BoundKernel& kernel : run.kernels) {
    if (kernel.waits) member.wait();
    run_piece(kernel, kernel.pieces[static_cast<std::size_t>(number)], number);
  }
}

template <typename RunPiece>
void execute_in_team(const KernelRun& run, Team& team, std::span<FeedMaker* const> makers, const RunPiece& run_piece) {
  team.run([&](const Team::Member& member) {
    make_feeds(makers, member);
    if (member.count() == team.threads()) execute_shared(run, member, run_piece);
    else if (member.number() == 0) execute_alone(run, run_piece);  // the system gave fewer threads
  });
}

template <typename RunPiece>
void execute(const KernelRun& run, Team& team, Trial::Way way, std::span<FeedMaker* const> makers, const RunPiece& run_piece) {
  if (way == Trial::Way::kTeam) return execute_in_team(run, team, makers, run_piece);
  make_feeds(makers, team.caller());
  execute_alone(run, run_piece);
}

template <typename RunPiece>
void try_and_execute(KernelRun& run, Team& team, std::span<FeedMaker* const> makers, const RunPiece& run_piece) {
  if (not run.trial.wants_time()) return execute(run, team, run.trial.winner(), makers, run_piece);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  execute(run, team, run.trial.next(), makers, run_piece);
  run.trial.add(std::chrono::duration<double>(Clock::now() - begin).count());
}

}  // namespace

void share_out(KernelRun& run, std::span<const MemoryRange> memory, int threads) {
  std::int64_t work = 0, split = 0;
  for (const BoundKernel& kernel : run.kernels) {
    work += std::min(kernel.work, kWorkWorthATeam);
    if (kernel.range >= threads) split += std::min(kernel.work, kWorkBeyondDoubt);
  }
  if (threads == 1 or work < kWorkWorthATeam) return run.trial.decide(Trial::Way::kAlone);
  if (split >= kWorkBeyondDoubt) run.trial.decide(Trial::Way::kTeam);
  Dealer dealer(memory, threads);
  for (BoundKernel& kernel : run.kernels) dealer.deal(kernel);
}

void execute(KernelRun& run, Team& team, std::span<FeedMaker* const> makers) {
  try_and_execute(run, team, makers, [](const BoundKernel& kernel, const RangePiece& piece, int number) { execute_piece(kernel, piece, number); });
}

void execute_traced(KernelRun& run, Team& team, std::span<const plan::Step> steps, std::span<TraceTrack* const> tracks) {
  try_and_execute(run, team, {}, [&](const BoundKernel& kernel, const RangePiece& piece, int number) {
    if (piece.begin >= piece.end) return;
    TraceTrack& track = *tracks[static_cast<std::size_t>(number)];
    const std::int64_t begin = track.now();
    execute_piece(kernel, piece, number);
    track.add(steps[kernel.step], begin);
  });
}

}  // namespace hone
