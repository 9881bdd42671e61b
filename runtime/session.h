// Session: a plan made ready on a device: weights in memory, code loaded, and entry points to call.
//
//   Session session(plan, {.device = "cpu", .threads = 2});
//   session.run("train_step", feeds);
//   float loss = session.result("loss_sum").at(0) / ...
//
// A session is for one thread at a time: a run, or the reading of a result, that overlaps with a run throws Error kUsage. Where threads take turns, results are those of whoever ran last. Sessions of one plan are independent of each other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "runtime/plan/plan.h"
#include "runtime/step_times.h"

namespace hone {

/// Makes feeds with the threads of the session that takes them.
class FeedMaker {
 public:
  /// Thread `member` of `members` makes the copy that it will read, and every members-th behind that. Called again, it makes the same again.
  virtual void make(int member, int members) noexcept = 0;

 protected:
  ~FeedMaker() = default;
};

/// Memory of the caller, plain row-major, that holds still during the call.
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
  /// Views of the same place and the same version, but 0, show the same content: what was fed ahead is known by it.
  std::uint64_t version = 0;
  /// So many copies of the content, each `copy_bytes` behind the one before: one for each of the session's threads, which finds it in its own core's cache. Whoever has use for one only takes the first.
  int copies = 1;
  std::size_t copy_bytes = 0;
  /// Makes the content as each run begins; null: it is there. What was made stays.
  FeedMaker* maker = nullptr;

  TensorView() = default;
  TensorView(DType type, std::vector<std::int64_t> extents, const void* bytes) : dtype(type), shape(std::move(extents)), data(bytes) {}
  /// The tensor must live as long as the view: a temporary does so in a call's argument, and not in a list of feeds that has a name.
  TensorView(const Tensor& tensor) : dtype(tensor.dtype()), shape(tensor.shape()), data(tensor.bytes().data()) {}  // NOLINT
};

class Communicator;  // runtime/collective/communicator.h
class Device;        // runtime/device/device.h

struct SessionOptions {
  std::string device = "auto";  ///< auto, cpu
  int threads = 0;              ///< 0: all cores this process may use
  Communicator* communicator = nullptr;  ///< of one replica among several, which outlives the session; entries that exchange use it
  int shards = 0;                        ///< that this replica collects before it exchanges their sum; 0: it exchanges what a step has
  /// This replica updates its part of the weights, and holds its part of the states that are in parts: of the entries that update those of the name sharded_entry() can be run.
  bool shard_optimizer = false;
  /// Bytes that it may take of its device's memory; 0: what the device has. The host's memory is nobody's to divide.
  std::uint64_t memory_limit = 0;
  /// Nothing follows from how long things took: a device's libraries choose by their rules, not by timing.
  bool deterministic = false;
  /// The file that keeps what a device chose by timing; "": none, so that each session measures anew.
  std::string choices_file = {};
};

struct NotFiniteReport;  // runtime/not_finite.h
class Trace;             // runtime/trace.h

/// What memory a size binding of an entry takes, in bytes.
struct MemoryReport {
  std::int64_t arena = 0;        ///< activations, gradients, temporaries
  std::int64_t lower_bound = 0;  ///< largest sum of bytes alive at one step
  std::int64_t persistent = 0;   ///< weights, states, constants
  std::int64_t library = 0;      ///< scratch and repacked weights of library calls
};

class Session {
 public:
  /// Throws Error kDevice, kPlanMismatch (no program for the device, or code this processor cannot run), kMemory. `plan` may go afterwards.
  explicit Session(const plan::Plan& plan, SessionOptions options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Without its code and the persistents' contents: read() has them.
  const plan::Program& program() const;
  /// That compute, the caller's among them.
  int threads() const;
  /// Lets devices exchange without the host, if all replicas have one that can, each of its own hardware. Called by all of them at once, before the first run; what came of it is in notes(). Throws Error kPeer.
  void connect_devices();
  /// What a person should know of how the plan runs here: libraries of the device that are not there, for which the program's own code stands in.
  const std::vector<std::string>& notes() const;
  /// Null: the host. It lives as long as the session.
  Device* device() const;
  /// Bytes that its device can still give it; nothing on the host.
  std::optional<std::uint64_t> free_device_memory() const;
  /// How many `SessionOptions::threads` stands for. Throws Error kUsage for less than 0.
  static int thread_count(int asked);
  bool has_entry(std::string_view entry) const;
  /// Throws Error kPlanEntry.
  const plan::Entry& entry(std::string_view entry) const;

  /// Runs an entry point. `feeds` by name, each of the declared type; shapes bind the symbolic sizes (the last 8 bindings are kept; a new one prepares:
  /// evaluates sizes, places memory, makes library primitives; the others allocate nothing). A result() of an earlier run may be fed, and is copied. Throws Error kDataName, kDataShape, kDataType, kMemory; kUsage where another thread is in a run.
  void run(std::string_view entry, std::span<const std::pair<std::string, TensorView>> feeds);
  /// Begins to bring to the device what the next run or the one after it will be fed, while it does other things; run() takes from there what has the place, the version and the size of these views. Views
  /// without a version are passed over. The memory holds still until the next run() has returned. On the host, or where the device has no memory left for it, it does nothing.
  void feed_ahead(std::span<const std::pair<std::string, TensorView>> feeds);
  /// A result of the last run of any entry, read where it lies; valid until the next run.
  TensorView result(std::string_view name) const;
  /// A copy of it.
  Tensor result_tensor(std::string_view name) const;

  /// Runs an entry once more, step by step, to see where numbers stop being finite. Its updates must be predicated on a finite loss, as training steps' are: then it
  /// changes nothing. Throws what run() throws.
  NotFiniteReport find_not_finite(std::string_view entry, std::span<const std::pair<std::string, TensorView>> feeds);

  /// Weights and states by name, in plain layout. Throws Error kPlanMismatch for an unknown name or another type or shape, and kPlanEntry for a state of which this replica
  /// holds a part: of that all is known after write() and keep_whole(), until a step updates it.
  Tensor read(std::string_view persistent) const;
  void write(std::string_view persistent, const Tensor& value);

  /// Does this replica hold a part of the state only (SessionOptions::shard_optimizer)? And is all of it known?
  bool holds_part(std::string_view state) const;
  bool knows_whole(std::string_view state) const;
  /// Writes that part to its place in all of the state as it lies in memory.
  void copy_part(std::string_view state, std::span<std::byte> whole) const;
  /// Lets read() know all of the state, as it lies in memory; what this replica holds stays as it is.
  void keep_whole(std::string_view state, std::span<const std::byte> whole);
  /// And no longer.
  void forget_whole(std::string_view state);
  /// The states that are held in parts, in the program's order.
  std::vector<std::string> states_in_parts() const;

  MemoryReport memory(std::string_view entry) const;  ///< of the entry's last binding

  /// Measures each step of an entry from now on, which costs some 50 ns a step, or no longer.
  void measure_steps(std::string_view entry, bool on);
  /// What was measured since, in the order of the steps.
  std::vector<StepTime> step_times(std::string_view entry) const;

  /// Writes down from now on when each thread of the host, or each stream of the device, runs what, under the name `process`; null: no longer. `trace` may be written out while the session lives, and outlives its use here.
  void trace(Trace* trace, const std::string& process);

 private:
  struct Impl;
  /// There is none behind a move: Error kUsage.
  class OwnImpl {
   public:
    OwnImpl& operator=(std::unique_ptr<Impl> impl) noexcept;
    Impl* operator->() const;

   private:
    std::unique_ptr<Impl> impl_;
  };
  OwnImpl impl_;
};

/// Values of all symbols from the shapes of the feeds. Solves a*N + b for one unknown; checks everything else and the entry's equations.
/// Throws Error kDataShape that names the feed, what was found and what was expected.
DimBindings bind_sizes(const plan::Entry& entry, std::span<const std::pair<std::string, TensorView>> feeds);

}  // namespace hone
