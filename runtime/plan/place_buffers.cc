// Offline dynamic storage allocation, which is NP-hard; greedy best fit is within a few percent on training graphs. Which order to
// place in is best differs from graph to graph, so a few are tried, the smallest arena wins, and where it is not the smallest possible its order is changed a
// little at a time as long as that helps.
// Y. Pisarchyk and J. Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020 (greedy by size); the other orders are ours.
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/alignment.h"
#include "base/check.h"
#include "runtime/plan/plan.h"

namespace hone::plan {
namespace {

bool alive_together(const Interval& a, const Interval& b) { return a.first <= b.last and b.first <= a.last; }

/// Largest sum of `bytes` alive at one step.
std::int64_t largest_sum(std::span<const Interval> intervals, const std::vector<std::int64_t>& bytes) {
  std::vector<std::pair<std::uint64_t, std::int64_t>> changes;  // (step, bytes that come to life or die then); what dies goes first
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    changes.emplace_back(intervals[i].first, bytes[i]);
    changes.emplace_back(std::uint64_t{intervals[i].last} + 1, -bytes[i]);
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t alive = 0, largest = 0;
  for (const auto& [step, change] : changes) {
    alive = checked_add(alive, change, "the arena");
    largest = std::max(largest, alive);
  }
  return largest;
}

/// Places buffers one after the other, each into the smallest gap (or the lowest one) between those alive with it.
class Placer {
 public:
  Placer(std::span<const Interval> intervals, const std::vector<std::int64_t>& bytes) : intervals_(intervals), bytes_(bytes), offsets_(intervals.size(), 0) {}

  enum class Gap { kSmallest, kLowest };

  Placement place(std::span<const std::uint32_t> order, Gap gap) {
    by_offset_.clear();
    std::int64_t total = 0;
    for (const std::uint32_t i : order) {
      if (bytes_[i] == 0) continue;
      offsets_[i] = find_gap(i, gap);
      total = std::max(total, checked_add(offsets_[i], bytes_[i], "the arena"));
      const auto behind = [this](std::uint32_t a, std::uint32_t b) { return offsets_[a] < offsets_[b]; };
      by_offset_.insert(std::upper_bound(by_offset_.begin(), by_offset_.end(), i, behind), i);
    }
    return {.offsets = offsets_, .total = total, .lower_bound = 0};
  }

 private:
  std::int64_t find_gap(std::uint32_t buffer, Gap gap) const {
    std::int64_t best = -1, best_room = std::numeric_limits<std::int64_t>::max(), end = 0;
    for (const std::uint32_t other : by_offset_) {
      if (not alive_together(intervals_[buffer], intervals_[other])) continue;
      const std::int64_t room = offsets_[other] - end;
      if (room >= bytes_[buffer] and room < best_room) {
        best = end, best_room = room;
        if (gap == Gap::kLowest) return best;
      }
      end = std::max(end, offsets_[other] + bytes_[other]);
    }
    return best >= 0 ? best : end;
  }

  std::span<const Interval> intervals_;
  const std::vector<std::int64_t>& bytes_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::uint32_t> by_offset_;  // those placed so far
};

/// What is placed first: the buffer with the largest key; of equals the larger, the earlier, the first in the list.
using Key = std::int64_t (*)(const Interval&);

constexpr Key kOrders[] = {
    [](const Interval& interval) { return interval.bytes; },
    [](const Interval& interval) { return std::int64_t{interval.last} - std::int64_t{interval.first}; },
    [](const Interval& interval) {
      const double area = static_cast<double>(interval.bytes) * (static_cast<double>(interval.last) - interval.first + 1);
      return static_cast<std::int64_t>(std::min(area, 9e18));
    },
    [](const Interval& interval) { return -std::int64_t{interval.first}; },
    [](const Interval& interval) { return std::int64_t{interval.last}; },
};

std::vector<std::uint32_t> order_by(std::span<const Interval> intervals, Key key) {
  std::vector<std::uint32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [&](std::uint32_t i) { return std::tuple(-key(intervals[i]), -intervals[i].bytes, intervals[i].first, i); };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return rank(a) < rank(b); });
  return order;
}

/// An order, and what came of it.
struct Attempt {
  std::vector<std::uint32_t> order;
  Placer::Gap gap = Placer::Gap::kSmallest;
  Placement placement;
};

/// Local search: what lies on top of the arena is placed earlier, at a place in the order that a fixed sequence of random numbers says; kept unless the arena
/// grows. Stops at `goal`, or when it has cost as much as some ten million comparisons of buffers.
Attempt improved(Attempt best, Placer& placer, const std::vector<std::int64_t>& bytes, std::int64_t goal) {
  constexpr std::int64_t kComparisons = 10'000'000;
  const auto count = static_cast<std::int64_t>(best.order.size());
  std::uint32_t random = 1;
  for (std::int64_t tries = kComparisons / std::max<std::int64_t>(1, count * count); tries > 0 and best.placement.total > goal; --tries) {
    std::vector<std::uint32_t> order = best.order;
    const auto top = std::find_if(order.begin(), order.end(),
                                  [&](std::uint32_t i) { return bytes[i] > 0 and best.placement.offsets[i] + bytes[i] == best.placement.total; });
    random = random * 1664525U + 1013904223U;  // Numerical Recipes' generator; its high bits are the better ones
    // Mostly the top one goes to the front part; now and then any buffer goes anywhere.
    const auto from = random >> 30 == 0 ? order.begin() + (random >> 8) % count : top;
    random = random * 1664525U + 1013904223U;
    const auto to = order.begin() + (random >> 8) % std::max<std::int64_t>(1, from - order.begin());
    std::rotate(to, from, from + 1);
    Placement placement = placer.place(order, best.gap);
    if (placement.total <= best.placement.total) best = {std::move(order), best.gap, std::move(placement)};
  }
  return best;
}

}  // namespace

Placement place_buffers(std::span<const Interval> intervals) {
  std::vector<std::int64_t> exact, rounded;
  for (const Interval& interval : intervals) {
    HONE_CHECK(interval.first <= interval.last and interval.bytes >= 0, "a buffer that dies before it lives, or of negative size");
    exact.push_back(interval.bytes);
    rounded.push_back(round_up(interval.bytes, kTensorAlignment, "the arena"));
  }
  const std::int64_t reachable = largest_sum(intervals, rounded);
  // Trying an order is quadratic; very large graphs stop at a good answer instead of looking for the best.
  const std::int64_t good_enough = intervals.size() > 2048 ? reachable + reachable / 20 : reachable;
  Placer placer(intervals, rounded);
  std::vector<Attempt> attempts;
  for (const Key key : kOrders) {
    const std::vector<std::uint32_t> order = order_by(intervals, key);
    for (const Placer::Gap gap : {Placer::Gap::kSmallest, Placer::Gap::kLowest}) {
      if (not attempts.empty() and attempts.front().placement.total <= good_enough) break;
      Attempt attempt{order, gap, placer.place(order, gap)};
      const auto larger = std::ranges::upper_bound(attempts, attempt.placement.total, {}, [](const Attempt& other) { return other.placement.total; });
      attempts.insert(larger, std::move(attempt));
    }
  }
  // From the best of them on; from the next ones only where that does not lead near enough.
  const std::int64_t near_enough = std::max(good_enough, reachable + reachable / 25);
  Placement placement{.offsets = {}, .total = std::numeric_limits<std::int64_t>::max(), .lower_bound = 0};
  for (Attempt& attempt : attempts) {
    if (placement.total <= near_enough) break;
    Placement found = improved(std::move(attempt), placer, rounded, good_enough).placement;
    if (found.total < placement.total) placement = std::move(found);
  }
  placement.lower_bound = largest_sum(intervals, exact);
  return placement;
}

}  // namespace hone::plan
