// Executor: runs one entry point of a session's program. For each set of sizes it prepares once (runtime/prepare.h), then steps.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/host_memory.h"
#include "runtime/device/team.h"
#include "runtime/feeds.h"
#include "runtime/prepare.h"

namespace hone {

/// What the entry points of a session share on the host. They run one at a time, so one arena serves them all.
struct HostState {
  Team team;
  LoadedCode code;
  KernelTable kernels;
  HostMemory persistent_memory;
  std::vector<std::byte*> persistents;  ///< in the program's order
  HostMemory arena;                     ///< as large as the largest binding so far

  /// Grows the arena to at least `bytes`; its contents are lost. Throws Error kMemory, and then there is no arena.
  void reserve_arena(std::size_t bytes);
};

class Executor {
 public:
  /// `entry` and `state` outlive it.
  Executor(const plan::Entry& entry, HostState& state);

  const plan::Entry& entry() const { return entry_; }
  /// Session::run.
  void run(NamedFeeds feeds);
  /// The entry's result number `index`, of the last run; valid until any entry runs again.
  TensorView result(std::size_t index) const;
  /// Of the last binding, without persistents; zeros before the first.
  MemoryReport memory() const;

 private:
  void bind(NamedFeeds feeds);
  bool is_bound_to_matched(const BoundEntry& bound) const;
  void point_buffers();
  void execute(const BoundKernel& step);
  void execute(const BoundLibrary& step);
  void execute(BoundHost& step);
  void execute(const BoundCopy& step);

  const plan::Entry& entry_;
  HostState& state_;
  std::vector<std::unique_ptr<BoundEntry>> bindings_;  // the last used first
  std::vector<const TensorView*> matched_;             // the feeds of this run; null between runs
  std::vector<void*> pointers_;                        // of the buffers
  std::vector<void*> arguments_;                       // of one step
};

}  // namespace hone
