// place_buffers: what holds for any intervals, and how tight it is on the shape that training graphs have.
#include <gtest/gtest.h>

#include <random>

#include "base/diag.h"
#include "runtime/plan/plan.h"

namespace hone::plan {
namespace {

/// Largest sum of bytes alive at one step, step by step.
std::int64_t peak(const std::vector<Interval>& intervals) {
  std::int64_t largest = 0;
  for (const Interval& at : intervals) {  // the peak is reached where something begins
    std::int64_t alive = 0;
    for (const Interval& other : intervals)
      if (other.first <= at.first and at.first <= other.last) alive += other.bytes;
    largest = std::max(largest, alive);
  }
  return largest;
}

void expect_valid(const std::vector<Interval>& intervals) {
  const Placement placement = place_buffers(intervals);
  ASSERT_EQ(placement.offsets.size(), intervals.size());
  EXPECT_EQ(placement.lower_bound, peak(intervals));
  EXPECT_GE(placement.total, placement.lower_bound);
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    EXPECT_EQ(placement.offsets[i] % 64, 0);
    EXPECT_GE(placement.offsets[i], 0);
    EXPECT_LE(placement.offsets[i] + intervals[i].bytes, placement.total);
    for (std::size_t j = 0; j < i; ++j) {
      const bool together = intervals[i].first <= intervals[j].last and intervals[j].first <= intervals[i].last;
      const bool apart = placement.offsets[i] + intervals[i].bytes <= placement.offsets[j] or placement.offsets[j] + intervals[j].bytes <= placement.offsets[i];
      ASSERT_TRUE(apart or not together) << i << " and " << j;
    }
  }
}

TEST(PlaceBuffers, NoTwoLiveBuffersOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const auto below = [&random](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    std::vector<Interval> intervals(below(60));
    const std::uint32_t steps = 1 + below(40);
    for (Interval& interval : intervals) {
      interval.first = below(steps);
      interval.last = std::min(steps - 1, interval.first + below(1 + below(steps)));
      interval.bytes = below(3) == 0 ? below(10) : below(1 << below(20));
    }
    expect_valid(intervals);
  }
}

TEST(PlaceBuffers, NothingTakesNothing) {
  EXPECT_EQ(place_buffers({}).total, 0);
  const Interval empty[] = {{0, 5, 0}, {2, 3, 0}};
  EXPECT_EQ(place_buffers(empty).total, 0);
}

TEST(PlaceBuffers, ReusesMemoryOfTheDead) {
  const Interval chain[] = {{0, 1, 1000}, {1, 2, 1000}, {2, 3, 1000}, {3, 4, 1000}};
  EXPECT_EQ(place_buffers(chain).total, 2048);
}

TEST(PlaceBuffers, SaysTheSameEachTime) {
  std::mt19937 random(2);
  std::vector<Interval> intervals;
  for (int i = 0; i < 200; ++i) {
    const auto first = static_cast<std::uint32_t>(random() % 100);
    intervals.push_back({first, first + static_cast<std::uint32_t>(random() % 20), static_cast<std::int64_t>(random() % 5000)});
  }
  EXPECT_EQ(place_buffers(intervals).offsets, place_buffers(intervals).offsets);
}

TEST(PlaceBuffers, SizesBeyondAnyMachineAreAnError) {
  const Interval huge[] = {{0, 1, INT64_MAX - 100}, {1, 2, INT64_MAX - 100}};
  EXPECT_THROW(place_buffers(huge), Error);
}

/// A training step of `layers` layers: each makes a few activations, some of which its backward reads again; gradients of activations
/// live for two backward steps, those of weights until the update at the end (or right away).
std::vector<Interval> training_graph(std::mt19937& random, std::uint32_t layers, bool convolutional) {
  std::vector<Interval> intervals;
  const std::uint32_t steps = 3 * layers;
  std::int64_t activation = convolutional ? 64 * 56 * 56 * 64 * 4 : 32 * 256 * 768 * 4;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    if (convolutional and layer % 4 == 3) activation /= 2;
    const std::uint32_t backward = 2 * layers - 1 - layer;
    intervals.push_back({layer, backward, activation});                                              // kept for the backward pass
    if (random() % 2 == 0) intervals.push_back({layer, layer + 1, activation});                      // of the forward pass only
    if (random() % 3 == 0) intervals.push_back({layer, std::min(layer + 5, backward), activation});  // a residual
    if (random() % 2 == 0) intervals.push_back({layer, backward, activation / 4});                   // a mask
    intervals.push_back({layer, backward, static_cast<std::int64_t>(4 * (32 + random() % 512))});    // statistics
    intervals.push_back({backward, std::min(backward + 1, steps - 1), activation});                  // gradient of an activation
    intervals.push_back({backward, random() % 2 == 0 ? backward + 1 : steps - 1 - layer % 3, static_cast<std::int64_t>(4 * (1 + random() % 600'000))});
    intervals.push_back({backward, backward, activation / static_cast<std::int64_t>(1 + random() % 8)});  // scratch
  }
  return intervals;
}

TEST(PlaceBuffers, IsTightOnTrainingGraphs) {
  std::mt19937 random(3);
  double worst = 1, sum = 0;
  int count = 0;
  for (const std::uint32_t layers : {4U, 12U, 24U, 50U, 100U})
    for (const bool convolutional : {false, true})
      for (int round = 0; round < 5; ++round, ++count) {
        const Placement placement = place_buffers(training_graph(random, layers, convolutional));
        const double ratio = static_cast<double>(placement.total) / static_cast<double>(placement.lower_bound);
        worst = std::max(worst, ratio), sum += ratio;
      }
  EXPECT_LE(worst, 1.05);
  RecordProperty("worst", std::to_string(worst));
  RecordProperty("mean", std::to_string(sum / count));
}

}  // namespace
}  // namespace hone::plan
