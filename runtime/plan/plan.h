// Plan: what a compiled training job is. The compiler writes it, the runtime and hone-dump read it; none of them needs the other.
//
// File: magic, version, section table, protobuf metadata (plan.proto mirrors these structs), 64-byte-aligned blobs, a hash of each section.
// Sizes are symbolic (base/dims.h) and evaluated by the executor once per binding, so one plan serves any batch size.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dims.h"
#include "base/dtype.h"
#include "base/tensor.h"
#include "runtime/plan/panels.h"

namespace hone::plan {

/// A tensor that lives as long as the session: weights, optimizer state, running statistics, counters, constants.
struct Persistent {
  enum class Role : std::uint8_t { kWeight, kState, kConstant };
  std::string name;  ///< for weights and running statistics the ONNX initializer's name
  Role role = Role::kWeight;
  bool trained = false;   ///< an update replaces it
  bool in_model = false;  ///< is an initializer of the ONNX model: written back into the trained .onnx
  Tensor initial;         ///< type, shape and initial contents, row-major
  std::optional<Panels> panels = {};  ///< how it lies in memory, if not row-major
  bool in_parts = false;              ///< a state of which a replica that shares the optimizer's work needs its own part only: sharded_entry()
  std::string whole_because = {};     ///< of a state of the optimizer that is not: why
  std::string exported_as = {};       ///< where there are adapters: its name in files that hold them alone; "" for what is not in those
  /// A weight that is kept in less than files have it in: `initial` is rounded to bf16, or i8, which times its scale along `axis` is the weight.
  struct Narrowed {
    DType outside = DType::kF32;  ///< what files hold
    std::string scales = {};      ///< the persistent that has them, f32[extent of the axis]; "" without
    std::uint32_t axis = 0;
  };
  std::optional<Narrowed> narrowed = {};
};

/// The shape of a buffer that shows it.
Shape shape_in_memory(const Persistent& persistent);

struct Buffer {
  enum class Storage : std::uint8_t {
    kArena,       ///< placed by place_buffers; lives from the first to the last step that uses it
    kPersistent,  ///< index: into Program::persistents
    kFeed,        ///< index: into Entry::feeds; memory of the caller, read only
    kView,        ///< index: another buffer of the entry; same bytes, another shape
  };
  std::string name;  ///< of the graph value, for people
  DType dtype = DType::kF32;
  Shape shape;
  Storage storage = Storage::kArena;
  std::uint32_t index = 0;
  std::uint32_t first_step = 0, last_step = 0;  ///< kArena: inclusive range of steps during which it is alive (views and results included)
  bool opaque = false;                          ///< size and layout are the library call's that writes it (a pooling workspace); `shape` is then only a hint
};

/// A generated kernel: void symbol(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end).
struct KernelStep {
  std::string symbol;                  ///< in the program's code
  std::vector<std::uint32_t> buffers;  ///< Entry::buffers, in the kernel's order
  std::vector<Dim> sizes;
  Dim range;  ///< number of outer points; may be split among threads at any place
  Dim work;   ///< scalar operations, roughly: tiny kernels are not worth a second thread
  std::uint32_t read_only = 0;  ///< the first so many buffers are only read; it may write to the others
  bool own_part = false;        ///< over this replica's part of the points alone, piece_of(range, replicas, rank), which touches that part of the elements of what is in parts
};

/// A call of a library row (runtime/library): a faster way to do what one op (or a few) means.
struct LibraryStep {
  std::string row;                                     ///< "onednn.matmul", ...
  std::map<std::string, std::vector<Dim>> attributes;  ///< strides, pads, ta, groups ...
  std::vector<std::int64_t> operands;                  ///< Entry::buffers; -1 for an absent optional operand
  std::vector<std::uint32_t> results;
  /// The same by the program's own code, from these operands to these results: what a device runs that has no such library, or one that does not take these sizes. The host's
  /// libraries are parts of Hone, and need no such thing.
  std::optional<KernelStep> own_kernel = {};
  /// A kernel behind the call that another row does in the same call. A device takes what it finds faster: the two, or the one.
  struct Epilogue {
    KernelStep kernel;  ///< reads the call's result, or what the call reads; nobody else reads a result that it reads
    std::string row;    ///< "cublaslt.matmul_bias", ...
    std::map<std::string, std::vector<Dim>> attributes;
    std::vector<std::int64_t> operands;  ///< what the call and the kernel read, but for what they hand on
    std::vector<std::uint32_t> results;  ///< what they write, but for that
  };
  std::optional<Epilogue> epilogue = {};
};

/// A plain C++ function over whole tensors, by name (ops of meaning `host`).
struct HostStep {
  std::string function;
  std::map<std::string, std::vector<Dim>> attributes;
  std::vector<std::int64_t> operands, results;  ///< Entry::buffers; -1 for an absent operand, or a result that nobody reads
};

struct CopyStep {
  std::uint32_t from = 0, to = 0;  ///< same byte count
};

/// What replicas exchange, in place (runtime/collective/communicator.h): sums of what the replica's shards have collected for the bucket, or else of what lies in the buffers; or
/// everybody's parts. One replica alone leaves them as they are. It may go on while other steps run, until end_of_exchange().
struct AllReduceStep {
  enum class Operation : std::uint8_t {
    kAllReduce,
    kReduceScatter,  ///< nobody reads more of the sums than the replica's own part
    kAllGather,      ///< of what each has in its own part; no bucket of gradients
  };
  std::vector<std::uint32_t> buffers;
  std::int64_t bucket = 0;
  bool collects = false;  ///< nothing is exchanged: the buffers, which are only read, are a shard's
  Operation operation = Operation::kAllReduce;
};

/// "all_reduce", "reduce_scatter", "all_gather"
std::string_view to_string(AllReduceStep::Operation operation);

/// From here on `symbols` stand for the buffer's integers. It ends a *segment*: sizes that depend on them are bound, and memory placed, when it has run.
struct ReadSizesStep {
  std::uint32_t buffer = 0;
  std::vector<std::string> symbols;
};

struct Entry;

/// A loop, a branch, or a call of a library with what does the same beside it. A body is an entry of its own, whose feeds stand for what the step gives it: for kScan the iteration's number (i64[]), the states, a
/// slice of each scanned operand, the other operands whole; for kWhile the same without scanned ones; for kBranch the operands behind the condition; for kCall all operands.
struct RegionStep {
  enum class Kind : std::uint8_t {
    kScan,    ///< body: new states, slices to stack. Results: final states, every state as each iteration found it, the stacked slices
    kWhile,   ///< operand 0 is the first condition. Body: condition, new states. Result: number of iterations, i64[]
    kBranch,  ///< operand 0 is the condition. Bodies: where it holds, where not. Results: the body's
    kCall,    ///< of a device's library. Body: the same in several steps, for where the call cannot be made; only there does it take memory. Results: the body's, each of them
  };
  Kind kind = Kind::kScan;
  Dim trips;  ///< of kScan; the most of kWhile; 1 of kCall
  bool reverse = false;
  std::uint32_t states = 0, scanned = 0;
  std::vector<std::int64_t> operands, results;  ///< Entry::buffers; -1 for a result that nobody reads
  std::vector<Entry> bodies;
  std::string row = {};  ///< of kCall, and its attributes
  std::map<std::string, std::vector<Dim>> attributes = {};
};
/// The call of a kCall.
LibraryStep library_call(const RegionStep& step);

struct Step {
  std::variant<KernelStep, LibraryStep, HostStep, CopyStep, AllReduceStep, ReadSizesStep, RegionStep> what;
  std::string origin;  ///< "backward of conv1/Conv": for traces, errors and the dump
  std::vector<std::string> nodes = {};  ///< the nodes of the model, as the user knows them, whose work it does: several, where they are one kernel
  /// What it takes, as far as is known when compiling, for people: no step runs another way for it. Of a loop or a branch nothing, as its bodies' steps have theirs.
  Dim flops = 0;  ///< of values, not of indices; a multiplication and the addition of its product are two, a function is one
  Dim bytes = 0;  ///< elements that it reads or writes, each once
};

enum class Access : std::uint8_t { kRead, kWrite, kReadWrite };

/// Calls use(buffer, access) for every buffer of the step. A kernel's buffers are kRead: that it writes to none that it must not is its maker's to know.
template <typename Use>
void for_each_buffer(const Step& step, Use use) {
  const auto all = [&](const auto& buffers, Access access) {
    for (const auto buffer : buffers)
      if (static_cast<std::int64_t>(buffer) != -1) use(static_cast<std::uint64_t>(buffer), access);
  };
  if (const auto* kernel = std::get_if<KernelStep>(&step.what)) {
    all(kernel->buffers, Access::kRead);
  } else if (const auto* library = std::get_if<LibraryStep>(&step.what)) {
    all(library->operands, Access::kRead), all(library->results, Access::kWrite);
    if (library->epilogue) {
      const auto is_own = [&](std::uint64_t buffer) {
        for (const std::uint32_t result : library->results)
          if (result == buffer) return true;
        return false;
      };
      for (const std::int64_t buffer : library->epilogue->operands) use(static_cast<std::uint64_t>(buffer), Access::kRead);
      for (const std::uint32_t buffer : library->epilogue->results)
        if (not is_own(buffer)) use(static_cast<std::uint64_t>(buffer), Access::kWrite);
    }
  } else if (const auto* host = std::get_if<HostStep>(&step.what)) {
    all(host->operands, Access::kRead), all(host->results, Access::kWrite);
  } else if (const auto* copy = std::get_if<CopyStep>(&step.what)) {
    use(copy->from, Access::kRead), use(copy->to, Access::kWrite);
  } else if (const auto* reduce = std::get_if<AllReduceStep>(&step.what)) {
    all(reduce->buffers, reduce->collects ? Access::kRead : Access::kReadWrite);
  } else if (const auto* read = std::get_if<ReadSizesStep>(&step.what)) {
    use(read->buffer, Access::kRead);
  } else if (const auto* region = std::get_if<RegionStep>(&step.what)) {
    all(region->operands, Access::kRead), all(region->results, Access::kWrite);
  }
}

/// A tensor that the caller gives at each call.
struct Feed {
  enum class Kind : std::uint8_t {
    kModelInput,
    kTarget,
    kLearningRate,  ///< f64[], the trainer's
    kSampleWeight,  ///< f32[samples], what each sample counts in the loss
    kFirstSample,   ///< i64[], where this batch begins in the whole one, of which replicas take parts: random numbers are keyed by it. 0 if it is not given
  };
  std::string name;
  Kind kind = Kind::kModelInput;
  DType dtype = DType::kF32;
  Shape shape;
  /// Integer inputs that index something: every element in [low, high), or equal to *ignored.
  std::optional<std::pair<std::int64_t, std::int64_t>> bounds;
  std::optional<std::int64_t> ignored;
};

/// Is the feed a column of a data set?
inline bool is_data(const Feed& feed) {
  return feed.kind == Feed::Kind::kModelInput or feed.kind == Feed::Kind::kTarget or feed.kind == Feed::Kind::kSampleWeight;
}

struct Result {
  std::string name;  ///< ONNX output name; or kLossSum, kTargetCount, "metric:accuracy", "grad_norm:WEIGHT"
  std::uint32_t buffer = 0;
};

// Names of the results that the trainer reads.
inline constexpr const char* kLossSum = "loss_sum";           ///< f32[]: sum of the losses of all targets of the batch
inline constexpr const char* kTargetCount = "target_count";   ///< f32[]: what the sum is divided by for the mean: the number of targets that count, or the sum of their weights
/// f64[..]: the sums of which the metric is a function (base/objectives.h); or f32[]: a sum over the targets, which divided by kTargetCount is the metric.
inline constexpr const char* kMetricPrefix = "metric:";
// Of training with a scaled loss (train.precision = "f16"):
inline constexpr const char* kLossScale = "loss_scale";       ///< f32[]: what this step's mean loss was multiplied by
inline constexpr const char* kOverflows = "overflows";        ///< f32[]: how many elements of the gradients were not finite; unless 0 the step was left out
inline constexpr const char* kSkippedSteps = "skipped_steps"; ///< f64[]: those of the whole run that were
inline constexpr const char* kRandomSeed = "random_seed";     ///< not a result but a state, i64[]: the seed of this run's random numbers
inline constexpr const char* kGradNormPrefix = "grad_norm:";  ///< f32[]: L2 norm of the mean loss's gradient, before clipping and weight decay

// Names of states that the trainer looks at.
inline constexpr const char* kEmaSuffix = "/ema";                      ///< behind a trained weight's name: its moving average, if train.ema_decay is set
inline constexpr const char* kAccumulatedSuffix = "/accumulated";      ///< behind a trained weight's name: the gradient sums since the last update
inline constexpr const char* kAccumulatedTargets = "accumulated_targets";  ///< f32[]: their kTargetCount

// Entry points.
inline constexpr const char* kTrainStep = "train_step";
/// With train.gradient_accumulation_steps above 1: adds the batch's gradients to what the next train_step updates with, and changes no weight. The same feeds (but
/// for the learning rate) and results as train_step.
inline constexpr const char* kAccumulateStep = "accumulate_step";
inline constexpr const char* kTrainStepNorms = "train_step_norms";  ///< the same, with a grad_norm result per trained weight
/// Gradients of one of a replica's shards, which are collected for the idle_step that follows, or, over several batches, for that behind idle_accumulate_steps: what is collected stays until it is
/// exchanged. Feeds and results as train_step. Not there where batch normalization exchanges its statistics.
inline constexpr const char* kShardStep = "shard_step";
/// What several replicas call in place of kTrainStep, kTrainStepNorms, kAccumulateStep: "replica_step", "replica_step_norms", "replica_accumulate_step". Those without samples in a
/// batch call "idle_step" and so on: the same exchanges, to which they bring zeros or what their shards have collected, and the same update.
inline std::string replica_entry(std::string_view entry) { return "replica_" + std::string(entry.starts_with("train_") ? entry.substr(6) : entry); }
inline std::string idle_entry(std::string_view entry) { return "idle_" + std::string(entry.starts_with("train_") ? entry.substr(6) : entry); }
/// What replicas that share the optimizer's work call in place of such an entry that updates: each updates its part of weights and states, and gets the others' parts of the weights.
/// The same sums, and so the same weights bit by bit.
inline std::string sharded_entry(std::string_view replica_entry) { return "sharded_" + std::string(replica_entry); }
inline bool is_sharded(std::string_view entry) { return entry.starts_with("sharded_"); }
inline constexpr const char* kEvalStep = "eval_step";
inline constexpr const char* kPredict = "predict";

struct Entry {
  std::string name;
  std::vector<Feed> feeds;
  std::vector<Result> results;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<std::pair<Dim, Dim>> equations;  ///< must hold for a binding
};

/// Everything for one target.
struct Program {
  std::string target;                                                ///< "cpu"
  std::vector<std::pair<std::string, std::vector<std::byte>>> code;  ///< level ("x86-64-v3") -> ELF shared object; the best that fits is loaded
  std::vector<Persistent> persistents;
  std::vector<Entry> entries;

  const Entry* find(std::string_view entry) const;
};

/// The entry of that name, or null.
const Entry* find(std::span<const Entry> entries, std::string_view name);
/// The buffer whose memory it is: itself, or what it is a view of, directly or not.
std::uint32_t root_of(const Entry& entry, std::uint64_t buffer);
/// The step before which the AllReduceStep number `exchange` must have ended: the first one behind it that uses one of its buffers. The number of steps, where none does.
std::uint32_t end_of_exchange(const Entry& entry, std::uint32_t exchange);

struct Plan {
  std::string model_name;                     ///< file name of the model, for people
  std::string recipe_json;                    ///< the recipe as resolved; empty for a plan that can only predict
  std::vector<std::byte> onnx_model;          ///< the ModelProto that came in, initializers' data stripped: for writing the trained model back
  std::string batch_symbol;                   ///< the symbol of the samples' axis, "" if all sizes are fixed
  std::map<std::string, std::string> graphs;  ///< stage -> .hir or kernel text; for hone-dump, which the runtime never reads
  std::vector<Program> programs;
};

/// Everything an executor relies on, as numbered here:
///  P1 every index (buffer, feed, persistent, view, step) is within range; views end at a buffer that is none, and not at an opaque one
///  P2 a step uses an arena buffer, directly or through a view, only within [first_step, last_step]; one that a result shows lives to the last step; those that are exchanged live until the exchange
///  has ended
///  P3 every size is a function of the symbols in the feeds' shapes, of those that a step reads, and in a body of those around it
///  P4 a kPersistent or kFeed buffer has the type and shape (in memory) of what it stands for; panels divide their axis; no step writes to a feed; only arena buffers are opaque, and library steps alone use them; a library or host step writes nowhere where it reads; only integers have
///  bounds
///  P5 targets, entries of a program, persistents of a program, feeds and results of an entry have distinct names; what the trainer knows by name (learning rate, sums) has the type and size named above
///  P6 the feeds of a body fit what its region step gives it, and its results what the step makes of them; bodies are nested at most limits::kBodyDepth deep
///  P7 what is in parts is a state; entries that share the optimizer's work touch it in kernels over their own part alone, and no other entry has such kernels
///  P8 a weight that is kept as i8 has a scale for each element of an axis, f32 and row-major; one that is kept as a float has none
/// Throws Error kPlanFormat naming the first that does not hold. Kernels' accesses are not known here: their maker answers for them.
void check(const Plan& plan);

/// Writes atomically, without check(). Throws Error kFileWrite.
void save(const Plan& plan, const std::string& path);

/// Reads and checks magic, version, section bounds, hashes, unknown features, and check(). Throws Error kPlanFormat, kPlanVersion or kMemory.
Plan load(const std::string& path);

/// A live range and the bytes it needs.
struct Interval {
  std::uint32_t first = 0, last = 0;  ///< inclusive
  std::int64_t bytes = 0;
};
struct Placement {
  std::vector<std::int64_t> offsets;  ///< multiples of 64, in the order of the intervals
  std::int64_t total = 0;             ///< bytes of the arena
  std::int64_t lower_bound = 0;       ///< largest sum of bytes alive at one step
};
/// Places buffers so that no two that are alive together overlap. Pure: compiler and runtime get the same answer.
Placement place_buffers(std::span<const Interval> intervals);

}  // namespace hone::plan
