// In which order an epoch visits its samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <span>
#include <vector>

#include "runtime/data/order.h"

namespace hone {
namespace {

std::vector<std::int64_t> next_order(SampleOrder& order, std::int64_t count, std::int64_t epoch) {
  order.start_epoch(epoch);
  std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
  order.copy(0, samples);
  return samples;
}
std::vector<std::int64_t> order_of(std::int64_t count, ShuffleOptions shuffle, std::int64_t epoch, std::int64_t most_listed = SampleOrder::kListed) {
  SampleOrder order(count, shuffle, most_listed);
  return next_order(order, count, epoch);
}

TEST(SampleOrder, EveryOrderVisitsEverySampleOnce) {
  for (const std::int64_t count : {1, 2, 3, 10, 1000})
    for (const std::int64_t buffer : {0, 1, 7, 999, 5000}) {
      const auto order = order_of(count, {.shuffle = true, .buffer = buffer, .seed = 3}, 5);
      EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), static_cast<std::size_t>(count)) << count << " " << buffer;
      EXPECT_EQ(*std::max_element(order.begin(), order.end()), count - 1);
    }
}

TEST(SampleOrder, DependsOnSeedAndEpochAlone) {
  const ShuffleOptions shuffle = {.shuffle = true, .buffer = 0, .seed = 42};
  SampleOrder order(100, shuffle);
  next_order(order, 100, 0);
  EXPECT_EQ(next_order(order, 100, 3), order_of(100, shuffle, 3));
  EXPECT_NE(order_of(100, shuffle, 3), order_of(100, shuffle, 4));
  EXPECT_NE(order_of(100, shuffle, 3), order_of(100, {.shuffle = true, .buffer = 0, .seed = 43}, 3));
  EXPECT_EQ(order_of(5, {.shuffle = false}, 9), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST(SampleOrder, StaysTheSameFromVersionToVersion) {
  EXPECT_EQ(order_of(8, {.shuffle = true, .buffer = 0, .seed = 0}, 0), order_of(8, {.shuffle = true, .buffer = 8, .seed = 0}, 0));
  EXPECT_EQ(order_of(8, {.shuffle = true, .buffer = 0, .seed = 0}, 0), (std::vector<std::int64_t>{3, 0, 5, 4, 7, 6, 1, 2}));
  EXPECT_EQ(order_of(8, {.shuffle = true, .buffer = 3, .seed = 1}, 2), (std::vector<std::int64_t>{2, 3, 1, 4, 5, 0, 6, 7}));
}

TEST(SampleOrder, OrdersTooLongToKeepVisitEverySampleOnceToo) {
  for (const std::int64_t count : {1, 2, 3, 4, 5, 17, 1000, 4097}) {
    const auto order = order_of(count, {.shuffle = true, .buffer = 0, .seed = 3}, 5, 0);
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), static_cast<std::size_t>(count));
    EXPECT_EQ(*std::max_element(order.begin(), order.end()), count - 1);
    if (count < 1000) continue;
    EXPECT_NE(order, order_of(count, {.shuffle = true, .buffer = 0, .seed = 3}, 6, 0));
    EXPECT_NE(order, order_of(count, {.shuffle = true, .buffer = 0, .seed = 4}, 5, 0));
    std::int64_t close = 0;  // neighbours that stay neighbours
    for (std::size_t i = 1; i < order.size(); ++i) close += std::abs(order[i] - order[i - 1]) <= 2 ? 1 : 0;
    EXPECT_LT(close, 30);
  }
  EXPECT_EQ(order_of(1000, {.shuffle = true, .buffer = 7, .seed = 3}, 5, 0), order_of(1000, {.shuffle = true, .buffer = 7, .seed = 3}, 5));
  EXPECT_EQ(order_of(4, {.shuffle = false}, 5, 0), (std::vector<std::int64_t>{0, 1, 2, 3}));
  SampleOrder endless(std::int64_t{1} << 40, {.shuffle = true});  // takes no memory
  endless.start_epoch(1);
  std::vector<std::int64_t> some(1000);
  endless.copy(std::int64_t{1} << 39, some);
  EXPECT_EQ(std::set<std::int64_t>(some.begin(), some.end()).size(), 1000u);
}

TEST(SampleOrder, IsEnteredAnywhere) {
  for (const std::int64_t most_listed : {std::int64_t{0}, SampleOrder::kListed})
    for (const ShuffleOptions& shuffle :
         {ShuffleOptions{.shuffle = false}, ShuffleOptions{.shuffle = true, .seed = 2}, ShuffleOptions{.shuffle = true, .buffer = 9, .seed = 2}}) {
      SampleOrder order(50, shuffle, most_listed);
      const auto all = next_order(order, 50, 4);
      for (const std::int64_t begin : {13, 40, 0, 49, 5}) {
        std::vector<std::int64_t> part(static_cast<std::size_t>(50 - begin));
        order.copy(begin, part);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + begin));
        const std::span<const std::int64_t> kept = order.kept(begin, 50 - begin);
        EXPECT_EQ(std::vector(kept.begin(), kept.end()), shuffle.shuffle and most_listed > 0 ? part : std::vector<std::int64_t>());
      }
    }
}

TEST(SampleOrder, BufferKeepsSamplesNearTheirPlace) {
  const auto order = order_of(1000, {.shuffle = true, .buffer = 10, .seed = 1}, 0);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_LE(order[i], static_cast<std::int64_t>(i) + 9);
}

TEST(SampleOrder, EverySampleComesFirstEquallyOften) {
  std::vector<int> first(5);
  for (std::int64_t epoch = 0; epoch < 5000; ++epoch) ++first[static_cast<std::size_t>(order_of(5, {.shuffle = true, .buffer = 0, .seed = 7}, epoch)[0])];
  for (const int count : first) EXPECT_NEAR(count, 1000, 120);  // four standard deviations
}

}  // namespace
}  // namespace hone
