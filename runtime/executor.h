// Executor: runs one entry point of a session's program, or one body of a loop or branch. For each set of sizes it prepares once (runtime/prepare.h), then
// steps.
//
// An entry is one segment, unless sizes are read from tensors on the way: then each segment is bound, and its memory placed, when the one before it has run.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collective/collected.h"
#include "runtime/device/host_memory.h"
#include "runtime/device/team.h"
#include "runtime/device_work.h"
#include "runtime/exchanges.h"
#include "runtime/feeds.h"
#include "runtime/not_finite.h"
#include "runtime/prepare.h"
#include "runtime/step_times.h"
#include "runtime/trace.h"

namespace hone {

/// What the entry points of a session share. They run one at a time, so one arena serves the first segments of them all.
struct HostState {
  Team team;
  std::unique_ptr<DeviceWork> device;   ///< null: everything runs on the host. The first to be there and the last to go, of what has memory
  LoadedCode code;
  KernelTable kernels;
  WorkMemory persistent_memory;
  std::vector<std::byte*> persistents;  ///< in the program's order; of one in parts where all of it would begin
  std::vector<Held> held;               ///< of each
  WorkMemory arena;                     ///< as large as the largest binding so far
  Exchanges exchanges;                   ///< with the other replicas
  int replica = 0, replicas = 1;         ///< which of them this is
  Collected collected;                   ///< by this replica's shards; unused: what is exchanged lies in the buffers
  std::vector<TraceTrack*> tracks;       ///< of the team's threads, where a trace is wanted; else none
};

/// Grows `arena` to at least `bytes`; its contents are lost. Throws Error kMemory, and then there is no arena.
void reserve_arena(WorkMemory& arena, std::size_t bytes, DeviceWork* device);

class Executor {
 public:
  /// `entry`, `state` and `arena`, the memory of the first segment, outlive it. A body has an arena of its own.
  Executor(const plan::Entry& entry, HostState& state, WorkMemory* arena = nullptr);

  const plan::Entry& entry() const { return entry_; }
  /// Session::run.
  void run(NamedFeeds feeds);
  /// As a body: makes it ready for the sizes. The binding holds until another is asked for.
  BoundSegment& bind_body(const DimBindings& sizes) { return bind(0, sizes); }
  /// As a body: the feeds in the entry's order, of the types that the binding gives them. Result k is left at results[k] unless that is null; nothing
  /// that is fed lies there. `memory`: where its arena lies; null: it has one of its own.
  void run_body(BoundSegment& bound, std::span<const void* const> feeds, std::span<void* const> results, std::byte* memory = nullptr);
  /// The entry's result number `index`, of the last run; valid until any entry runs again.
  TensorView result(std::size_t index) const;
  /// Of the last bindings, bodies included, without persistents; zeros before the first.
  MemoryReport memory() const;
  /// Measures every step from now on, those of bodies included, or no longer. What was measured before is forgotten.
  void measure(bool on);
  /// What was measured, in the order of the steps; those of bodies follow their region's.
  std::vector<StepTime> step_times() const;
  /// Lets `watcher` see every step from now on, those of bodies included, one after the other on one thread; null: no longer. It outlives that.
  void watch(StepWatcher* watcher);

 private:
  void run_fed(NamedFeeds feeds);
  BoundSegment& bind_feeds(NamedFeeds feeds);
  std::size_t apart(const TensorView& feed) const;
  const void* place_of(const TensorView& feed);
  bool may_overwrite(const void* place) const;
  bool others_look_at_feeds() const;
  void make_feeds();
  BoundSegment& bind(std::size_t segment, const DimBindings& sizes);
  BoundSegment& keep(std::size_t segment, std::unique_ptr<BoundSegment> bound);
  bool is_bound_to_matched(const BoundSegment& bound) const;
  void run_segments(BoundSegment& first);
  void start(std::size_t segment, BoundSegment& bound);
  std::byte* memory_of(std::size_t segment, const BoundSegment& bound);
  void find_direct_results();
  const DimBindings& read_sizes(std::size_t segment, const BoundSegment& bound);
  void execute_measured(BoundSegment& bound);
  void execute_traced(BoundSegment& bound);
  void execute_watched(BoundSegment& bound);
  WatchedStep watched(std::uint32_t step, const BoundSegment& bound, std::deque<std::vector<std::byte>>& downloaded) const;
  void execute(KernelRun& run) {
    if (state_.device != nullptr) return execute_on_device(run);
    hone::execute(run, state_.team, makers_);
    makers_.clear();
  }
  void execute(const BoundLibrary& step);
  void execute(BoundHost& step);
  void execute(BoundExchange& step);
  void execute(const BoundWait& step) {
    if (device_exchanges()) state_.device->wait_for_exchanges(step.exchanges);
    else state_.exchanges.end(step.exchanges);
  }
  void end_exchanges() {
    if (device_exchanges()) state_.device->end_exchanges();
    else state_.exchanges.end_all();
  }
  void execute(BoundRegion& step);
  void run_scan(BoundRegion& step);
  void run_while(BoundRegion& step);
  void run_branch(BoundRegion& step);
  void run_call(BoundRegion& step);
  Worker worker() const {
    return {.threads = state_.team.threads(),
            .replica = state_.replica,
            .replicas = state_.replicas,
            .device = state_.device == nullptr ? nullptr : &state_.device->device(),
            .held = state_.held,
            .captured_exchanges = device_exchanges() and state_.device->captures_exchanges(),
            .in_body = shared_arena_ == nullptr};
  }
  /// From device to device, where no shards are collected on the host.
  bool device_exchanges() const { return state_.device != nullptr and state_.device->exchanges() and not state_.collected.is_used(); }
  void copy(void* to, const void* from, std::size_t bytes);
  bool holds(const std::byte* condition) const;
  const void* number(std::int64_t& value) const;

  // On a device (runtime/executor_device.cc).
  void feed_device(const BoundSegment& bound);
  void run_steps_on_device(BoundSegment& bound);
  void execute_shown(BoundSegment& bound, std::size_t number);
  void execute_on_device(const KernelRun& run);
  void execute_on_device(const BoundLibrary& step);
  void execute_on_device(BoundHost& step);
  void execute_on_device(BoundExchange& step);
  TensorView read_from_device(const BoundSegment& bound, std::uint32_t buffer, std::vector<std::byte>& content) const;

  void give_arguments(BoundKernel& kernel) const;
  std::byte* pointer(std::int64_t buffer) const { return static_cast<std::byte*>(pointers_[static_cast<std::size_t>(buffer)]); }

  const plan::Entry& entry_;
  HostState& state_;
  std::vector<Segment> segments_;
  std::vector<std::vector<std::unique_ptr<BoundSegment>>> bindings_;  // by segment; the last used first
  std::vector<DimBindings> read_sizes_;                               // by segment: those of the next one, as they were read last
  std::vector<WorkMemory> own_arenas_;                                // by segment; the first one's may be shared
  WorkMemory* shared_arena_;
  std::vector<std::vector<std::unique_ptr<Executor>>> bodies_;  // by number of the region
  std::vector<const TensorView*> matched_;                      // the feeds of this run; null between runs
  std::vector<const void*> feeds_;                              // where they lie
  std::vector<Tensor> copied_feeds_;                            // of those that lay where this run writes
  const BoundSegment* current_ = nullptr;                       // what runs, or ran last
  std::vector<FeedMaker*> makers_;                              // of feeds whose content is still to be made
  std::vector<void*> pointers_;                                 // of the buffers
  std::vector<std::size_t> copies_apart_;                       // of the buffers that are fed and their views: apart() of what is fed
  bool are_copied_ = false;                                     // is any of them not 0?
  std::vector<std::pair<std::uint32_t, std::uint32_t>> fed_;    // buffers that are feeds, and which
  std::vector<void*> arguments_;                                // of one library call
  std::span<void* const> wanted_;                               // as a body: where the results are wanted
  std::byte* given_memory_ = nullptr;                           // as a body: its arena, where that is not its own
  std::vector<std::optional<std::uint32_t>> direct_;            // as a body: the buffer that can lie where that result is wanted
  std::byte* scratch_ = nullptr;                                // of the current segment's library calls
  struct Measured {
    std::int64_t runs = 0;
    double seconds = 0;
  };
  std::vector<Measured> measured_;  // by step of the entry; empty: nothing is measured
  StepWatcher* watcher_ = nullptr;
  WorkMemory feed_memory_;                                  // of the device
  mutable std::vector<std::vector<std::byte>> downloaded_;  // from the device, by result
};

}  // namespace hone
