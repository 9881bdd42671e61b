#include "runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/diag.h"
#include "base/tensor.h"
#include "base/text.h"
#include "runtime/data/convert.h"

namespace hone {
namespace {

/// Of each entry, so that full and last batches of training, and a few sequence lengths, are prepared once.
constexpr std::size_t kKeptBindings = 8;

}  // namespace

void reserve_arena(WorkMemory& arena, std::size_t bytes, DeviceWork* device) {
  if (arena.size() >= bytes) return;
  if (device != nullptr) device->note_memory_moved();
  arena = WorkMemory();  // first, so that there are never two
  arena = WorkMemory(bytes, "the memory for one batch", device);
}

Executor::Executor(const plan::Entry& entry, HostState& state, WorkMemory* arena)
    : entry_(entry),
      state_(state),
      segments_(segments_of(entry)),
      bindings_(segments_.size()),
      read_sizes_(segments_.size()),
      own_arenas_(segments_.size()),
      shared_arena_(arena),
      matched_(entry.feeds.size()),
      feeds_(entry.feeds.size()),
      pointers_(entry.buffers.size()),
      copies_apart_(entry.buffers.size()) {
  for (auto& bindings : bindings_) bindings.reserve(kKeptBindings + 1);
  for (std::uint32_t i = 0; i < entry.buffers.size(); ++i) {
    const plan::Buffer& buffer = entry.buffers[i];
    if (buffer.storage == plan::Buffer::Storage::kPersistent) pointers_[i] = state.persistents[buffer.index];
    if (buffer.storage == plan::Buffer::Storage::kFeed) fed_.emplace_back(i, buffer.index);
  }
  find_direct_results();
  for (const plan::Step& step : entry.steps) {
    const auto* region = std::get_if<plan::RegionStep>(&step.what);
    if (region == nullptr) continue;
    bodies_.emplace_back();
    for (const plan::Entry& body : region->bodies) bodies_.back().push_back(std::make_unique<Executor>(body, state));  // plan::check limits the depth
  }
}

void Executor::run(NamedFeeds feeds) {
  try {
    run_fed(feeds);
  } catch (...) {
    state_.exchanges.abandon();  // before anybody else uses its communicator, or the memory
    if (state_.device != nullptr) state_.device->abandon_feeds();
    throw;
  }
}

void Executor::run_fed(NamedFeeds feeds) {
  match_feeds(entry_, feeds, matched_);
  const Team::InUse in_use(state_.team);
  BoundSegment& first = bind_feeds(feeds);
  are_copied_ = false;
  copied_feeds_.clear();
  makers_.clear();
  for (const TensorView* feed : matched_)
    if (feed->maker != nullptr and std::ranges::find(makers_, feed->maker) == makers_.end()) makers_.push_back(feed->maker);
  if (others_look_at_feeds()) make_feeds();
  for (const auto& [buffer, feed] : fed_) {
    copies_apart_[buffer] = apart(*matched_[feed]);
    are_copied_ = are_copied_ or copies_apart_[buffer] > 0;
  }
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    check_bounds(entry_.feeds[i], *matched_[i]);
    feeds_[i] = place_of(*matched_[i]);
  }
  if (state_.device != nullptr) feed_device(first);
  run_segments(first);
  if (state_.device != nullptr) state_.device->finish();
}

/// Is it in memory that a run of this entry writes to, or gives back: a result of the run before?
bool Executor::may_overwrite(const void* place) const {
  const auto is_in = [&](const WorkMemory& memory) {
    const std::less<const void*> before;
    return memory.size() > 0 and not before(place, memory.data()) and before(place, memory.data() + memory.size());
  };
  return is_in(state_.persistent_memory) or (shared_arena_ != nullptr and is_in(*shared_arena_)) or std::ranges::any_of(own_arenas_, is_in);
}

/// Where the feed holds still: what is fed back from an earlier result is copied, because it lies in the arena. A device has copies anyway.
const void* Executor::place_of(const TensorView& feed) {
  if (state_.device != nullptr or feed.maker != nullptr or not may_overwrite(feed.data)) return feed.data;
  return copied_feeds_.emplace_back(copy_of(feed)).bytes().data();
}

/// How far behind each other the copies for each of the team's threads lie; 0: there is one for all.
std::size_t Executor::apart(const TensorView& feed) const {
  return state_.device == nullptr and feed.copies > 1 and feed.copies == state_.team.threads() ? feed.copy_bytes : 0;
}

/// By others than the thread that makes its copy in the first kernels? Bounds are held against what is fed, a device copies it.
bool Executor::others_look_at_feeds() const {
  if (state_.device != nullptr or watcher_ != nullptr or not measured_.empty() or not state_.tracks.empty()) return true;
  for (std::size_t i = 0; i < matched_.size(); ++i)
    if (matched_[i]->maker != nullptr and (entry_.feeds[i].bounds or apart(*matched_[i]) == 0)) return true;
  return false;
}

/// Those that have not been made yet.
void Executor::make_feeds() {
  if (makers_.empty()) return;
  state_.team.run([this](const Team::Member& member) { hone::make_feeds(makers_, member); });
  makers_.clear();
}

/// The binding for the matched feeds.
BoundSegment& Executor::bind_feeds(NamedFeeds feeds) {
  auto& bindings = bindings_[0];
  const auto known = std::find_if(bindings.begin(), bindings.end(), [this](const auto& bound) { return is_bound_to_matched(*bound); });
  if (known == bindings.end()) return keep(0, prepare(entry_, segments_[0], state_.kernels, bind_sizes(entry_, feeds), worker()));
  std::rotate(bindings.begin(), known, known + 1);
  return *bindings[0];
}

BoundSegment& Executor::bind(std::size_t segment, const DimBindings& sizes) {
  auto& bindings = bindings_[segment];
  const auto known = std::find_if(bindings.begin(), bindings.end(), [&](const auto& bound) { return bound->sizes == sizes; });
  if (known == bindings.end()) {
    if (segment > 0) check_equations(entry_, sizes);  // of the first one they are checked where sizes are solved for
    return keep(segment, prepare(entry_, segments_[segment], state_.kernels, sizes, worker()));
  }
  std::rotate(bindings.begin(), known, known + 1);
  return *bindings[0];
}

/// Puts a new binding in front. What the team's threads allocate when they begin, they allocate now.
BoundSegment& Executor::keep(std::size_t segment, std::unique_ptr<BoundSegment> bound) {
  state_.team.run([](const Team::Member&) {});
  for (BoundStep& step : bound->steps)
    if (auto* region = std::get_if<BoundRegion>(&step); region != nullptr and region->body != nullptr) (void)bodies_[region->number][0]->keep(0, std::move(region->body));
  auto& bindings = bindings_[segment];
  if (arguments_.size() < bound->most_pointers) arguments_.resize(bound->most_pointers);
  bindings.insert(bindings.begin(), std::move(bound));
  if (bindings.size() > kKeptBindings) {
    if (state_.device != nullptr) state_.device->note_memory_moved();  // what was captured may be calls of a body's binding that goes
    bindings.pop_back();
  }
  return *bindings[0];
}

bool Executor::is_bound_to_matched(const BoundSegment& bound) const {
  for (std::size_t i = 0; i < matched_.size(); ++i)
    if (bound.feed_shapes[i] != matched_[i]->shape) return false;
  return true;
}

void Executor::run_segments(BoundSegment& first) {
  BoundSegment* bound = &first;
  for (std::size_t segment = 0;; ++segment) {
    start(segment, *bound);
    if (watcher_ != nullptr) execute_watched(*bound);
    else if (not measured_.empty()) execute_measured(*bound);
    else if (state_.device != nullptr) run_steps_on_device(*bound);
    else if (not state_.tracks.empty()) execute_traced(*bound);
    else
      for (BoundStep& step : bound->steps) {
        if (not std::holds_alternative<KernelRun>(step)) make_feeds();
        std::visit([this](auto& what) { execute(what); }, step);
      }
    end_exchanges();
    if (segment + 1 == segments_.size()) return;
    bound = &bind(segment + 1, read_sizes(segment, *bound));
  }
}

std::byte* Executor::memory_of(std::size_t segment, const BoundSegment& bound) {
  if (given_memory_ != nullptr) return given_memory_;
  WorkMemory& arena = segment == 0 and shared_arena_ != nullptr ? *shared_arena_ : own_arenas_[segment];
  reserve_arena(arena, bound.memory_bytes, state_.device.get());
  return arena.data();
}

/// Gives the segment its memory, every buffer that it uses its place, and its kernels their arguments.
void Executor::start(std::size_t segment, BoundSegment& bound) {
  current_ = &bound;
  std::byte* const memory = memory_of(segment, bound);
  scratch_ = memory + bound.scratch_offset;
  for (const auto& [buffer, offset] : bound.placed) pointers_[buffer] = memory + offset;
  if (segment == 0)
    for (const auto& [buffer, feed] : fed_) pointers_[buffer] = const_cast<void*>(feeds_[feed]);  // plan::check: nothing writes to it
  for (std::size_t k = 0; k < wanted_.size(); ++k)
    if (direct_[k] and wanted_[k] != nullptr) pointers_[*direct_[k]] = wanted_[k];
  for (const auto& [view, root] : bound.views) {
    pointers_[view] = pointers_[root];
    copies_apart_[view] = copies_apart_[root];
  }
  const auto give_arguments = [this](std::vector<BoundKernel>& kernels) {
    for (BoundKernel& kernel : kernels) this->give_arguments(kernel);
  };
  for (BoundStep& step : bound.steps)
    if (auto* region = std::get_if<BoundRegion>(&step)) region->states = memory + region->states_offset;
    else if (auto* run = std::get_if<KernelRun>(&step)) give_arguments(run->kernels);
    else if (auto* library = std::get_if<BoundLibrary>(&step)) give_arguments(library->kernels);
}

/// For each thread where a feed lies in copies, one for each of them.
void Executor::give_arguments(BoundKernel& kernel) const {
  const std::size_t count = kernel.buffers.size();
  const bool is_copied = are_copied_ and std::ranges::any_of(kernel.buffers, [this](std::uint32_t buffer) { return copies_apart_[buffer] > 0; });
  const std::size_t threads = is_copied ? static_cast<std::size_t>(state_.team.threads()) : 1;
  if (kernel.arguments.size() < threads * count) kernel.arguments.resize(threads * count);
  kernel.arguments_apart = is_copied ? count : 0;
  for (std::size_t thread = 0; thread < threads; ++thread)
    for (std::size_t i = 0; i < count; ++i) kernel.arguments[thread * count + i] = pointer(kernel.buffers[i]) + thread * copies_apart_[kernel.buffers[i]];
}

/// The sizes so far and those that the step reads behind the segment. Their names are always the same ones, so the map is kept.
const DimBindings& Executor::read_sizes(std::size_t segment, const BoundSegment& bound) {
  const auto& step = std::get<plan::ReadSizesStep>(entry_.steps[segments_[segment].end - 1].what);
  DimBindings& sizes = read_sizes_[segment];
  for (const auto& [name, value] : bound.sizes) sizes[name] = value;
  std::vector<std::byte> content;
  const auto* const numbers = static_cast<const std::byte*>(state_.device != nullptr ? read_from_device(bound, step.buffer, content).data : pointers_[step.buffer]);
  for (std::size_t i = 0; i < step.symbols.size(); ++i) sizes[step.symbols[i]] = integer_at(bound.buffers[step.buffer].type.dtype, numbers, i);
  return sizes;
}

void Executor::watch(StepWatcher* watcher) {
  watcher_ = watcher;
  for (const auto& bodies : bodies_)
    for (const auto& body : bodies) body->watch(watcher);
}

/// `downloaded` keeps what the views show, where they are of a device's memory.
WatchedStep Executor::watched(std::uint32_t number, const BoundSegment& bound, std::deque<std::vector<std::byte>>& downloaded) const {
  WatchedStep watched{.step = &entry_.steps[number]};
  const auto add = [&](std::uint64_t buffer, bool is_result) {
    const BoundBuffer& bound_buffer = bound.buffers[buffer];
    if (entry_.buffers[buffer].opaque or bound_buffer.bytes == 0) return;  // a library's own affair
    const TensorView view = state_.device != nullptr ? read_from_device(bound, static_cast<std::uint32_t>(buffer), downloaded.emplace_back())
                                                     : TensorView{bound_buffer.type.dtype, bound_buffer.type.shape, pointers_[buffer]};
    (is_result ? watched.results : watched.operands).emplace_back(entry_.buffers[buffer].name, view);
  };
  if (const auto* kernel = std::get_if<plan::KernelStep>(&watched.step->what)) {
    for (std::size_t i = 0; i < kernel->buffers.size(); ++i) add(kernel->buffers[i], i >= kernel->read_only);
  } else if (const auto* library = std::get_if<plan::LibraryStep>(&watched.step->what); library != nullptr and library->epilogue) {  // what is handed on may not be there
    for (const std::int64_t operand : library->epilogue->operands) add(static_cast<std::uint64_t>(operand), false);
    for (const std::uint32_t result : library->epilogue->results) add(result, true);
  } else {
    plan::for_each_buffer(*watched.step, [&](std::uint64_t buffer, plan::Access access) { add(buffer, access != plan::Access::kRead); });
  }
  return watched;
}

void Executor::execute_watched(BoundSegment& bound) {
  struct Piece {
    std::uint32_t step;
    std::function<void()> run;
  };
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < bound.steps.size(); ++i) {
    if (const auto* run = std::get_if<KernelRun>(&bound.steps[i])) {
      for (const BoundKernel& kernel : run->kernels)
        pieces.push_back({kernel.step, [&] { state_.device != nullptr ? state_.device->run(kernel) : execute_piece(kernel, {0, kernel.range}, 0); }});
      continue;
    }
    if (std::holds_alternative<BoundWait>(bound.steps[i])) continue;
    pieces.push_back({bound.step_numbers[i], [this, &what = bound.steps[i]] {
                        std::visit([this](auto& each) { execute(each); }, what);
                        end_exchanges();
                      }});
  }
  std::deque<std::vector<std::byte>> downloaded;
  for (const Piece& piece : pieces) {
    downloaded.clear();
    watcher_->before(watched(piece.step, bound, downloaded));
    piece.run();
    watcher_->after(watched(piece.step, bound, downloaded));
  }
}

/// A library's threads are its own: its calls are on the caller's track.
void Executor::execute_traced(BoundSegment& bound) {
  for (std::size_t i = 0; i < bound.steps.size(); ++i) {
    if (auto* run = std::get_if<KernelRun>(&bound.steps[i])) {
      hone::execute_traced(*run, state_.team, entry_.steps, state_.tracks);
      continue;
    }
    TraceTrack& track = *state_.tracks.front();
    const std::int64_t begin = track.now();
    std::visit([this](auto& what) { execute(what); }, bound.steps[i]);
    if (std::holds_alternative<BoundWait>(bound.steps[i])) track.add({.begin = begin, .end = track.now(), .phase = "wait for exchanges"});
    else track.add(entry_.steps[bound.step_numbers[i]], begin);
  }
}

void Executor::execute(const BoundLibrary& step) {
  if (state_.device != nullptr) return execute_on_device(step);
  const std::size_t operand_count = step.operands.size();
  for (std::size_t i = 0; i < operand_count; ++i) arguments_[i] = step.operands[i] < 0 ? nullptr : pointers_[static_cast<std::size_t>(step.operands[i])];
  for (std::size_t i = 0; i < step.results.size(); ++i) arguments_[operand_count + i] = pointers_[step.results[i]];
  std::optional<LibraryOnOneThread> one_thread;
  if (step.on_one_thread) one_thread.emplace();
  step.call->execute({arguments_.data(), operand_count}, {arguments_.data() + operand_count, step.results.size()}, scratch_);
}

void Executor::execute(BoundHost& step) {
  if (state_.device != nullptr) return execute_on_device(step);
  const auto pointer = [this](std::int64_t buffer) { return buffer < 0 ? nullptr : pointers_[static_cast<std::size_t>(buffer)]; };
  for (std::size_t i = 0; i < step.operands.size(); ++i) step.operands[i].data = pointer(step.operand_buffers[i]);
  for (std::size_t i = 0; i < step.results.size(); ++i) step.results[i].data = pointer(step.result_buffers[i]);
  step.function->call(step.attributes, step.operands, step.results, step.scratch);
}

void Executor::execute(BoundExchange& step) {
  if (state_.device != nullptr) return execute_on_device(step);
  for (std::size_t i = 0; i < step.buffers.size(); ++i) step.tensors[i].data = pointers_[step.buffers[i]];
  if (step.collects) return state_.collected.add(step.bucket, step.tensors);
  if (state_.collected.is_used() and step.operation != plan::AllReduceStep::Operation::kAllGather) state_.collected.take(step.bucket, step.tensors);
  state_.exchanges.begin(step);
}

TensorView Executor::result(std::size_t index) const {
  const std::uint32_t buffer = entry_.results[index].buffer;
  const TensorType& type = current_->buffers[buffer].type;
  if (state_.device == nullptr) return {type.dtype, type.shape, pointers_[buffer]};
  downloaded_.resize(entry_.results.size());
  return read_from_device(*current_, buffer, downloaded_[index]);
}

MemoryReport Executor::memory() const {
  MemoryReport report;
  const auto add = [&report](const MemoryReport& more) {
    report.arena += more.arena;
    report.lower_bound += more.lower_bound;
    report.library += more.library;
  };
  for (const auto& bindings : bindings_)
    if (not bindings.empty()) add(bindings.front()->report);
  for (const auto& bodies : bodies_)
    for (const auto& body : bodies)
      if (body->given_memory_ == nullptr) add(body->memory());
  return report;
}

}  // namespace hone
