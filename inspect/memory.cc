#include "inspect/memory.h"

#include <algorithm>

#include "base/diag.h"
#include "runtime/library/arena.h"

namespace hone {

namespace {

using plan::Buffer;

void place(const plan::Entry& entry, const ArenaNeeds& needs, PlacedMemory& memory) {
  std::vector<plan::Interval> intervals;
  std::vector<std::uint32_t> placed;
  for (std::uint32_t i = 0; i < entry.buffers.size(); ++i) {
    const Buffer& buffer = entry.buffers[i];
    if (buffer.storage != Buffer::Storage::kArena) continue;
    intervals.push_back({buffer.first_step, buffer.last_step, needs.buffers[i]});
    placed.push_back(i);
  }
  for (std::uint32_t i = 0; i < entry.steps.size(); ++i)
    if (std::holds_alternative<plan::RegionStep>(entry.steps[i].what)) intervals.push_back({i, i, needs.steps[i]});
  const plan::Placement placement = plan::place_buffers(intervals);
  memory.arena = placement.total;
  memory.bodies = needs.bodies.bytes;
  for (std::size_t k = 0; k < placed.size(); ++k) memory.offsets[placed[k]] = placement.offsets[k];
  memory.live.assign(entry.steps.size(), 0);
  for (const plan::Interval& interval : intervals)
    for (std::uint32_t step = interval.first; step <= interval.last and step < memory.live.size(); ++step) memory.live[step] += interval.bytes;
}

}  // namespace

PlacedMemory placed_memory(const plan::Entry& entry, const DimBindings& sizes) {
  PlacedMemory memory;
  memory.offsets.assign(entry.buffers.size(), -1);
  for (const Buffer& buffer : entry.buffers) {
    std::optional<std::int64_t>& bytes = memory.bytes.emplace_back();
    try {
      bytes = (element_count(buffer.shape) * static_cast<std::int64_t>(size_of(buffer.dtype))).evaluate(sizes);
    } catch (const Error&) {  // a size that is read when running, or not given
    }
  }
  const std::optional<ArenaNeeds> needs = arena_needs(entry, sizes);
  if (not needs) return memory;
  for (std::uint32_t i = 0; i < entry.buffers.size(); ++i) memory.bytes[i] = needs->buffers[i];
  place(entry, *needs, memory);
  if (memory.live.empty()) return memory;
  memory.peak_step = static_cast<std::uint32_t>(std::ranges::max_element(memory.live) - memory.live.begin());
  memory.peak_bytes = memory.live[memory.peak_step];
  for (std::uint32_t i = 0; i < entry.buffers.size(); ++i)
    if (const Buffer& buffer = entry.buffers[i]; memory.offsets[i] >= 0 and buffer.first_step <= memory.peak_step and memory.peak_step <= buffer.last_step) memory.alive_at_peak.push_back(i);
  std::ranges::stable_sort(memory.alive_at_peak, std::greater(), [&](std::uint32_t i) { return *memory.bytes[i]; });
  return memory;
}

}  // namespace hone
