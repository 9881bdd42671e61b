// How an executor runs loops, branches, and bodies in place of calls. A body leaves its results where they are wanted: in the next iteration's states, in its slice of what is
// stacked, in the loop's results. So an iteration copies only what a body passes on without computing it, or gives twice.
#include <cstring>

#include "base/check.h"
#include "runtime/executor.h"

namespace hone {
namespace {

/// Where the states of a loop lie: in turn in two memories, so that no iteration writes what it reads.
class LoopStates {
 public:
  explicit LoopStates(BoundRegion& step) : offsets_(step.state_offsets), now_(step.states), next_(now_ + step.states_bytes / 2) {}

  std::byte* now(std::size_t k) const { return now_ + offsets_[k]; }
  std::byte* next(std::size_t k) const { return next_ + offsets_[k]; }
  void turn() { std::swap(now_, next_); }

 private:
  const std::vector<std::size_t>& offsets_;
  std::byte *now_, *next_;
};

}  // namespace

/// In the memory in which the session computes.
void Executor::copy(void* to, const void* from, std::size_t bytes) {
  if (state_.device != nullptr) state_.device->copy(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  else if (bytes > 0) std::memcpy(to, from, bytes);
}

/// A bool in it.
bool Executor::holds(const std::byte* condition) const {
  bool value = false;
  if (state_.device != nullptr) state_.device->read(&value, condition, sizeof(value));
  else std::memcpy(&value, condition, sizeof(value));
  return value;
}

/// Where the number that `value` is lies in it: as long as that does not change.
const void* Executor::number(std::int64_t& value) const {
  return state_.device != nullptr ? static_cast<const void*>(state_.device->numbers(value + 1) + static_cast<std::size_t>(value) * sizeof(value)) : &value;
}

/// A result can be left where it is wanted if its buffer is the body's own, whole, and not placed by a later segment. Of results that are one buffer the
/// first is.
void Executor::find_direct_results() {
  direct_.resize(entry_.results.size());
  std::vector<bool> is_taken(entry_.buffers.size());
  for (std::size_t k = 0; k < entry_.results.size() and segments_.size() == 1; ++k) {
    const std::uint32_t root = plan::root_of(entry_, entry_.results[k].buffer);
    if (entry_.buffers[root].storage != plan::Buffer::Storage::kArena or entry_.buffers[root].opaque or is_taken[root]) continue;
    direct_[k] = root;
    is_taken[root] = true;
  }
}

void Executor::run_body(BoundSegment& bound, std::span<const void* const> feeds, std::span<void* const> results, std::byte* memory) {
  std::copy(feeds.begin(), feeds.end(), feeds_.begin());
  wanted_ = results;
  given_memory_ = memory;
  run_segments(bound);
  wanted_ = {};
  for (std::size_t k = 0; k < results.size(); ++k) {
    const std::uint32_t buffer = entry_.results[k].buffer;
    if (results[k] != nullptr and results[k] != pointers_[buffer]) copy(results[k], pointers_[buffer], current_->buffers[buffer].bytes);
  }
}

void Executor::execute(BoundRegion& step) {
  switch (step.region->kind) {
    case plan::RegionStep::Kind::kScan: return run_scan(step);
    case plan::RegionStep::Kind::kWhile: return run_while(step);
    case plan::RegionStep::Kind::kBranch: return run_branch(step);
    case plan::RegionStep::Kind::kCall: return run_call(step);
  }
}

/// An iteration finds its states where the stacked ones are wanted, if they are, and leaves the next ones where the next iteration finds them; the last
/// one leaves them as the loop's results.
void Executor::run_scan(BoundRegion& step) {
  const plan::RegionStep& region = *step.region;
  Executor& body = *bodies_[step.number][0];
  BoundSegment& bound = body.bind_body(current_->sizes);
  LoopStates states(step);
  std::int64_t i = 0;
  const auto iteration = [&](std::int64_t trip) { return region.reverse ? step.trips - 1 - trip : trip; };
  const auto slice = [&](std::int64_t buffer, std::int64_t of, std::size_t bytes) { return pointer(buffer) + static_cast<std::size_t>(of) * bytes; };
  const auto found_at = [&](std::size_t k, std::int64_t trip, std::byte* otherwise) {
    const std::int64_t stacked = region.results[region.states + k], final = region.results[k];
    if (trip == step.trips) return final >= 0 ? pointer(final) : otherwise;
    return stacked >= 0 ? slice(stacked, iteration(trip), step.stacked_bytes[k]) : otherwise;
  };
  if (state_.device != nullptr) (void)state_.device->numbers(step.trips);
  for (std::size_t k = 0; k < region.operands.size(); ++k) step.feeds[1 + k] = pointer(region.operands[k]);
  for (std::size_t k = 0; k < region.states; ++k) {
    std::byte* const first = found_at(k, 0, nullptr);
    if (first != nullptr) copy(first, step.feeds[1 + k], step.state_bytes[k]);
  }
  for (std::int64_t trip = 0; trip < step.trips; ++trip) {
    i = iteration(trip);
    step.feeds[0] = number(i);
    for (std::size_t k = 0; k < region.scanned; ++k) step.feeds[1 + region.states + k] = slice(region.operands[region.states + k], i, step.scanned_bytes[k]);
    for (std::size_t k = 0; k < region.states; ++k) step.results[k] = found_at(k, trip + 1, states.next(k));
    for (std::size_t k = region.states; k < step.results.size(); ++k) {
      const std::int64_t stacked = region.results[region.states + k];
      step.results[k] = stacked >= 0 ? slice(stacked, i, step.stacked_bytes[k]) : nullptr;
    }
    body.run_body(bound, step.feeds, step.results);
    std::copy_n(step.results.begin(), region.states, step.feeds.begin() + 1);
    states.turn();
  }
}

void Executor::run_while(BoundRegion& step) {
  const plan::RegionStep& region = *step.region;
  Executor& body = *bodies_[step.number][0];
  BoundSegment& bound = body.bind_body(current_->sizes);
  LoopStates states(step);
  std::int64_t trips = 0;
  std::optional<DeviceWork::Word> word;
  if (state_.device != nullptr) word.emplace(*state_.device);
  bool on_host = false;
  auto* const condition = word ? word->data() : reinterpret_cast<std::byte*>(&on_host);
  bool goes_on = holds(pointer(region.operands[0]));
  for (std::size_t k = 1; k < region.operands.size(); ++k) step.feeds[k] = pointer(region.operands[k]);
  step.results[0] = condition;
  for (; goes_on and trips < step.trips; ++trips) {
    step.feeds[0] = number(trips);
    for (std::size_t k = 0; k < region.states; ++k) step.results[1 + k] = states.next(k);
    body.run_body(bound, step.feeds, step.results);
    goes_on = holds(condition);
    std::copy_n(step.results.begin() + 1, region.states, step.feeds.begin() + 1);
    states.turn();
  }
  if (region.results[0] >= 0) copy(pointer(region.results[0]), number(trips), sizeof(trips));
}

void Executor::run_branch(BoundRegion& step) {
  const plan::RegionStep& region = *step.region;
  Executor& body = *bodies_[step.number][holds(pointer(region.operands[0])) ? 0 : 1];
  BoundSegment& bound = body.bind_body(current_->sizes);
  for (std::size_t k = 1; k < region.operands.size(); ++k) step.feeds[k - 1] = pointer(region.operands[k]);
  for (std::size_t k = 0; k < region.results.size(); ++k) step.results[k] = region.results[k] < 0 ? nullptr : pointer(region.results[k]);
  body.run_body(bound, step.feeds, step.results);
}

/// In the caller's memory.
void Executor::run_call(BoundRegion& step) {
  const plan::RegionStep& region = *step.region;
  Executor& body = *bodies_[step.number][0];
  BoundSegment& bound = body.bind_body(current_->sizes);
  HONE_CHECK(bound.memory_bytes <= step.states_bytes, "the body of a call needs more memory than it was given");
  for (std::size_t k = 0; k < region.operands.size(); ++k) step.feeds[k] = pointer(region.operands[k]);
  for (std::size_t k = 0; k < region.results.size(); ++k) step.results[k] = pointer(region.results[k]);
  body.run_body(bound, step.feeds, step.results, step.states);
}

}  // namespace hone
