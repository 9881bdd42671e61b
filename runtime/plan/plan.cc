#include "runtime/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/limits.h"
#include "base/text.h"
#include "runtime/plan/metadata.h"

namespace hone::plan {
namespace {

/// Checks one entry of a program. Everything that the executor later indexes with is looked at here, once.
class EntryChecker {
 public:
  /// `around`: the symbols that are known around a body.
  EntryChecker(const Program& program, const Entry& entry, std::set<std::string, std::less<>> around, int depth)
      : program_(program), entry_(entry), symbols_(std::move(around)), depth_(depth) {}

  void check() {
    collect_symbols();
    for (const Buffer& buffer : entry_.buffers) check_buffer(buffer);
    roots_.reserve(entry_.buffers.size());
    for (const Buffer& buffer : entry_.buffers) roots_.push_back(root_of(buffer));
    check_results();
    for (step_ = 0; step_ < entry_.steps.size(); ++step_) {
      check_buffers(entry_.steps[step_]);
      check_parts(entry_.steps[step_]);
      std::visit([this](const auto& what) { check_step(what); }, entry_.steps[step_].what);
      check_dim(entry_.steps[step_].flops, "what a step computes"), check_dim(entry_.steps[step_].bytes, "what a step moves");
    }
    for (std::uint32_t step = 0; step < entry_.steps.size(); ++step)
      if (const auto* exchange = std::get_if<AllReduceStep>(&entry_.steps[step].what); exchange != nullptr and not exchange->collects) check_exchange(step, *exchange);
    for (const auto& [left, right] : entry_.equations) check_dim(left, "an equation"), check_dim(right, "an equation");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw unsound_plan(fmt::format("program {}, entry {}: {}", quoted(program_.target), quoted(entry_.name), what));
  }

  void collect_symbols() {
    std::set<std::string> names;
    for (const Feed& feed : entry_.feeds) {
      if (not names.insert(feed.name).second) fail(fmt::format("two feeds are called {}", quoted(feed.name)));
      if (feed.kind == Feed::Kind::kLearningRate and (feed.dtype != DType::kF64 or not element_count(feed.shape).is_constant(1)))
        fail(fmt::format("feed {} is {}[{}], and must be a number of f64", quoted(feed.name), to_string(feed.dtype), to_string(feed.shape)));
      if (feed.bounds and not is_integer(feed.dtype)) fail(fmt::format("feed {} has bounds, but is {}", quoted(feed.name), to_string(feed.dtype)));
      for (const Dim& dim : feed.shape)
        for (std::string& symbol : dim.symbols()) symbols_.insert(std::move(symbol));
    }
    for (const Step& step : entry_.steps)
      if (const auto* read = std::get_if<ReadSizesStep>(&step.what)) symbols_.insert(read->symbols.begin(), read->symbols.end());
  }

  void check_dim(const Dim& dim, const std::string& where) const {
    for (const std::string& symbol : dim.symbols())
      if (not symbols_.contains(symbol)) fail(fmt::format("{} depends on the size {}, which no feed tells", where, quoted(symbol)));
  }
  void check_dims(const std::vector<Dim>& dims, const std::string& where) const {
    for (const Dim& dim : dims) check_dim(dim, where);
  }

  void check_buffer(const Buffer& buffer) const {
    const std::string name = "buffer " + quoted(buffer.name);
    check_dims(buffer.shape, name);
    if (buffer.opaque and buffer.storage != Buffer::Storage::kArena) fail(name + " is opaque, but not in the arena");
    switch (buffer.storage) {
      case Buffer::Storage::kArena:
        if (buffer.first_step > buffer.last_step or (buffer.last_step > 0 and buffer.last_step >= entry_.steps.size()))
          fail(fmt::format("{} is alive from step {} to {} of {}", name, buffer.first_step, buffer.last_step, entry_.steps.size()));
        break;
      case Buffer::Storage::kPersistent:
        if (buffer.index >= program_.persistents.size()) fail(fmt::format("{} is persistent {} of {}", name, buffer.index, program_.persistents.size()));
        check_same(buffer, program_.persistents[buffer.index].initial.dtype(), shape_in_memory(program_.persistents[buffer.index]));
        break;
      case Buffer::Storage::kFeed:
        if (buffer.index >= entry_.feeds.size()) fail(fmt::format("{} is feed {} of {}", name, buffer.index, entry_.feeds.size()));
        check_same(buffer, entry_.feeds[buffer.index].dtype, entry_.feeds[buffer.index].shape);
        break;
      case Buffer::Storage::kView:
        if (buffer.index >= entry_.buffers.size()) fail(fmt::format("{} is a view of buffer {} of {}", name, buffer.index, entry_.buffers.size()));
        if (entry_.buffers[buffer.index].opaque) fail(name + " is a view of an opaque buffer");
        break;
    }
  }

  void check_same(const Buffer& buffer, DType dtype, const Shape& shape) const {
    if (buffer.dtype != dtype or buffer.shape != shape)
      fail(fmt::format("buffer {} is {}[{}], but what it stands for is {}[{}]", quoted(buffer.name), to_string(buffer.dtype), to_string(buffer.shape),
                       to_string(dtype), to_string(shape)));
  }

  /// The buffer whose memory it is, views followed.
  const Buffer* root_of(const Buffer& buffer) const {
    const Buffer* root = &buffer;
    for (std::size_t hops = 0; root->storage == Buffer::Storage::kView; ++hops) {
      if (hops == entry_.buffers.size()) fail(fmt::format("buffer {} is a view of itself", quoted(buffer.name)));
      root = &entry_.buffers[root->index];
    }
    return root;
  }

  void check_results() const {
    std::set<std::string> names;
    for (const Result& result : entry_.results) {
      if (not names.insert(result.name).second) fail(fmt::format("two results are called {}", quoted(result.name)));
      if (result.buffer >= entry_.buffers.size()) fail(fmt::format("result {} is buffer {} of {}", quoted(result.name), result.buffer, entry_.buffers.size()));
      if (depth_ == 1 and entry_.name != kPredict) check_known(result);  // whose results the model names
      const Buffer& root = *roots_[result.buffer];
      if (root.opaque) fail(fmt::format("result {} is a buffer that only a library knows how to read", quoted(result.name)));
      if (root.storage == Buffer::Storage::kArena and root.last_step + 1 < entry_.steps.size())
        fail(fmt::format("result {} is read after the last step, but its memory is given away after step {}", quoted(result.name), root.last_step));
    }
  }

  /// What the trainer reads by its name is numbers, and as many of them for every batch.
  void check_known(const Result& result) const {
    constexpr std::string_view kNumbers[] = {kLossSum, kTargetCount, kLossScale, kOverflows, kSkippedSteps};
    const Buffer& buffer = entry_.buffers[result.buffer];
    const bool is_metric = result.name.starts_with(kMetricPrefix), is_number = std::ranges::find(kNumbers, result.name) != std::end(kNumbers) or result.name.starts_with(kGradNormPrefix);
    if (not is_metric and not is_number) return;
    const bool fits = (buffer.dtype == DType::kF32 or buffer.dtype == DType::kF64) and (is_number ? element_count(buffer.shape).is_constant(1) : is_constant(buffer.shape) and element_count(buffer.shape).value() > 0);
    if (not fits) fail(fmt::format("result {} is {}[{}], and must be {} of f32 or f64", quoted(result.name), to_string(buffer.dtype), to_string(buffer.shape), is_number ? "a number" : "numbers"));
  }

  const Buffer& check_read(std::uint64_t number) const {
    if (number >= entry_.buffers.size()) fail(fmt::format("step {} uses buffer {} of {}", step_, number, entry_.buffers.size()));
    const Buffer& root = *roots_[number];
    if (root.storage == Buffer::Storage::kArena and (step_ < root.first_step or step_ > root.last_step))
      fail(fmt::format("step {} uses buffer {}, which is alive from step {} to {}", step_, quoted(entry_.buffers[number].name), root.first_step,
                       root.last_step));
    return root;
  }
  void check_write(std::uint64_t number) const {
    if (check_read(number).storage == Buffer::Storage::kFeed) fail(fmt::format("step {} writes to a feed", step_));
  }

  void check_buffers(const Step& step) const {
    const bool is_library = std::holds_alternative<LibraryStep>(step.what);
    for_each_buffer(step, [&](std::uint64_t buffer, Access access) {
      access == Access::kRead ? (void)check_read(buffer) : check_write(buffer);
      if (entry_.buffers[buffer].opaque and not is_library) fail(fmt::format("step {} uses buffer {}, which only a library knows how to read", step_, quoted(entry_.buffers[buffer].name)));
    });
  }

  /// What is in parts is as short as the part in a session that shares the optimizer's work.
  void check_parts(const Step& step) const {
    const auto* kernel = std::get_if<KernelStep>(&step.what);
    const bool own_part = kernel != nullptr and kernel->own_part, sharded = is_sharded(entry_.name);
    if (own_part and not sharded) fail(fmt::format("step {} is over a replica's own part, in an entry that every replica runs whole", step_));
    for_each_buffer(step, [&](std::uint64_t buffer, Access) {
      const Buffer& root = *roots_[buffer];
      const Persistent* persistent = root.storage == Buffer::Storage::kPersistent ? &program_.persistents[root.index] : nullptr;
      if (sharded and not own_part and persistent != nullptr and persistent->in_parts) fail(fmt::format("step {} uses all of {}, which is in parts", step_, quoted(persistent->name)));
    });
  }

  void check_step(const KernelStep& step) const {
    if (step.symbol.empty()) fail(fmt::format("step {} has no kernel", step_));
    check_dims(step.sizes, "kernel " + quoted(step.symbol));
    check_dim(step.range, "kernel " + quoted(step.symbol));
    check_dim(step.work, "kernel " + quoted(step.symbol));
  }
  /// Whoever is called may write a result before it has read all operands.
  void check_apart(const auto& step) const {
    std::set<const Buffer*> written;
    for (const auto result : step.results)
      if (static_cast<std::int64_t>(result) >= 0 and not written.insert(roots_[static_cast<std::size_t>(result)]).second) fail(fmt::format("step {} writes two results to the same memory", step_));
    for (const std::int64_t operand : step.operands)
      if (operand >= 0 and written.contains(roots_[static_cast<std::size_t>(operand)])) fail(fmt::format("step {} writes a result where it reads {}", step_, quoted(buffer(operand).name)));
  }

  void check_step(const LibraryStep& step) const {
    check_attributes(step.attributes);
    check_apart(step);
    if (step.epilogue) check_epilogue(step);
    if (not step.own_kernel) return;
    check_step(*step.own_kernel);
    const auto stands_for = [&](std::uint32_t i) {
      const std::uint32_t buffer = step.own_kernel->buffers[i];
      return i >= step.own_kernel->read_only ? std::ranges::find(step.results, buffer) != step.results.end() : std::ranges::find(step.operands, static_cast<std::int64_t>(buffer)) != step.operands.end();
    };
    for (std::uint32_t i = 0; i < step.own_kernel->buffers.size(); ++i)
      if (not stands_for(i)) fail(fmt::format("kernel {}, which stands for the library call at step {}, uses buffer {}, which is not the call's", quoted(step.own_kernel->symbol), step_, step.own_kernel->buffers[i]));
    if (step.own_kernel->own_part) fail(fmt::format("kernel {}, which stands for the library call at step {}, is over a replica's own part", quoted(step.own_kernel->symbol), step_));
  }
  /// Both ways read and write the same, but for what the call hands to the kernel.
  void check_epilogue(const LibraryStep& step) const {
    const LibraryStep::Epilogue& epilogue = *step.epilogue;
    const KernelStep& kernel = epilogue.kernel;
    const auto has = [](const auto& buffers, std::uint64_t buffer) { return std::ranges::any_of(buffers, [&](auto each) { return static_cast<std::int64_t>(each) == static_cast<std::int64_t>(buffer); }); };
    const auto require = [&](bool holds, const std::string& what) {
      if (not holds) fail(fmt::format("kernel {}, which the call at step {} may do as well, {}", quoted(kernel.symbol), step_, what));
    };
    check_step(kernel);
    check_attributes(epilogue.attributes);
    require(not epilogue.row.empty() and step.own_kernel.has_value() and not kernel.own_part, "is of no such call");
    std::vector<std::uint32_t> written = step.results;
    for (std::uint32_t i = 0; i < kernel.buffers.size(); ++i) {
      const std::uint32_t buffer = kernel.buffers[i];
      if (i >= kernel.read_only) written.push_back(buffer);
      require(i < kernel.read_only ? has(step.results, buffer) or has(epilogue.operands, buffer) : has(epilogue.results, buffer), fmt::format("uses buffer {}, which is not the call's", buffer));
    }
    for (const std::int64_t operand : epilogue.operands) require(has(step.operands, static_cast<std::uint64_t>(operand)) or has(kernel.buffers, static_cast<std::uint64_t>(operand)), fmt::format("does not read buffer {}", operand));
    for (const std::uint32_t result : epilogue.results) require(has(written, result), fmt::format("does not write buffer {}", result));
  }
  void check_step(const HostStep& step) const {
    check_attributes(step.attributes);
    check_apart(step);
  }
  void check_step(const CopyStep&) const {}
  void check_step(const AllReduceStep&) const {}
  void check_step(const ReadSizesStep& step) const {
    const Buffer& buffer = entry_.buffers[step.buffer];
    if (not is_integer(buffer.dtype) or not element_count(buffer.shape).is_constant(static_cast<std::int64_t>(step.symbols.size())))
      fail(fmt::format("step {} reads {} sizes from {}[{}]", step_, step.symbols.size(), to_string(buffer.dtype), to_string(buffer.shape)));
  }

  void check_exchange(std::uint32_t number, const AllReduceStep& step) const {
    const std::uint32_t end = end_of_exchange(entry_, number);
    for (const std::uint32_t buffer : step.buffers)
      if (const Buffer& root = *roots_[buffer]; root.storage == Buffer::Storage::kArena and root.last_step + 1 < end)
        fail(fmt::format("buffer {} is exchanged from step {} on to step {}, but its memory is given away after step {}", quoted(entry_.buffers[buffer].name), number, end, root.last_step));
  }

  void check_step(const RegionStep& step) const {
    if (depth_ >= limits::kBodyDepth) fail(fmt::format("bodies nested more than {} deep", limits::kBodyDepth));
    check_dim(step.trips, "a loop");
    const bool is_branch = step.kind == RegionStep::Kind::kBranch, is_scan = step.kind == RegionStep::Kind::kScan, is_call = step.kind == RegionStep::Kind::kCall;
    const bool has_condition = not is_scan and not is_call, repeats = not is_branch and not is_call;
    const std::size_t first = has_condition ? 1 : 0;  // the condition is not the body's
    const auto region = [&](bool holds, const std::string& what) {
      if (not holds) fail(fmt::format("the region at step {} {}", step_, what));
    };
    region(step.bodies.size() == (is_branch ? 2 : 1), "has the wrong number of bodies");
    region(step.operands.size() >= first + step.states + step.scanned and (is_scan or step.scanned == 0) and (repeats or step.states == 0), "has too few operands");
    region(is_call != step.row.empty(), "has a library row without being a call, or none");
    if (is_call) check_call(step);
    for (const std::int64_t operand : step.operands) region(operand >= 0, "lacks an operand");
    const auto is_one = [&](const Buffer& buffer, DType dtype) { return buffer.dtype == dtype and buffer.shape.empty(); };
    if (has_condition) region(is_one(buffer(step.operands[0]), DType::kBool), "has a condition that is not bool[]");
    for (const Entry& body : step.bodies) {
      EntryChecker(program_, body, symbols_, depth_ + 1).check();
      std::vector<Buffer> given;
      if (repeats) given.push_back({.name = "i", .dtype = DType::kI64});
      for (std::size_t i = first; i < step.operands.size(); ++i) {
        given.push_back(buffer(step.operands[i]));
        const std::size_t state_or_slice = i - first;
        if (state_or_slice < step.states or state_or_slice >= step.states + step.scanned) continue;
        region(not given.back().shape.empty(), "scans a number");
        given.back().shape.erase(given.back().shape.begin());
      }
      region(body.feeds.size() == given.size(), "gives its body another number of inputs than that takes");
      for (std::size_t i = 0; i < given.size(); ++i) region(body.feeds[i].dtype == given[i].dtype and body.feeds[i].shape == given[i].shape, "gives its body another type than that takes");
      const std::size_t made = body.results.size();
      region(made >= step.states, "loses a state");
      if (step.kind == RegionStep::Kind::kWhile) {
        region(made == 1 + step.states and is_one(body.buffers[body.results[0].buffer], DType::kBool), "has a body without a condition");
        region(step.results.size() == 1 and (step.results[0] < 0 or is_one(buffer(step.results[0]), DType::kI64)), "has another result than a count");
      } else {
        region(step.results.size() == made + (is_scan ? step.states : 0), "has another number of results than its body makes");
      }
      check_body_results(step, body);
    }
  }

  /// Either way all results are written, and nothing is found out on the way.
  void check_call(const RegionStep& step) const {
    check_attributes(step.attributes);
    check_apart(step);
    const bool writes_all = std::ranges::none_of(step.results, [](std::int64_t result) { return result < 0; });
    const auto reads_sizes = [](const Step& inner) { return std::holds_alternative<ReadSizesStep>(inner.what); };
    if (not writes_all or std::ranges::any_of(step.bodies, [&](const Entry& body) { return std::ranges::any_of(body.steps, reads_sizes); }))
      fail(fmt::format("the call at step {} lacks a result, or reads sizes", step_));
  }

  const Buffer& buffer(std::int64_t number) const { return entry_.buffers[static_cast<std::size_t>(number)]; }

  /// What the body makes fits where it goes: the executor copies bytes.
  void check_body_results(const RegionStep& step, const Entry& body) const {
    const auto fits = [&](std::int64_t to, std::size_t result, bool stacked) {
      if (to < 0) return;
      const Buffer& made = body.buffers[body.results[result].buffer];
      Shape shape = made.shape;
      if (stacked) shape.insert(shape.begin(), step.trips);
      if (buffer(to).dtype != made.dtype or element_count(buffer(to).shape) != element_count(shape))
        fail(fmt::format("the region at step {} makes {}[{}] where {}[{}] is wanted", step_, to_string(made.dtype), to_string(shape), to_string(buffer(to).dtype),
                         to_string(buffer(to).shape)));
    };
    const std::size_t states = step.states, offset = step.kind == RegionStep::Kind::kWhile ? 1 : 0;
    for (std::size_t i = 0; i < states; ++i) fits(step.operands[offset + i], offset + i, false);
    if (step.kind == RegionStep::Kind::kWhile) return;
    for (std::size_t i = 0; i < states; ++i) fits(step.results[i], i, false), fits(step.results[states + i], i, true);
    for (std::size_t i = states; i < body.results.size(); ++i) fits(step.results[states + i], i, step.kind == RegionStep::Kind::kScan);
  }

  void check_attributes(const std::map<std::string, std::vector<Dim>>& attributes) const {
    for (const auto& [name, dims] : attributes) check_dims(dims, "attribute " + quoted(name));
  }

  const Program& program_;
  const Entry& entry_;
  std::set<std::string, std::less<>> symbols_;
  int depth_;  ///< 1 for an entry of the program
  std::vector<const Buffer*> roots_;
  std::size_t step_ = 0;
};

template <typename Items, typename Name>
void check_distinct(const Items& items, const std::string& what, Name name_of) {
  std::set<std::string> names;
  for (const auto& item : items)
    if (not names.insert(name_of(item)).second) throw unsound_plan(fmt::format("two {} are called {}", what, quoted(name_of(item))));
}

void check_parts(const Program& program, const Persistent& persistent) {
  if (persistent.in_parts and persistent.role != Persistent::Role::kState)
    throw unsound_plan(fmt::format("program {}: {} is in parts, but no state", quoted(program.target), quoted(persistent.name)));
}

void check_panels(const Program& program, const Persistent& persistent) {
  if (not persistent.panels) return;
  const auto& [axis, width] = *persistent.panels;
  const std::vector<std::int64_t>& shape = persistent.initial.shape();
  if (axis >= shape.size() or width <= 0 or shape[axis] % width != 0 or shape.size() == limits::kRank)
    throw unsound_plan(fmt::format("program {}: {} of {} cannot lie in panels of {} along axis {}", quoted(program.target), quoted(persistent.name), shape_text(shape), width, axis));
}

/// Whoever reads or writes the weight for others goes by this.
void check_narrowed(const Program& program, const Persistent& persistent) {
  if (not persistent.narrowed) return;
  const auto& [outside, scales, axis] = *persistent.narrowed;
  const Tensor& initial = persistent.initial;
  const auto found = std::ranges::find(program.persistents, scales, &Persistent::name);
  const bool is_scaled = not scales.empty() and found != program.persistents.end() and axis < initial.shape().size() and found->initial.dtype() == DType::kF32 and
                         found->initial.shape() == std::vector{initial.shape()[axis]} and not found->narrowed and not found->panels;
  const bool fits = is_float(outside) and (initial.dtype() == DType::kI8 ? is_scaled and not persistent.in_parts : scales.empty() and is_float(initial.dtype()));
  if (not fits)
    throw unsound_plan(fmt::format("program {}: {} is kept as {} in a way that gives no weight", quoted(program.target), quoted(persistent.name), to_string(initial.dtype())));
}

}  // namespace

const Entry* Program::find(std::string_view entry) const { return plan::find(entries, entry); }

const Entry* find(std::span<const Entry> entries, std::string_view name) {
  for (const Entry& candidate : entries)
    if (candidate.name == name) return &candidate;
  return nullptr;
}

std::string_view to_string(AllReduceStep::Operation operation) {
  constexpr std::string_view kNames[] = {"all_reduce", "reduce_scatter", "all_gather"};
  return kNames[static_cast<std::size_t>(operation)];
}

LibraryStep library_call(const RegionStep& step) {
  LibraryStep call{.row = step.row, .attributes = step.attributes, .operands = step.operands, .results = {}};
  for (const std::int64_t result : step.results) call.results.push_back(static_cast<std::uint32_t>(result));
  return call;
}

std::uint32_t root_of(const Entry& entry, std::uint64_t buffer) {
  while (entry.buffers[buffer].storage == Buffer::Storage::kView) buffer = entry.buffers[buffer].index;
  return static_cast<std::uint32_t>(buffer);
}

std::uint32_t end_of_exchange(const Entry& entry, std::uint32_t exchange) {
  std::vector<bool> exchanged(entry.buffers.size());
  for_each_buffer(entry.steps[exchange], [&](std::uint64_t buffer, Access) { exchanged[root_of(entry, buffer)] = true; });
  std::uint32_t step = exchange + 1;
  for (bool uses = false; step < entry.steps.size(); ++step) {
    for_each_buffer(entry.steps[step], [&](std::uint64_t buffer, Access) { uses = uses or exchanged[root_of(entry, buffer)]; });
    if (uses) break;
  }
  return step;
}

Shape shape_in_memory(const Persistent& persistent) {
  const Shape shape = shape_of(persistent.initial.shape());
  return persistent.panels ? panel_shape(shape, *persistent.panels) : shape;
}

void check(const Plan& plan) {
  check_distinct(plan.programs, "programs", [](const Program& program) { return program.target; });
  for (const Program& program : plan.programs) {
    check_distinct(program.persistents, "weights or states", [](const Persistent& persistent) { return persistent.name; });
    check_distinct(program.entries, "entries", [](const Entry& entry) { return entry.name; });
    for (const Persistent& persistent : program.persistents) check_panels(program, persistent), check_parts(program, persistent), check_narrowed(program, persistent);
    for (const Entry& entry : program.entries) EntryChecker(program, entry, {}, 1).check();
  }
}

}  // namespace hone::plan
