// Neighbouring kernels, which a team enters together: each thread knows what it has to do of each kernel, and where it must wait for the others.
// How they are shared out depends on sizes and the number of threads alone; whether the team or one thread is faster is found by trying
// (runtime/trial.h). Every split of a kernel gives the same bits, so nobody can tell from the results.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/device/code_loader.h"
#include "runtime/device/device.h"
#include "runtime/device/team.h"
#include "runtime/plan/plan.h"
#include "runtime/session.h"
#include "runtime/trace.h"
#include "runtime/trial.h"

namespace hone {

/// A kernel with all its sizes known. A copy is one, too.
struct BoundKernel {
  KernelFunction function = nullptr;          ///< of the host
  const DeviceKernel* on_device = nullptr;    ///< where the session is on one; null for a copy
  std::vector<std::uint32_t> buffers;
  std::uint32_t read_only = 0;  ///< the first so many buffers are only read
  std::vector<std::int64_t> sizes;
  std::int64_t begin = 0, range = 0;  ///< the first point, and how many
  std::int64_t work = 0;           ///< scalar operations, roughly
  std::uint32_t step = 0;          ///< among the entry's
  std::vector<std::size_t> bytes;    ///< of each buffer that are there, on a device
  std::vector<std::size_t> skipped;  ///< and that would be in front of them: of what is held in parts, which is counted from where all of it would begin
  std::vector<void*> arguments;    ///< where the buffers lie, for all threads or for one after the other; the executor's to fill in
  std::size_t arguments_apart = 0;  ///< so far behind each other each thread's begin: feeds may lie in a place for each of them
  std::vector<RangePiece> pieces;  ///< of the range, by thread; from share_out()
  bool waits = false;              ///< for all that the other threads did before
};

struct KernelRun {
  std::vector<BoundKernel> kernels;
  Trial trial;  ///< of one thread against the team
};

/// Memory that a buffer takes: bytes of a space of its own, or of one in which buffers may overlap.
struct MemoryRange {
  std::uint32_t space = 0;
  std::size_t begin = 0, end = 0;
};

/// Gives each thread its pieces, and puts a barrier before a kernel that needs what another thread did since the last one, or overwrites what
/// another thread read. `memory` is by buffer.
void share_out(KernelRun& run, std::span<const MemoryRange> memory, int threads);

/// A member's part of making feeds.
inline void make_feeds(std::span<FeedMaker* const> makers, const Team::Member& member) {
  for (FeedMaker* maker : makers) maker->make(member.number(), member.count());
}

/// Runs all kernels, in the way that was found to be the faster one; the first runs try both. Each thread that takes part makes its copies of feeds first.
void execute(KernelRun& run, Team& team, std::span<FeedMaker* const> makers = {});
/// The same, and puts each piece on the track of the thread that runs it. `steps` are the entry's; there is a track for each of the team's threads.
void execute_traced(KernelRun& run, Team& team, std::span<const plan::Step> steps, std::span<TraceTrack* const> tracks);

/// Runs all kernels, each when the one before is done, and calls done(kernel) in the calling thread after each.
template <typename Done>
void execute_one_by_one(const KernelRun& run, Team& team, const Done& done);

// --- Implementation ---

/// A piece of the kernel's range, with what lies there for thread `number`.
inline void execute_piece(const BoundKernel& kernel, const RangePiece& piece, int number) {
  void* const* arguments = kernel.arguments.data() + static_cast<std::size_t>(number) * kernel.arguments_apart;
  if (piece.begin < piece.end) kernel.function(arguments, kernel.sizes.data(), kernel.begin + piece.begin, kernel.begin + piece.end);
}

template <typename Done>
void execute_one_by_one(const KernelRun& run, Team& team, const Done& done) {
  const auto walk = [&](const Team::Member& member) {
    for (const BoundKernel& kernel : run.kernels) {
      const bool is_shared = member.count() > 1 and static_cast<std::size_t>(member.count()) == kernel.pieces.size();
      if (is_shared) execute_piece(kernel, kernel.pieces[static_cast<std::size_t>(member.number())], member.number());
      else if (member.number() == 0) execute_piece(kernel, {0, kernel.range}, 0);
      if (member.count() > 1) member.wait();
      if (member.number() == 0) done(kernel);
    }
  };
  if (run.trial.winner() == Trial::Way::kTeam) team.run(walk);
  else walk(team.caller());
}

}  // namespace hone
