// Prepare: a segment of an entry point with all its sizes known: numbers instead of expressions, memory placed, library calls made.
// It holds for one set of sizes and one number of threads; running it allocates nothing.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "host/host_function.h"
#include "runtime/collective/communicator.h"
#include "runtime/device/code_loader.h"
#include "runtime/device/host_memory.h"
#include "runtime/device_work.h"
#include "runtime/kernel_run.h"
#include "runtime/library/rows.h"
#include "runtime/plan/plan.h"
#include "runtime/session.h"

namespace hone {

/// A kernel of the loaded code: a function of the host, or a device's.
struct LoadedKernel {
  KernelFunction function = nullptr;
  const DeviceKernel* on_device = nullptr;
  bool is_there() const { return function != nullptr or on_device != nullptr; }
};
/// Those that a program's steps name.
using KernelTable = std::unordered_map<std::string, LoadedKernel>;

struct BoundBuffer {
  TensorType type;
  std::size_t bytes = 0;
  std::uint32_t root = 0;  ///< the buffer whose memory it is: itself, or what it is a view of
};

/// A call of the host's library, or of the device's, with what else belongs to its step.
struct BoundLibrary {
  std::unique_ptr<LibraryCall> call = nullptr;
  std::unique_ptr<DeviceCall> on_device = nullptr;
  bool on_one_thread = false;          ///< made for one, and to be run on one
  std::vector<std::int64_t> operands;  ///< -1: absent
  std::vector<std::uint32_t> results;
  std::vector<BoundKernel> kernels = {};  ///< on a device: the program's own in the call's place, if there is no call, and the one behind it
};

struct BoundHost {
  const HostFunction* function = nullptr;
  HostAttributes attributes;
  std::vector<std::int64_t> operand_buffers, result_buffers;  ///< -1: absent
  std::vector<HostTensor> operands, results;
  HostScratch scratch;  ///< kept from call to call
};

struct BoundSegment;

/// A loop, a branch, or a call that cannot be made; the executor has an Executor for each body.
struct BoundRegion {
  const plan::RegionStep* region = nullptr;
  std::size_t number = 0;  ///< among the entry's regions
  std::int64_t trips = 0;
  std::vector<std::size_t> state_bytes, state_offsets;    ///< of each, and where it lies in either half of `states`
  std::vector<std::size_t> scanned_bytes, stacked_bytes;  ///< of a slice
  std::size_t states_bytes = 0, states_offset = 0;        ///< twice all states, what an iteration reads and what it leaves; or the arena of a call's body; where in the arena
  std::byte* states = nullptr;                            ///< there
  std::vector<const void*> feeds;                         ///< of a body, filled in for each run
  std::vector<void*> results;                             ///< of a body: where they are wanted
  std::unique_ptr<BoundSegment> body = {};                ///< of a call, until its Executor has it
};

/// What replicas exchange. It may go on until a step comes that uses one of the buffers.
struct BoundExchange {
  std::string name;  ///< "while replica_step exchanged bucket 2: w/gradient"
  std::uint32_t step = 0;  ///< its number among the entry's
  std::int64_t bucket = 0;
  bool collects = false;
  plan::AllReduceStep::Operation operation = plan::AllReduceStep::Operation::kAllReduce;
  std::vector<std::uint32_t> buffers;
  std::vector<ExchangedTensor> tensors;  ///< one for each buffer; where they lie is the executor's to fill in
};

/// Nothing goes on before the segment's first so many exchanges have ended.
struct BoundWait {
  std::size_t exchanges = 0;
};

using BoundStep = std::variant<KernelRun, BoundLibrary, BoundHost, BoundExchange, BoundWait, BoundRegion>;

/// The steps between two reads of sizes, with everything that can be known then.
struct BoundSegment {
  DimBindings sizes;
  std::vector<std::vector<std::int64_t>> feed_shapes;          ///< of an entry's first segment: what it is bound to
  std::vector<BoundBuffer> buffers;                            ///< those that the segment uses; others are empty
  std::vector<BoundStep> steps;                                ///< those that have something to do
  std::vector<std::uint32_t> step_numbers;                     ///< of each, among the entry's; of neighbouring kernels that of the first, of a wait that of the exchange
  std::vector<std::pair<std::uint32_t, std::size_t>> placed;   ///< arena buffers that begin to live here, and where
  std::vector<std::pair<std::uint32_t, std::uint32_t>> views;  ///< and their roots
  std::size_t scratch_offset = 0;
  std::size_t memory_bytes = 0;   ///< arena and scratch
  MemoryReport report;            ///< but for `persistent`
  std::size_t most_pointers = 0;  ///< the longest list of buffers of a step
  bool on_host_between = false;   ///< has steps for which a device waits for the host: they cannot be captured
  std::unique_ptr<CapturedSteps> captured = {};  ///< the steps as they ran on the device
  std::uint64_t last_memory_moved = UINT64_MAX;  ///< DeviceWork::memory_moved() when they ran last
};

/// Steps `first` to `end` - 1 of an entry. All buffers that live after the last one keep their memory.
struct Segment {
  std::size_t first = 0, end = 0;
  bool is_last = true;
};
/// A segment ends behind each ReadSizesStep. At least one.
std::vector<Segment> segments_of(const plan::Entry& entry);

/// What a session holds of a persistent: bytes [begin, end) of all of it.
struct Held {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

/// What a segment is prepared for: so many threads, or a device, and a replica among others.
struct Worker {
  int threads = 1;
  int replica = 0, replicas = 1;
  Device* device = nullptr;
  std::span<const Held> held = {};  ///< by persistent
  bool captured_exchanges = false;  ///< the device exchanges with others', without the host, so that it is captured
  bool in_body = false;  ///< of a loop or a branch: feeds and results may be slices that lie anywhere
};

/// For a team of so many threads, which is in use. The entry has passed plan::check, its rows, host functions and kernels exist (check_steps).
/// Throws Error kDataShape when a size becomes negative, kPlanFormat when sizes do not go together in a call, kTooLarge, kMemory.
std::unique_ptr<BoundSegment> prepare(const plan::Entry& entry, Segment segment, const KernelTable& kernels, const DimBindings& sizes, const Worker& worker);

/// Finds everything that the steps of `program` name, holds their calls against what is called, and returns its kernels. `device`: on which it is loaded; null: on the host, from `code`.
/// Throws Error kPlanMismatch for a kernel that the code lacks, a row or a host function that this version of Hone does not have, kPlanFormat for a call that its row or function does not take.
KernelTable check_steps(const plan::Program& program, const LoadedCode& code, Device* device);

}  // namespace hone
