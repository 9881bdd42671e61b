#include "runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/diag.h"
#include "base/tensor.h"

namespace hone {
namespace {

/// Of each entry, so that full and last batches of training, and a few sequence lengths, are prepared once.
constexpr std::size_t kKeptBindings = 8;

}  // namespace

void reserve_arena(HostMemory& arena, std::size_t bytes) {
  if (arena.size() >= bytes) return;
  arena = HostMemory();  // first, so that there are never two
  arena = HostMemory(bytes, "the memory for one batch");
}

Executor::Executor(const plan::Entry& entry, HostState& state, HostMemory* arena)
    : entry_(entry),
      state_(state),
      segments_(segments_of(entry)),
      bindings_(segments_.size()),
      own_arenas_(segments_.size()),
      shared_arena_(arena),
      matched_(entry.feeds.size()),
      feeds_(entry.feeds.size()),
      pointers_(entry.buffers.size()) {
  for (auto& bindings : bindings_) bindings.reserve(kKeptBindings + 1);
  for (const plan::Step& step : entry.steps) {
    const auto* region = std::get_if<plan::RegionStep>(&step.what);
    if (region == nullptr) continue;
    bodies_.emplace_back();
    for (const plan::Entry& body : region->bodies) bodies_.back().push_back(std::make_unique<Executor>(body, state));  // plan::check limits the depth
  }
}

void Executor::run(NamedFeeds feeds) {
  match_feeds(entry_, feeds, matched_);
  const Team::InUse in_use(state_.team);
  BoundSegment& first = bind_feeds(feeds);
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    check_bounds(entry_.feeds[i], *matched_[i]);
    feeds_[i] = matched_[i]->data;
  }
  run_segments(first);
}

void Executor::run_body(std::span<const void* const> feeds, const DimBindings& sizes) {
  std::copy(feeds.begin(), feeds.end(), feeds_.begin());
  run_segments(bind(0, sizes));
}

/// The binding for the matched feeds.
BoundSegment& Executor::bind_feeds(NamedFeeds feeds) {
  auto& bindings = bindings_[0];
  const auto known = std::find_if(bindings.begin(), bindings.end(), [this](const auto& bound) { return is_bound_to_matched(*bound); });
  if (known == bindings.end()) return keep(0, prepare(entry_, segments_[0], state_.kernels, bind_sizes(entry_, feeds)));
  std::rotate(bindings.begin(), known, known + 1);
  return *bindings[0];
}

BoundSegment& Executor::bind(std::size_t segment, const DimBindings& sizes) {
  auto& bindings = bindings_[segment];
  const auto known = std::find_if(bindings.begin(), bindings.end(), [&](const auto& bound) { return bound->sizes == sizes; });
  if (known == bindings.end()) return keep(segment, prepare(entry_, segments_[segment], state_.kernels, sizes));
  std::rotate(bindings.begin(), known, known + 1);
  return *bindings[0];
}

/// Puts a new binding in front.
BoundSegment& Executor::keep(std::size_t segment, std::unique_ptr<BoundSegment> bound) {
  auto& bindings = bindings_[segment];
  if (arguments_.size() < bound->most_pointers) arguments_.resize(bound->most_pointers);
  bindings.insert(bindings.begin(), std::move(bound));
  if (bindings.size() > kKeptBindings) bindings.pop_back();
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
    if (not measured_.empty()) execute_measured(*bound);
    else
      for (BoundStep& step : bound->steps) std::visit([this](auto& what) { execute(what); }, step);
    if (segment + 1 == segments_.size()) return;
    bound = &bind(segment + 1, read_sizes(std::get<plan::ReadSizesStep>(entry_.steps[segments_[segment].end - 1].what), *bound));
  }
}

/// Gives the segment its memory, and every buffer that it uses its place.
void Executor::start(std::size_t segment, const BoundSegment& bound) {
  current_ = &bound;
  HostMemory& arena = segment == 0 and shared_arena_ != nullptr ? *shared_arena_ : own_arenas_[segment];
  reserve_arena(arena, bound.memory_bytes);
  scratch_ = arena.data() + bound.scratch_offset;
  for (const auto& [buffer, offset] : bound.placed) pointers_[buffer] = arena.data() + offset;
  for (std::size_t i = 0; segment == 0 and i < pointers_.size(); ++i) {
    const plan::Buffer& buffer = entry_.buffers[i];
    if (buffer.storage == plan::Buffer::Storage::kPersistent) pointers_[i] = state_.persistents[buffer.index];
    if (buffer.storage == plan::Buffer::Storage::kFeed) pointers_[i] = const_cast<void*>(feeds_[buffer.index]);  // plan::check: nothing writes to it
  }
  for (std::size_t i = 0; i < pointers_.size(); ++i)
    if (entry_.buffers[i].storage == plan::Buffer::Storage::kView) pointers_[i] = pointers_[bound.buffers[i].root];
}

/// The sizes so far and those that the step reads. Throws Error kDataShape when they contradict what the model takes to be equal.
DimBindings Executor::read_sizes(const plan::ReadSizesStep& step, const BoundSegment& bound) const {
  DimBindings sizes = bound.sizes;
  const TensorView view{bound.buffers[step.buffer].type.dtype, bound.buffers[step.buffer].type.shape, pointers_[step.buffer]};
  for (std::size_t i = 0; i < step.symbols.size(); ++i) sizes[step.symbols[i]] = integer_at(view, i);
  check_equations(entry_, sizes);
  return sizes;
}

void Executor::execute(const BoundKernel& step) {
  for (std::size_t i = 0; i < step.buffers.size(); ++i) arguments_[i] = pointers_[step.buffers[i]];
  const auto run_piece = [&](std::int64_t begin, std::int64_t end) { step.function(arguments_.data(), step.sizes.data(), begin, end); };
  if (step.split) {
    state_.team.split(step.range, run_piece);
  } else {
    run_piece(0, step.range);
  }
}

void Executor::execute(const BoundLibrary& step) {
  const std::size_t operand_count = step.operands.size();
  for (std::size_t i = 0; i < operand_count; ++i) arguments_[i] = step.operands[i] < 0 ? nullptr : pointers_[static_cast<std::size_t>(step.operands[i])];
  for (std::size_t i = 0; i < step.results.size(); ++i) arguments_[operand_count + i] = pointers_[step.results[i]];
  step.call->execute({arguments_.data(), operand_count}, {arguments_.data() + operand_count, step.results.size()},
                     scratch_);
}

void Executor::execute(BoundHost& step) {
  const auto pointer = [this](std::int64_t buffer) { return buffer < 0 ? nullptr : pointers_[static_cast<std::size_t>(buffer)]; };
  for (std::size_t i = 0; i < step.operands.size(); ++i) step.operands[i].data = pointer(step.operand_buffers[i]);
  for (std::size_t i = 0; i < step.results.size(); ++i) step.results[i].data = pointer(step.result_buffers[i]);
  step.function->run(step.attributes, step.operands, step.results);
}

void Executor::execute(const BoundCopy& step) {
  constexpr std::size_t kBytesWorthThreads = std::size_t{256} << 10;
  const auto* from = static_cast<const std::byte*>(pointers_[step.from]);
  auto* to = static_cast<std::byte*>(pointers_[step.to]);
  const auto copy = [&](std::int64_t begin, std::int64_t end) { std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin)); };
  if (step.bytes >= kBytesWorthThreads) {
    state_.team.split(static_cast<std::int64_t>(step.bytes), copy);
  } else {
    copy(0, static_cast<std::int64_t>(step.bytes));
  }
}

TensorView Executor::result(std::size_t index) const {
  const std::uint32_t buffer = entry_.results[index].buffer;
  const TensorType& type = current_->buffers[buffer].type;
  return {type.dtype, type.shape, pointers_[buffer]};
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
    for (const auto& body : bodies) add(body->memory());
  return report;
}

// --- Regions ---

void Executor::execute(BoundRegion& step) {
  switch (step.region->kind) {
    case plan::RegionStep::Kind::kScan: return run_scan(step);
    case plan::RegionStep::Kind::kWhile: return run_while(step);
    case plan::RegionStep::Kind::kBranch: return run_branch(step);
  }
}

namespace {

void copy_bytes(std::byte* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

/// The states of a loop: what an iteration reads, and, apart from it, what it leaves.
class LoopStates {
 public:
  explicit LoopStates(const BoundRegion& step)
      : bytes_(step.state_bytes), offsets_(step.state_offsets), next_(step.states.data()), other_(next_ + step.states.size() / 2) {}

  /// Copies state k to where the next iteration finds it.
  void store(std::size_t k, const void* from) const { copy_bytes(next_ + offsets_[k], from, bytes_[k]); }

  /// The next iteration begins: what was stored is what it is fed.
  void turn(std::span<const void*> feeds) {
    for (std::size_t k = 0; k < feeds.size(); ++k) feeds[k] = next_ + offsets_[k];
    std::swap(next_, other_);
  }

 private:
  const std::vector<std::size_t>&bytes_, &offsets_;
  std::byte *next_, *other_;
};

}  // namespace

void Executor::run_scan(BoundRegion& step) {
  const plan::RegionStep& region = *step.region;
  Executor& body = *bodies_[step.number][0];
  const DimBindings& sizes = current_->sizes;
  LoopStates states(step);
  std::int64_t i = 0;
  step.feeds[0] = &i;
  for (std::size_t k = 0; k < region.operands.size(); ++k) step.feeds[1 + k] = pointer(region.operands[k]);
  for (std::int64_t trip = 0; trip < step.trips; ++trip) {
    i = region.reverse ? step.trips - 1 - trip : trip;
    const auto at = [&](std::int64_t buffer, std::size_t bytes) { return pointer(buffer) + static_cast<std::size_t>(i) * bytes; };
    for (std::size_t k = 0; k < region.scanned; ++k) step.feeds[1 + region.states + k] = at(region.operands[region.states + k], step.scanned_bytes[k]);
    body.run_body(step.feeds, sizes);
    for (std::size_t k = 0; k < region.states; ++k) {
      if (region.results[region.states + k] >= 0) copy_bytes(at(region.results[region.states + k], step.stacked_bytes[k]), step.feeds[1 + k], step.stacked_bytes[k]);
      states.store(k, body.result(k).data);
    }
    for (std::size_t k = region.states; k < step.stacked_bytes.size(); ++k)
      if (region.results[region.states + k] >= 0) copy_bytes(at(region.results[region.states + k], step.stacked_bytes[k]), body.result(k).data, step.stacked_bytes[k]);
    states.turn(std::span(step.feeds).subspan(1, region.states));
  }
  for (std::size_t k = 0; k < region.states; ++k)
    if (region.results[k] >= 0) copy_bytes(pointer(region.results[k]), step.feeds[1 + k], step.state_bytes[k]);
}

void Executor::run_while(BoundRegion& step) {
  const plan::RegionStep& region = *step.region;
  Executor& body = *bodies_[step.number][0];
  LoopStates states(step);
  std::int64_t trips = 0;
  step.feeds[0] = &trips;
  for (std::size_t k = 1; k < region.operands.size(); ++k) step.feeds[k] = pointer(region.operands[k]);
  bool goes_on = *reinterpret_cast<const bool*>(pointer(region.operands[0]));
  for (; goes_on and trips < step.trips; ++trips) {
    body.run_body(step.feeds, current_->sizes);
    goes_on = *static_cast<const bool*>(body.result(0).data);
    for (std::size_t k = 0; k < region.states; ++k) states.store(k, body.result(1 + k).data);
    states.turn(std::span(step.feeds).subspan(1, region.states));
  }
  if (region.results[0] >= 0) std::memcpy(pointer(region.results[0]), &trips, sizeof(trips));
}

void Executor::run_branch(BoundRegion& step) {
  const plan::RegionStep& region = *step.region;
  Executor& body = *bodies_[step.number][*reinterpret_cast<const bool*>(pointer(region.operands[0])) ? 0 : 1];
  for (std::size_t k = 1; k < region.operands.size(); ++k) step.feeds[k - 1] = pointer(region.operands[k]);
  body.run_body(step.feeds, current_->sizes);
  for (std::size_t k = 0; k < region.results.size(); ++k)
    if (region.results[k] >= 0) copy_bytes(pointer(region.results[k]), body.result(k).data, step.result_bytes[k]);
}

}  // namespace hone
