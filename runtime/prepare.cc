#include "runtime/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "base/alignment.h"
#include "base/check.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/tensor.h"
#include "base/text.h"
#include "host/rules.h"
#include "runtime/device/host_memory.h"
#include "runtime/call_and_kernel.h"
#include "runtime/library/arena.h"
#include "runtime/library/check_calls.h"
#include "runtime/library/step_spec.h"
#include "runtime/plan/call_types.h"
#include "runtime/plan/metadata.h"

namespace hone {
namespace {

/// Multiplications from which on a library call is made for all threads: what one core does in some 5 us. By size and not by trying, because sums in
/// the library may depend on the number of threads.
constexpr double kLibraryWorkWorthThreads = 1 << 18;

/// Of a library call, roughly: m*n*k for a matrix product, for a convolution at most what it is. The same for a pooling and its gradient, which read one
/// workspace and so must be made for as many threads: what is opaque does not count.
double multiplications(const LibraryRow& row, const LibrarySpec& spec) {
  const auto count = [](const TensorType& type) { return static_cast<double>(checked_element_count(type.shape)); };
  double product = 1;
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < spec.operands.size() and tensors < 2; ++i)
    if (spec.operands[i] and static_cast<int>(i) != row.opaque_operand) product *= count(*spec.operands[i]), ++tensors;
  return std::sqrt(product * count(spec.results.at(0)));
}

/// A copy, as a kernel: buffers from and to, points are bytes.
void copy_bytes(void* const* buffers, const std::int64_t*, std::int64_t begin, std::int64_t end) {
  std::memcpy(static_cast<std::byte*>(buffers[1]) + begin, static_cast<const std::byte*>(buffers[0]) + begin, static_cast<std::size_t>(end - begin));
}

std::size_t aligned(std::size_t bytes, std::string_view what) { return round_up(bytes, kTensorAlignment, what); }

/// Is there a step for which a device must wait for the host? How often a loop runs is known before, and whether a call is made; whether a branch or another iteration is taken is not.
bool needs_host(std::span<const plan::Step> steps, const Worker& worker) {
  return std::ranges::any_of(steps, [&](const plan::Step& step) {
    const auto* region = std::get_if<plan::RegionStep>(&step.what);
    const auto* exchange = std::get_if<plan::AllReduceStep>(&step.what);
    const bool is_work = std::holds_alternative<plan::KernelStep>(step.what) or std::holds_alternative<plan::LibraryStep>(step.what) or std::holds_alternative<plan::CopyStep>(step.what);
    if (exchange != nullptr) return exchange->collects or not worker.captured_exchanges;
    if (region == nullptr) return not is_work;
    const bool is_known = region->kind == plan::RegionStep::Kind::kScan or region->kind == plan::RegionStep::Kind::kCall;
    return not is_known or std::ranges::any_of(region->bodies, [&](const plan::Entry& body) { return needs_host(body.steps, worker); });  // plan::check limits the depth
  });
}

class Preparer {
 public:
  Preparer(const plan::Entry& entry, Segment segment, const KernelTable& kernels, const DimBindings& sizes, const Worker& worker)
      : entry_(entry), segment_(segment), kernels_(kernels), sizes_(sizes), worker_(worker), bound_(std::make_unique<BoundSegment>()) {}

  std::unique_ptr<BoundSegment> prepare() {
    bound_->sizes = sizes_;
    bound_->on_host_between = needs_host(std::span(entry_.steps).subspan(segment_.first, segment_.end - segment_.first), worker_);
    bound_->buffers.resize(entry_.buffers.size());
    if (segment_.first == 0)
      for (const plan::Feed& feed : entry_.feeds) bound_->feed_shapes.push_back(evaluate(feed.shape, sizes_));
    const std::vector<std::uint32_t> used = used_buffers();
    for (const std::uint32_t buffer : used) size_buffer(buffer);
    for (const std::uint32_t buffer : used) {
      check_view(buffer);
      if (bound_->buffers[buffer].root != buffer) bound_->views.emplace_back(buffer, bound_->buffers[buffer].root);
    }
    std::size_t regions = 0;
    for (std::size_t i = 0; i < segment_.end; ++i) {
      number_ = i;
      number_of_region_ = regions;
      regions += std::holds_alternative<plan::RegionStep>(entry_.steps[i].what);
      if (i < segment_.first) continue;
      add_wait();
      std::visit([&](const auto& what) { add_step(what, entry_.steps[i].origin); }, entry_.steps[i].what);
      bound_->step_numbers.resize(bound_->steps.size(), static_cast<std::uint32_t>(i));
    }
    place();
    const std::vector<MemoryRange> memory = memory_ranges();
    for (BoundStep& step : bound_->steps)
      if (auto* run = std::get_if<KernelRun>(&step)) share_out(*run, memory, worker_.threads);
    return std::move(bound_);
  }

 private:
  /// Those that the steps use, and those that begin to live here or are results; with each view what it shows.
  std::vector<std::uint32_t> used_buffers() const {
    std::vector<bool> used(entry_.buffers.size());
    for (std::size_t i = segment_.first; i < segment_.end; ++i)
      plan::for_each_buffer(entry_.steps[i], [&](std::uint64_t buffer, plan::Access) { used[buffer] = true; });
    for (std::size_t i = 0; i < used.size(); ++i)
      if (is_placed_here(entry_.buffers[i])) used[i] = true;
    if (segment_.is_last)
      for (const plan::Result& result : entry_.results) used[result.buffer] = true;
    for (std::size_t i = 0; i < used.size(); ++i)
      if (used[i]) used[plan::root_of(entry_, i)] = true;
    std::vector<std::uint32_t> numbers;
    for (std::size_t i = 0; i < used.size(); ++i)
      if (used[i]) numbers.push_back(static_cast<std::uint32_t>(i));
    return numbers;
  }

  bool is_placed_here(const plan::Buffer& buffer) const {
    const bool starts_here = buffer.first_step >= segment_.first and (buffer.first_step < segment_.end or entry_.steps.empty());
    return buffer.storage == plan::Buffer::Storage::kArena and starts_here;
  }

  void size_buffer(std::uint32_t number) {
    const plan::Buffer& buffer = entry_.buffers[number];
    BoundBuffer& added = bound_->buffers[number];
    added = {.type = {.dtype = buffer.dtype, .shape = evaluate(buffer.shape, sizes_)}, .bytes = 0, .root = plan::root_of(entry_, number)};
    if (std::any_of(added.type.shape.begin(), added.type.shape.end(), [](std::int64_t extent) { return extent < 0; })) too_small(buffer, added.type.shape);
    if (not buffer.opaque) added.bytes = static_cast<std::size_t>(checked_element_count(added.type.shape)) * size_of(buffer.dtype);
  }

  [[noreturn]] void too_small(const plan::Buffer& buffer, const std::vector<std::int64_t>& shape) const {
    std::vector<std::string> where;
    for (const auto& [name, value] : sizes_) where.push_back(fmt::format("{} = {}", printable(name), value));
    throw Error(Code::kDataShape, fmt::format("the inputs are too small: {} would have shape {}", quoted(buffer.name), shape_text(shape)), {},
                {fmt::format("where {}", join(where, ", "))});
  }

  /// A view has the bytes of what it shows.
  void check_view(std::uint32_t number) const {
    const BoundBuffer &view = bound_->buffers[number], &root = bound_->buffers[view.root];
    if (view.bytes == root.bytes) return;
    throw Error(Code::kDataShape, fmt::format("{} of shape {} cannot be read as shape {}", quoted(entry_.buffers[view.root].name), shape_text(root.type.shape),
                                              shape_text(view.type.shape)));
  }

  void add_step(const plan::KernelStep& step, const std::string& origin) { add_kernel(bound_kernel(step, origin)); }

  BoundKernel bound_kernel(const plan::KernelStep& step, const std::string& origin) {
    const LoadedKernel& loaded = kernels_.at(step.symbol);
    BoundKernel kernel{.function = loaded.function,
                       .on_device = loaded.on_device,
                       .buffers = step.buffers,
                       .read_only = step.read_only,
                       .range = step.range.evaluate(sizes_),
                       .work = step.work.evaluate(sizes_)};
    if (kernel.range < 0) refuse(fmt::format("kernel {} would run over {} points", quoted(step.symbol), kernel.range), origin);
    for (const Dim& size : step.sizes) kernel.sizes.push_back(size.evaluate(sizes_));
    if (step.own_part) keep_own_part(kernel);
    kernel.step = static_cast<std::uint32_t>(number_);
    kernel.arguments.resize(kernel.buffers.size());
    if (kernel.on_device != nullptr) say_what_is_there(kernel);
    return kernel;
  }

  void say_what_is_there(BoundKernel& kernel) const {
    for (const std::uint32_t buffer : kernel.buffers) {
      const plan::Buffer& root = entry_.buffers[bound_->buffers[buffer].root];
      const bool is_persistent = root.storage == plan::Buffer::Storage::kPersistent;
      const Held there = is_persistent ? worker_.held[root.index] : Held{0, bound_->buffers[buffer].bytes};
      kernel.bytes.push_back(there.size());
      kernel.skipped.push_back(there.begin);
    }
  }

  void keep_own_part(BoundKernel& kernel) const {
    const RangePiece own = piece_of(kernel.range, worker_.replicas, worker_.replica);
    kernel.begin = own.begin;
    kernel.range = own.end - own.begin;
    kernel.work /= worker_.replicas;
  }

  /// To the run of kernels that the steps so far end with, or to a new one.
  void add_kernel(BoundKernel kernel) {
    if (kernel.range == 0) return;
    kernel.step = static_cast<std::uint32_t>(number_);
    kernel.arguments.resize(kernel.buffers.size());
    if (bound_->steps.empty() or not std::holds_alternative<KernelRun>(bound_->steps.back())) bound_->steps.emplace_back(KernelRun{});
    std::get<KernelRun>(bound_->steps.back()).kernels.push_back(std::move(kernel));
  }

  /// What the plan asks for does not go together with these sizes.
  [[noreturn]] static void refuse(const std::string& what, const std::string& origin) {
    throw plan::unsound_plan(fmt::format("in the step {}: {}", quoted(origin), what));
  }

  template <typename Call>
  LibrarySpec spec_of(const Call& call, const std::string& origin) const {
    LibrarySpec spec = library_spec(call, sizes_, [this](std::uint32_t buffer) { return bound_->buffers[buffer].type; });
    check_call(*find_library_row(call.row), spec, origin);
    return spec;
  }

  void add_step(const plan::LibraryStep& step, const std::string& origin) {
    const LibrarySpec spec = spec_of(step, origin);
    if (worker_.device != nullptr) return add_on_device(step, spec, origin);
    const bool on_one_thread = multiplications(*find_library_row(step.row), spec) < kLibraryWorkWorthThreads;
    BoundLibrary library{
        .call = make_call(step.row, spec, on_one_thread, origin), .on_one_thread = on_one_thread, .operands = step.operands, .results = step.results};
    for (std::size_t i = 0; i < step.results.size(); ++i) set_opaque_bytes(step.results[i], library.call->description().result_bytes[i]);
    check_workspace(step, library.call->description(), origin);
    scratch_bytes_ = std::max(scratch_bytes_, library.call->description().scratch_bytes);
    bound_->most_pointers = std::max(bound_->most_pointers, step.operands.size() + step.results.size());
    bound_->steps.emplace_back(std::move(library));
  }

  /// By the device's library, or else by the program's own kernel; and the kernel behind it, where the library does not do that in the same call. Whatever it takes is one step: it is measured and shown as one.
  void add_on_device(const plan::LibraryStep& step, const LibrarySpec& spec, const std::string& origin) {
    const LibraryRow& row = *find_library_row(step.row);
    BoundLibrary library{.operands = step.operands, .results = step.results};
    if (can_be_called(row, step, spec)) library.on_device = worker_.device->make_call(row, spec);
    if (library.on_device != nullptr and step.epilogue and add_with_epilogue(step, *library.on_device, origin)) return;
    const auto add_own = [&](const plan::KernelStep& own) {
      if (BoundKernel kernel = bound_kernel(own, origin); kernel.range > 0) library.kernels.push_back(std::move(kernel));
    };
    if (library.on_device == nullptr) add_own(*step.own_kernel);
    if (step.epilogue) add_own(step.epilogue->kernel);
    add_call(std::move(library));
  }

  template <typename Call>
  bool can_be_called(const LibraryRow& row, const Call& call, const LibrarySpec& spec) const {
    return not has_empty_tensor(row, spec) and is_aligned_for_libraries(call) and worker_.device->why_no_library(row).empty();
  }

  void add_call(BoundLibrary library) {
    if (library.on_device != nullptr) scratch_bytes_ = std::max(scratch_bytes_, library.on_device->scratch_bytes());
    if (library.on_device != nullptr or not library.kernels.empty()) bound_->steps.emplace_back(std::move(library));
  }

  /// Where one call does both faster than `call` and the kernel.
  bool add_with_epilogue(const plan::LibraryStep& step, DeviceCall& call, const std::string& origin) {
    const plan::LibraryStep::Epilogue& epilogue = *step.epilogue;
    const LibraryRow& row = *find_library_row(epilogue.row);
    const LibrarySpec spec = spec_of(epilogue, origin);
    const BoundKernel kernel = bound_kernel(epilogue.kernel, origin);
    if (kernel.range == 0 or not can_be_called(row, epilogue, spec)) return false;
    CallAndKernel apart(*worker_.device, call, step, kernel, bound_->buffers[step.results[0]].bytes);
    std::unique_ptr<DeviceCall> both = worker_.device->make_faster_call(row, spec, apart);
    if (both == nullptr) return false;
    add_call({.on_device = std::move(both), .operands = epilogue.operands, .results = epilogue.results});
    return true;
  }

  /// A slice of what a loop scans or stacks lies wherever the slices before it end.
  template <typename Call>
  bool is_aligned_for_libraries(const Call& step) const {
    if (not worker_.in_body) return true;
    const auto is_outside = [this](std::uint32_t buffer) {
      const std::uint32_t root = bound_->buffers[buffer].root;
      return entry_.buffers[root].storage == plan::Buffer::Storage::kFeed or
             std::ranges::any_of(entry_.results, [&](const plan::Result& result) { return bound_->buffers[result.buffer].root == root; });
    };
    const auto fits = [&](std::int64_t buffer) { return buffer < 0 or not is_outside(static_cast<std::uint32_t>(buffer)) or bound_->buffers[static_cast<std::size_t>(buffer)].bytes % kLibraryAlignment == 0; };
    return std::ranges::all_of(step.operands, fits) and std::ranges::all_of(step.results, fits);
  }

  static std::unique_ptr<LibraryCall> make_call(const std::string& row, const LibrarySpec& spec, bool on_one_thread, const std::string& origin) {
    std::optional<LibraryOnOneThread> one_thread;
    if (on_one_thread) one_thread.emplace();
    try {
      return find_library_row(row)->make(spec);
    } catch (const InternalError& error) { throw InternalError(fmt::format("{}\n  in the step \"{}\"", error.what(), printable(origin))); }
  }

  /// What is opaque has the bytes that a call before this one gave it.
  void check_workspace(const plan::LibraryStep& step, const LibraryDescription& description, const std::string& origin) const {
    const int operand = find_library_row(step.row)->opaque_operand;
    if (operand < 0) return;
    const auto buffer = static_cast<std::uint32_t>(step.operands[static_cast<std::size_t>(operand)]);
    const std::size_t bytes = is_placed_here(entry_.buffers[buffer]) ? bound_->buffers[buffer].bytes : bytes_written_before(buffer);
    if (bytes < description.opaque_operand_bytes) refuse(fmt::format("{} reads {} bytes of a workspace of {}", step.row, description.opaque_operand_bytes, bytes), origin);
  }

  /// By an earlier segment's call, to what is opaque.
  std::size_t bytes_written_before(std::uint32_t buffer) const {
    for (std::size_t i = 0; i < segment_.first; ++i) {
      const auto* library = std::get_if<plan::LibraryStep>(&entry_.steps[i].what);
      const auto found = library == nullptr ? 0 : std::ranges::find(library->results, buffer) - library->results.begin();
      if (library == nullptr or found == std::ssize(library->results)) continue;
      const LibrarySpec spec = library_spec(*library, sizes_, [this](std::uint32_t of) { return TensorType{entry_.buffers[of].dtype, evaluate(entry_.buffers[of].shape, sizes_)}; });
      const bool on_one_thread = multiplications(*find_library_row(library->row), spec) < kLibraryWorkWorthThreads;
      return make_call(library->row, spec, on_one_thread, entry_.steps[i].origin)->description().result_bytes[static_cast<std::size_t>(found)];
    }
    return 0;
  }

  void set_opaque_bytes(std::uint32_t buffer, std::size_t bytes) {
    if (entry_.buffers[buffer].opaque) bound_->buffers[buffer].bytes = std::max(bound_->buffers[buffer].bytes, bytes);
  }

  static std::vector<const HostTensor*> there(const std::vector<std::int64_t>& buffers, const std::vector<HostTensor>& tensors) {
    std::vector<const HostTensor*> list;
    for (std::size_t i = 0; i < buffers.size(); ++i) list.push_back(buffers[i] < 0 ? nullptr : &tensors[i]);
    return list;
  }

  void add_step(const plan::HostStep& step, const std::string& origin) {
    const auto tensors = [this](const std::vector<std::int64_t>& buffers) {
      std::vector<HostTensor> list;
      for (const std::int64_t buffer : buffers) {
        if (buffer < 0) {
          list.emplace_back();
          continue;
        }
        const TensorType& type = bound_->buffers[static_cast<std::size_t>(buffer)].type;
        list.push_back({.dtype = type.dtype, .shape = type.shape, .data = nullptr});
      }
      return list;
    };
    HostAttributes::Lists attributes;
    for (const auto& [name, values] : step.attributes) attributes[name] = evaluate(values, sizes_);
    BoundHost host{.function = find_host_function(step.function),
                   .attributes = HostAttributes(std::move(attributes)),
                   .operand_buffers = step.operands,
                   .result_buffers = step.results,
                   .operands = tensors(step.operands),
                   .results = tensors(step.results)};
    const std::string why = find_host_rules(step.function)->fits(host.attributes, there(step.operands, host.operands), there(step.results, host.results));
    if (not why.empty()) refuse(fmt::format("the host function {} cannot be called so: {}", step.function, why), origin);
    bound_->steps.emplace_back(std::move(host));
  }

  void add_step(const plan::CopyStep& step, const std::string& origin) {
    const BoundBuffer &from = bound_->buffers[step.from], &to = bound_->buffers[step.to];
    if (from.bytes != to.bytes) refuse(fmt::format("a copy of {} bytes to {}", from.bytes, to.bytes), origin);
    const auto bytes = static_cast<std::int64_t>(from.bytes);
    if (from.root != to.root) add_kernel({.function = copy_bytes, .buffers = {step.from, step.to}, .read_only = 1, .range = bytes, .work = bytes / 8});
  }

  void add_step(const plan::AllReduceStep& step, const std::string&) {
    BoundExchange exchange{.name = name_of(step), .step = static_cast<std::uint32_t>(number_), .bucket = step.bucket, .collects = step.collects, .operation = step.operation, .buffers = step.buffers, .tensors = {}};
    for (const std::uint32_t buffer : step.buffers) {
      const BoundBuffer& bound = bound_->buffers[buffer];
      exchange.tensors.push_back({.dtype = bound.type.dtype, .count = checked_element_count(bound.type.shape), .bucket = step.bucket});
    }
    bound_->steps.emplace_back(std::move(exchange));
    if (step.collects) return;
    exchanges_.push_back(static_cast<std::uint32_t>(number_));
    waits_[plan::end_of_exchange(entry_, exchanges_.back())] = exchanges_.size();
  }

  std::string name_of(const plan::AllReduceStep& step) const {
    std::vector<std::string> names;
    for (const std::uint32_t buffer : step.buffers)
      if (const std::string& name = entry_.buffers[buffer].name; not name.empty()) names.push_back(name);
    if (step.operation == plan::AllReduceStep::Operation::kAllGather) return fmt::format("while {} gathered the weights {}", entry_.name, printable(join(names, ", ")));
    const std::string named = names.empty() ? "" : ": " + printable(join(names, ", "));  // those of the loss and of running statistics have none
    return fmt::format("while {} exchanged bucket {}{}", entry_.name, step.bucket, named);
  }

  /// Waits for the exchanges that must have ended before this step, and so for those before them.
  void add_wait() {
    const auto wait = waits_.find(static_cast<std::uint32_t>(number_));
    if (wait == waits_.end() or wait->second <= waited_) return;
    waited_ = wait->second;
    bound_->steps.emplace_back(BoundWait{waited_});
    bound_->step_numbers.push_back(exchanges_[waited_ - 1]);
  }

  void add_step(const plan::ReadSizesStep&, const std::string&) {}  // the executor's, between two segments

  void add_step(const plan::RegionStep& step, const std::string& origin) {
    if (step.kind == plan::RegionStep::Kind::kCall) return add_call_or_body(step, origin);
    BoundRegion region{.region = &step, .number = number_of_region_, .trips = step.trips.evaluate(sizes_)};
    if (region.trips < 0) throw Error(Code::kDataShape, fmt::format("{} would run {} times", quoted(origin), region.trips));
    const bool is_scan = step.kind == plan::RegionStep::Kind::kScan;
    const auto bytes_of = [&](std::int64_t buffer) { return buffer < 0 ? 0 : bound_->buffers[static_cast<std::size_t>(buffer)].bytes; };
    const auto slice_bytes = [&](std::int64_t buffer) {
      if (buffer < 0) return std::size_t{0};
      const TensorType& type = bound_->buffers[static_cast<std::size_t>(buffer)].type;
      if (type.shape[0] != region.trips)
        throw Error(Code::kDataShape,
                    fmt::format("{} has {} slices, and the loop {} iterations", quoted(entry_.buffers[static_cast<std::size_t>(buffer)].name), type.shape[0],
                                region.trips),
                    {}, {"in " + origin});
      return region.trips == 0 ? 0 : bytes_of(buffer) / static_cast<std::size_t>(region.trips);
    };
    std::size_t total = 0;
    for (std::size_t i = 0; i < step.states; ++i) {
      region.state_bytes.push_back(bytes_of(step.operands[is_scan ? i : i + 1]));
      region.state_offsets.push_back(total);
      total = checked_add(total, aligned(region.state_bytes.back(), "loop states"), "loop states");
    }
    for (std::size_t i = 0; i < step.scanned; ++i) region.scanned_bytes.push_back(slice_bytes(step.operands[step.states + i]));
    for (std::size_t i = step.states; is_scan and i < step.results.size(); ++i) region.stacked_bytes.push_back(slice_bytes(step.results[i]));
    region.states_bytes = checked_multiply(total, std::size_t{2}, "loop states");
    region.feeds.resize(step.bodies[0].feeds.size());
    region.results.resize(step.bodies[0].results.size());
    bound_->steps.emplace_back(std::move(region));
  }

  /// The body's memory is a piece of this segment's.
  void add_call_or_body(const plan::RegionStep& step, const std::string& origin) {
    const plan::LibraryStep call = plan::library_call(step);
    const LibrarySpec spec = spec_of(call, origin);
    const LibraryRow& row = *find_library_row(call.row);
    if (worker_.device != nullptr and can_be_called(row, call, spec))
      if (auto made = worker_.device->make_call(row, spec)) return add_call({.on_device = std::move(made), .operands = call.operands, .results = call.results});
    Worker inside = worker_;
    inside.in_body = true;
    BoundRegion region{.region = &step, .number = number_of_region_, .body = hone::prepare(step.bodies[0], segments_of(step.bodies[0]).front(), kernels_, sizes_, inside)};
    region.states_bytes = checked_add(region.body->memory_bytes, static_cast<std::size_t>(kDeviceScratchAlignment), "a call's memory");
    region.feeds.resize(step.bodies[0].feeds.size());
    region.results.resize(step.bodies[0].results.size());
    bound_->steps.emplace_back(std::move(region));
  }

  void place() {
    std::vector<plan::Interval> intervals;
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < entry_.buffers.size(); ++i) {
      const plan::Buffer& buffer = entry_.buffers[i];
      if (not is_placed_here(buffer)) continue;
      intervals.push_back({.first = buffer.first_step, .last = buffer.last_step, .bytes = checked_cast<std::int64_t>(bound_->buffers[i].bytes, "a buffer")});
      numbers.push_back(i);
    }
    std::vector<BoundRegion*> loops;  // whose states live during their step
    for (std::size_t i = 0; i < bound_->steps.size(); ++i) {
      auto* region = std::get_if<BoundRegion>(&bound_->steps[i]);
      if (region == nullptr) continue;
      const std::uint32_t step = bound_->step_numbers[i];
      intervals.push_back({.first = step, .last = step, .bytes = checked_cast<std::int64_t>(region->states_bytes, "loop states")});
      loops.push_back(region);
    }
    const plan::Placement placement = plan::place_buffers(intervals);
    for (std::size_t i = 0; i < numbers.size(); ++i) bound_->placed.emplace_back(numbers[i], static_cast<std::size_t>(placement.offsets[i]));
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const auto offset = static_cast<std::size_t>(placement.offsets[numbers.size() + i]);
      loops[i]->states_offset = loops[i]->body == nullptr ? offset : round_up(offset, static_cast<std::size_t>(kDeviceScratchAlignment), "a call's memory");
    }
    const std::int64_t gap = worker_.device == nullptr or scratch_bytes_ == 0 ? 0 : (kDeviceScratchAlignment - placement.total % kDeviceScratchAlignment) % kDeviceScratchAlignment;
    const std::int64_t scratch = checked_add(gap, checked_cast<std::int64_t>(aligned(scratch_bytes_, "library scratch"), "library scratch"), "library scratch");
    bound_->scratch_offset = static_cast<std::size_t>(placement.total + gap);
    bound_->memory_bytes = static_cast<std::size_t>(checked_add(placement.total, scratch, "the arena"));
    bound_->report.arena += placement.total;
    bound_->report.lower_bound = placement.lower_bound;
    bound_->report.library = scratch;
  }

  /// Where each buffer lies. Buffers that another segment placed are nobody else's memory.
  std::vector<MemoryRange> memory_ranges() const {
    const auto others = static_cast<std::uint32_t>(entry_.buffers.size());
    std::vector<MemoryRange> ranges;
    for (const BoundBuffer& buffer : bound_->buffers) {
      const plan::Buffer& root = entry_.buffers[buffer.root];
      const bool is_persistent = root.storage == plan::Buffer::Storage::kPersistent;
      ranges.push_back({.space = 1 + (is_persistent ? others + root.index : buffer.root), .begin = 0, .end = bound_->buffers[buffer.root].bytes});
    }
    for (const auto& [buffer, offset] : bound_->placed) ranges[buffer] = {.space = 0, .begin = offset, .end = offset + bound_->buffers[buffer].bytes};
    for (const auto& [view, root] : bound_->views) ranges[view] = ranges[root];
    return ranges;
  }

  const plan::Entry& entry_;
  Segment segment_;
  const KernelTable& kernels_;
  const DimBindings& sizes_;
  const Worker worker_;
  std::unique_ptr<BoundSegment> bound_;
  std::size_t number_ = 0;  // of the step
  std::size_t number_of_region_ = 0;
  std::size_t scratch_bytes_ = 0;
  std::vector<std::uint32_t> exchanges_;        // their steps
  std::map<std::uint32_t, std::size_t> waits_;  // by step: how many of them must have ended before it
  std::size_t waited_ = 0;                      // for so many of them
};

[[noreturn]] void missing(const std::string& what, const std::string& name, const plan::Step& step) {
  throw Error(Code::kPlanMismatch,
              fmt::format("the plan needs the {} {}, which {}", what, quoted(name), what == "kernel" ? "its code lacks" : "this version of Hone does not have"),
              {}, {fmt::format("for the step {}", quoted(step.origin)), "compile the model again with this version of Hone"});
}

}  // namespace

std::vector<Segment> segments_of(const plan::Entry& entry) {
  std::vector<Segment> segments{{0, entry.steps.size()}};
  for (std::size_t i = 0; i < entry.steps.size(); ++i) {
    if (not std::holds_alternative<plan::ReadSizesStep>(entry.steps[i].what)) continue;
    segments.back() = {segments.back().first, i + 1, false};
    segments.push_back({i + 1, entry.steps.size()});
  }
  return segments;
}

std::unique_ptr<BoundSegment> prepare(const plan::Entry& entry, Segment segment, const KernelTable& kernels, const DimBindings& sizes, const Worker& worker) {
  return Preparer(entry, segment, kernels, sizes, worker).prepare();
}

namespace {

/// Types, ranks and attributes; the sizes, when they are known.
void check_host_call(const plan::Entry& entry, const plan::HostStep& step, const std::string& origin) {
  const HostRules* rules = find_host_rules(step.function);
  const std::string why = why_not(rules->call, plan::call_types(entry, step));
  if (not why.empty()) throw plan::unsound_plan(fmt::format("entry {}, step {}: the host function {} cannot be called so: {}", quoted(entry.name), quoted(origin), step.function, why));
}

void check_entry(const plan::Entry& entry, const LoadedCode& code, Device* device, KernelTable& kernels) {
  for (const plan::Step& step : entry.steps) {
    if (const auto* kernel = std::get_if<plan::KernelStep>(&step.what)) {
      LoadedKernel& loaded = kernels[kernel->symbol];
      if (loaded.is_there()) continue;
      if (device == nullptr) loaded.function = code.find(kernel->symbol);
      else loaded.on_device = device->find(kernel->symbol);
      if (not loaded.is_there()) missing("kernel", kernel->symbol, step);
    } else if (const auto* library = std::get_if<plan::LibraryStep>(&step.what)) {
      const LibraryRow& row = *find_library_row(library->row);  // check_calls
      if (row.device_library.empty() != (device == nullptr)) missing("library row", library->row, step);
      if (device == nullptr) continue;
      if (not library->own_kernel) missing("kernel", "in place of " + library->row, step);
      const auto require = [&](const std::string& symbol) {
        LoadedKernel& loaded = kernels[symbol];
        if (not loaded.is_there()) loaded.on_device = device->find(symbol);
        if (not loaded.is_there()) missing("kernel", symbol, step);
      };
      require(library->own_kernel->symbol);
      if (not library->epilogue) continue;
      require(library->epilogue->kernel.symbol);
      const LibraryRow* both = find_library_row(library->epilogue->row);
      if (both == nullptr or both->device_library != row.device_library) missing("library row", library->epilogue->row, step);
    } else if (const auto* host = std::get_if<plan::HostStep>(&step.what)) {
      if (find_host_function(host->function) == nullptr) missing("host function", host->function, step);
      check_host_call(entry, *host, step.origin);
    } else if (const auto* region = std::get_if<plan::RegionStep>(&step.what)) {
      if (region->kind == plan::RegionStep::Kind::kCall and find_library_row(region->row)->device_library.empty()) missing("library row", region->row, step);
      for (const plan::Entry& body : region->bodies) check_entry(body, code, device, kernels);  // plan::check limits the depth
    }
  }
}

}  // namespace

KernelTable check_steps(const plan::Program& program, const LoadedCode& code, Device* device) {
  KernelTable kernels;
  for (const plan::Entry& entry : program.entries) {
    check_calls(entry);
    check_entry(entry, code, device, kernels);
  }
  return kernels;
}

}  // namespace hone
