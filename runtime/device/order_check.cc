#include "runtime/device/order_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace hone {
namespace {

void join(std::vector<std::uint64_t>& clock, const std::vector<std::uint64_t>& other) {
  clock.resize(std::max(clock.size(), other.size()));
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

[[noreturn]] void mistake(const std::string& what) { internal_error(__FILE__, __LINE__, what); }

}  // namespace

OrderCheck::Thread OrderCheck::add_stream() {
  clocks_.emplace_back(clocks_.size() + 1);
  clocks_.back().back() = 1;
  return static_cast<Thread>(clocks_.size() - 1);
}

std::uint32_t OrderCheck::add_event() {
  events_.emplace_back();
  return static_cast<std::uint32_t>(events_.size() - 1);
}

void OrderCheck::record(std::uint32_t event, Thread stream) { events_.at(event) = clocks_.at(stream); }

void OrderCheck::wait(Thread stream, std::uint32_t event) {
  if (events_.at(event).empty()) mistake(fmt::format("stream {} waits for event {}, which was never recorded", stream, event));
  join(clocks_.at(stream), events_[event]);
}

void OrderCheck::synchronize(Thread stream) { join(clocks_[kHost], clocks_.at(stream)); }

bool OrderCheck::has_come(std::uint32_t event) const {
  const Clock &clock = events_.at(event), &host = clocks_[kHost];
  for (std::size_t i = 0; i < clock.size(); ++i)
    if (clock[i] > (i < host.size() ? host[i] : 0)) return false;
  return not clock.empty();
}

void OrderCheck::begin(Thread stream, std::string what) {
  Clock& clock = clocks_.at(stream);
  join(clock, clocks_[kHost]);
  ++clock[stream];
  now_ = stream;
  what_ = std::move(what);
}

bool OrderCheck::came_before(const Access& earlier, Thread thread) const {
  const Clock& clock = clocks_[thread];
  return earlier.time == 0 or (earlier.thread < clock.size() and clock[earlier.thread] >= earlier.time);
}

void OrderCheck::unordered(const Access& earlier, bool earlier_writes, bool writes) const {
  mistake(fmt::format("{} {} what {} {}, and nothing orders the two (streams {} and {})", printable(what_), writes ? "writes" : "reads", printable(earlier.what),
                      earlier_writes ? "wrote" : "read", now_, earlier.thread));
}

/// Makes a range begin at `at`, if it lies within one.
void OrderCheck::split(std::uintptr_t at) {
  auto range = ranges_.upper_bound(at);
  if (range == ranges_.begin()) return;
  --range;
  if (range->first == at or range->second.end <= at) return;
  Range rest = range->second;
  range->second.end = at;
  ranges_.emplace_hint(std::next(range), at, std::move(rest));
}

void OrderCheck::access(const std::byte* memory, std::size_t bytes, bool writes) {
  if (bytes == 0) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory), end = begin + bytes;
  auto block = allocated_.upper_bound(begin);
  if (block == allocated_.begin() or (--block, end > block->first + block->second))
    mistake(fmt::format("{} {} {} bytes that are not allocated, or not any more", printable(what_), writes ? "writes" : "reads", bytes));
  split(begin);
  split(end);
  const Access now{.thread = now_, .time = clocks_[now_][now_], .what = what_};
  const auto first = ranges_.find(begin);
  for (auto range = first; range != ranges_.end() and range->first < end; ++range) {
    Range& seen = range->second;
    if (not came_before(seen.last_write, now_)) unordered(seen.last_write, true, writes);
    if (writes) {
      for (const Access& read : seen.reads)
        if (not came_before(read, now_)) unordered(read, false, true);
      seen.last_write = now;
      seen.reads.clear();
    } else {
      const auto own = std::ranges::find(seen.reads, now_, &Access::thread);
      if (own == seen.reads.end()) seen.reads.push_back(now);
      else *own = now;
    }
  }
  if (not writes) return;
  auto last = ranges_.lower_bound(end);  // all of it has one story now
  ranges_.erase(std::next(first), last);
  first->second.end = end;
}

void OrderCheck::allocate(const std::byte* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  allocated_.emplace(begin, bytes);
  if (bytes > 0) ranges_.insert_or_assign(begin, Range{.end = begin + bytes, .last_write = {}, .reads = {}});
}

void OrderCheck::release(const std::byte* memory) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const auto block = allocated_.find(begin);
  if (block == allocated_.end()) mistake("memory is released that is not allocated, or not any more");
  const auto first = ranges_.lower_bound(begin), end = ranges_.lower_bound(begin + block->second);
  for (auto range = first; range != end; ++range) {
    const auto is_done = [this](const Access& access) { return came_before(access, kHost); };
    if (not is_done(range->second.last_write)) mistake(fmt::format("memory is released that {} may still be writing", printable(range->second.last_write.what)));
    const auto reading = std::ranges::find_if_not(range->second.reads, is_done);
    if (reading != range->second.reads.end()) mistake(fmt::format("memory is released that {} may still be reading", printable(reading->what)));
  }
  ranges_.erase(first, end);
  allocated_.erase(block);
}

}  // namespace hone
