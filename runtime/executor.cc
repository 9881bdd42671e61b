#include "runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/diag.h"
#include "base/text.h"

namespace hone {
namespace {

/// Of each entry, so that full and last batches of training, and a few sequence lengths, are prepared once.
constexpr std::size_t kKeptBindings = 8;

}  // namespace

void HostState::reserve_arena(std::size_t bytes) {
  if (arena.size() >= bytes) return;
  arena = HostMemory();  // first, so that there are never two
  arena = HostMemory(bytes, "the memory for one batch");
}

Executor::Executor(const plan::Entry& entry, HostState& state) : entry_(entry), state_(state), matched_(entry.feeds.size()), pointers_(entry.buffers.size()) {
  bindings_.reserve(kKeptBindings + 1);
}

void Executor::run(NamedFeeds feeds) {
  match_feeds(entry_, feeds, matched_);
  const Team::InUse in_use(state_.team);
  bind(feeds);
  for (std::size_t i = 0; i < matched_.size(); ++i) check_bounds(entry_.feeds[i], *matched_[i]);
  state_.reserve_arena(bindings_.front()->memory_bytes);
  point_buffers();
  for (BoundStep& step : bindings_.front()->steps) std::visit([this](auto& what) { execute(what); }, step);
}

/// Puts the binding for these feeds in front.
void Executor::bind(NamedFeeds feeds) {
  const auto known = std::find_if(bindings_.begin(), bindings_.end(), [this](const auto& bound) { return is_bound_to_matched(*bound); });
  if (known != bindings_.end()) {
    std::rotate(bindings_.begin(), known, known + 1);
    return;
  }
  std::unique_ptr<BoundEntry> bound = prepare(entry_, state_.kernels, bind_sizes(entry_, feeds));
  if (arguments_.size() < bound->most_pointers) arguments_.resize(bound->most_pointers);
  bindings_.insert(bindings_.begin(), std::move(bound));
  if (bindings_.size() > kKeptBindings) bindings_.pop_back();
}

bool Executor::is_bound_to_matched(const BoundEntry& bound) const {
  for (std::size_t i = 0; i < matched_.size(); ++i)
    if (bound.feed_shapes[i] != matched_[i]->shape) return false;
  return true;
}

void Executor::point_buffers() {
  const BoundEntry& bound = *bindings_.front();
  for (std::size_t i = 0; i < pointers_.size(); ++i) {
    const std::uint32_t root = bound.buffers[i].root;
    const plan::Buffer& buffer = entry_.buffers[root];
    switch (buffer.storage) {
      case plan::Buffer::Storage::kArena: pointers_[i] = state_.arena.data() + bound.offsets[root]; break;
      case plan::Buffer::Storage::kPersistent: pointers_[i] = state_.persistents[buffer.index]; break;
      case plan::Buffer::Storage::kFeed: pointers_[i] = const_cast<void*>(matched_[buffer.index]->data); break;  // plan::check: nothing writes to it
      case plan::Buffer::Storage::kView: break;                                                                  // a root is none
    }
  }
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
                     state_.arena.data() + bindings_.front()->scratch_offset);
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
  const TensorType& type = bindings_.front()->buffers[buffer].type;
  return {type.dtype, type.shape, pointers_[buffer]};
}

MemoryReport Executor::memory() const { return bindings_.empty() ? MemoryReport{} : bindings_.front()->report; }

}  // namespace hone
