#include "runtime/prepare.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/tensor.h"
#include "base/text.h"
#include "runtime/device/host_memory.h"

namespace hone {
namespace {

/// Scalar operations from which on a kernel is split among threads. Waking spinning threads and waiting for them takes 2 to 5 us, in which
/// one core does about this many.
constexpr std::int64_t kWorkWorthThreads = 32'768;

std::int64_t rounded_up(std::size_t bytes) {
  const auto signed_bytes = checked_cast<std::int64_t>(bytes, "library scratch");
  return checked_add(signed_bytes, std::int64_t{kTensorAlignment - 1}, "library scratch") / std::int64_t{kTensorAlignment} * std::int64_t{kTensorAlignment};
}

class Preparer {
 public:
  Preparer(const plan::Entry& entry, const KernelTable& kernels, const DimBindings& sizes)
      : entry_(entry), kernels_(kernels), sizes_(sizes), bound_(std::make_unique<BoundEntry>()) {}

  std::unique_ptr<BoundEntry> prepare() {
    for (const plan::Feed& feed : entry_.feeds) bound_->feed_shapes.push_back(evaluate(feed.shape, sizes_));
    for (const plan::Buffer& buffer : entry_.buffers) add_buffer(buffer);
    for (std::size_t i = 0; i < entry_.buffers.size(); ++i) find_root(i);
    for (const plan::Step& step : entry_.steps) std::visit([&](const auto& what) { add_step(what, step.origin); }, step.what);
    place();
    return std::move(bound_);
  }

 private:
  void add_buffer(const plan::Buffer& buffer) {
    BoundBuffer added{.type = {.dtype = buffer.dtype, .shape = evaluate(buffer.shape, sizes_)}, .bytes = 0, .root = 0};
    if (std::any_of(added.type.shape.begin(), added.type.shape.end(), [](std::int64_t extent) { return extent < 0; })) too_small(buffer, added.type.shape);
    if (not buffer.opaque) added.bytes = static_cast<std::size_t>(checked_element_count(added.type.shape)) * size_of(buffer.dtype);
    bound_->buffers.push_back(std::move(added));
  }

  [[noreturn]] void too_small(const plan::Buffer& buffer, const std::vector<std::int64_t>& shape) const {
    std::vector<std::string> where;
    for (const auto& [name, value] : sizes_) where.push_back(fmt::format("{} = {}", printable(name), value));
    throw Error(Code::kDataShape, fmt::format("the inputs are too small: {} would have shape {}", quoted(buffer.name), shape_text(shape)), {},
                {fmt::format("where {}", join(where, ", "))});
  }

  void find_root(std::size_t number) {
    std::size_t root = number;
    while (entry_.buffers[root].storage == plan::Buffer::Storage::kView) root = entry_.buffers[root].index;
    bound_->buffers[number].root = static_cast<std::uint32_t>(root);
    HONE_CHECK(root == number or bound_->buffers[root].bytes == bound_->buffers[number].bytes,
               fmt::format("buffer \"{}\" of {} bytes is a view of \"{}\" of {} bytes", entry_.buffers[number].name, bound_->buffers[number].bytes,
                           entry_.buffers[root].name, bound_->buffers[root].bytes));
  }

  void add_step(const plan::KernelStep& step, const std::string& origin) {
    BoundKernel kernel{.function = kernels_.at(step.symbol), .buffers = step.buffers, .sizes = {}, .range = step.range.evaluate(sizes_), .split = false};
    HONE_CHECK(kernel.range >= 0, fmt::format("kernel \"{}\" of \"{}\" runs over {} points", step.symbol, origin, kernel.range));
    for (const Dim& size : step.sizes) kernel.sizes.push_back(size.evaluate(sizes_));
    kernel.split = kernel.range > 1 and step.work.evaluate(sizes_) >= kWorkWorthThreads;
    bound_->most_pointers = std::max(bound_->most_pointers, kernel.buffers.size());
    if (kernel.range > 0) bound_->steps.emplace_back(std::move(kernel));
  }

  void add_step(const plan::LibraryStep& step, const std::string& origin) {
    LibrarySpec spec;
    for (const auto& [name, values] : step.ints) spec.attributes[name] = values;
    for (const auto& [name, values] : step.dims) spec.attributes[name] = evaluate(values, sizes_);
    for (const std::int64_t operand : step.operands)
      spec.operands.push_back(operand < 0 ? std::nullopt : std::optional(bound_->buffers[static_cast<std::size_t>(operand)].type));
    for (const std::uint32_t result : step.results) spec.results.push_back(bound_->buffers[result].type);
    BoundLibrary library{.call = make_call(step.row, spec, origin), .operands = step.operands, .results = step.results};
    for (std::size_t i = 0; i < step.results.size(); ++i) set_opaque_bytes(step.results[i], library.call->description().result_bytes[i]);
    scratch_bytes_ = std::max(scratch_bytes_, library.call->description().scratch_bytes);
    bound_->most_pointers = std::max(bound_->most_pointers, step.operands.size() + step.results.size());
    bound_->steps.emplace_back(std::move(library));
  }

  static std::unique_ptr<LibraryCall> make_call(const std::string& row, const LibrarySpec& spec, const std::string& origin) {
    try {
      return find_library_row(row)->make(spec);
    } catch (const InternalError& error) { throw InternalError(fmt::format("{}\n  in the step \"{}\"", error.what(), printable(origin))); }
  }

  void set_opaque_bytes(std::uint32_t buffer, std::size_t bytes) {
    if (entry_.buffers[buffer].opaque) bound_->buffers[buffer].bytes = std::max(bound_->buffers[buffer].bytes, bytes);
  }

  void add_step(const plan::HostStep& step, const std::string&) {
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
    bound_->steps.emplace_back(BoundHost{.function = find_host_function(step.function),
                                         .attributes = HostAttributes(std::move(attributes)),
                                         .operand_buffers = step.operands,
                                         .result_buffers = step.results,
                                         .operands = tensors(step.operands),
                                         .results = tensors(step.results)});
  }

  void add_step(const plan::CopyStep& step, const std::string& origin) {
    const BoundBuffer &from = bound_->buffers[step.from], &to = bound_->buffers[step.to];
    HONE_CHECK(from.bytes == to.bytes, fmt::format("the copy \"{}\" is from {} bytes to {}", origin, from.bytes, to.bytes));
    if (from.bytes > 0 and from.root != to.root) bound_->steps.emplace_back(BoundCopy{.from = step.from, .to = step.to, .bytes = from.bytes});
  }

  /// One replica has nobody to sum with.
  void add_step(const plan::AllReduceStep&, const std::string&) {}

  void place() {
    std::vector<plan::Interval> intervals;
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < entry_.buffers.size(); ++i) {
      const plan::Buffer& buffer = entry_.buffers[i];
      if (buffer.storage != plan::Buffer::Storage::kArena) continue;
      intervals.push_back({.first = buffer.first_step, .last = buffer.last_step, .bytes = checked_cast<std::int64_t>(bound_->buffers[i].bytes, "a buffer")});
      numbers.push_back(i);
    }
    const plan::Placement placement = plan::place_buffers(intervals);
    bound_->offsets.assign(entry_.buffers.size(), 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) bound_->offsets[numbers[i]] = placement.offsets[i];
    const std::int64_t scratch = rounded_up(scratch_bytes_);
    bound_->scratch_offset = static_cast<std::size_t>(placement.total);
    bound_->memory_bytes = static_cast<std::size_t>(checked_add(placement.total, scratch, "the arena"));
    bound_->report = {.arena = placement.total, .lower_bound = placement.lower_bound, .persistent = 0, .library = scratch};
  }

  const plan::Entry& entry_;
  const KernelTable& kernels_;
  const DimBindings& sizes_;
  std::unique_ptr<BoundEntry> bound_;
  std::size_t scratch_bytes_ = 0;
};

[[noreturn]] void missing(const std::string& what, const std::string& name, const plan::Step& step) {
  throw Error(Code::kPlanMismatch,
              fmt::format("the plan needs the {} {}, which {}", what, quoted(name), what == "kernel" ? "its code lacks" : "this version of Hone does not have"),
              {}, {fmt::format("for the step {}", quoted(step.origin)), "compile the model again with this version of Hone"});
}

}  // namespace

std::unique_ptr<BoundEntry> prepare(const plan::Entry& entry, const KernelTable& kernels, const DimBindings& sizes) {
  return Preparer(entry, kernels, sizes).prepare();
}

KernelTable check_steps(const plan::Program& program, const LoadedCode& code) {
  KernelTable kernels;
  for (const plan::Entry& entry : program.entries)
    for (const plan::Step& step : entry.steps) {
      if (const auto* kernel = std::get_if<plan::KernelStep>(&step.what)) {
        KernelFunction& function = kernels[kernel->symbol];
        if (function == nullptr) function = code.find(kernel->symbol);
        if (function == nullptr) missing("kernel", kernel->symbol, step);
      } else if (const auto* library = std::get_if<plan::LibraryStep>(&step.what)) {
        if (find_library_row(library->row) == nullptr) missing("library row", library->row, step);
      } else if (const auto* host = std::get_if<plan::HostStep>(&step.what)) {
        if (find_host_function(host->function) == nullptr) missing("host function", host->function, step);
      }
    }
  return kernels;
}

}  // namespace hone
