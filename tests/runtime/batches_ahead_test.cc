// What BatchReader makes ahead is what it makes next, where an epoch begins and ends included.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>

#include "runtime/data/batches.h"
#include "runtime/device/sim_device.h"
#include "runtime/session.h"

namespace hone {
namespace {

constexpr std::int64_t kRows = 22;

plan::Entry entry_of_rows() {
  plan::Entry entry;
  entry.name = "train_step";
  entry.feeds = {{"x", plan::Feed::Kind::kModelInput, DType::kF32, {Dim::symbol("N"), 2}, std::nullopt, std::nullopt},
                 {"learning_rate", plan::Feed::Kind::kLearningRate, DType::kF64, {}, std::nullopt, std::nullopt}};
  return entry;
}

BoundArrays rows(const plan::Entry& entry) {
  std::vector<float> values(2 * kRows);
  std::iota(values.begin(), values.end(), 0.0F);
  std::vector<std::pair<std::string, Array>> arrays;
  arrays.emplace_back("x", Array("x.npy", Tensor::of<float>({kRows, 2}, std::span<const float>(values))));
  return {entry, std::move(arrays), {.flag = "--train", .batch_symbol = "N", .pre_batched = false, .scale = {}}};
}

std::vector<float> values_in(const TensorView& view) {
  const auto* data = static_cast<const float*>(view.data);
  return {data, data + checked_element_count(view.shape)};
}

class BatchesAhead : public testing::Test {
 protected:
  static constexpr ShuffleOptions kOrder = {.shuffle = true, .buffer = 7, .seed = 3};
  const plan::Entry entry_ = entry_of_rows();
  const BoundArrays data_ = rows(entry_);
  SimDevice device_{{.memory_bytes = 1 << 20}};
  BatchReader ahead_{data_, 4, kOrder, {.ahead = Ahead::kAlways, .device = &device_}};
  BatchReader plain_{data_, 4, kOrder, {.ahead = Ahead::kNever}};
};

TEST_F(BatchesAhead, AreThoseThatComeNext) {
  const double rate = 0.5;
  ahead_.add_feed("learning_rate", TensorView(DType::kF64, {}, &rate));
  std::set<std::uint64_t> versions;
  std::int64_t batches = 0;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    ahead_.start_epoch(epoch, epoch);
    plain_.start_epoch(epoch, epoch);
    for (NamedViews promised; ahead_.next(); ++batches) {
      ASSERT_TRUE(plain_.next());
      const TensorView& view = ahead_.feeds()[0].second;
      EXPECT_EQ(values_in(view), values_in(plain_.feeds()[0].second));
      EXPECT_EQ(ahead_.size(), plain_.size());
      EXPECT_EQ(ahead_.feeds().size(), 2U);
      EXPECT_TRUE(versions.insert(view.version).second) << "a batch like one before";
      if (not promised.empty()) {
        EXPECT_EQ(promised[0].second.version, view.version);
        EXPECT_EQ(promised[0].second.data, view.data);
        EXPECT_EQ(promised[0].second.shape, view.shape);
      }
      const std::vector<float> in_use = values_in(view);
      const NamedViews* next = ahead_.ahead();
      EXPECT_EQ(next == nullptr, view.shape[0] == 2) << "the last batch of an epoch";
      promised = next == nullptr ? NamedViews() : *next;
      if (next != nullptr) EXPECT_EQ(next->size(), 1U) << "the rate is whoever adds it's";
      if (next != nullptr) EXPECT_EQ(ahead_.ahead(), next) << "asked twice";
      EXPECT_EQ(values_in(view), in_use) << "what is in use stays";
    }
    EXPECT_FALSE(plain_.next());
  }
  EXPECT_EQ(batches, 6 + 5 + 4);
}

TEST_F(BatchesAhead, AnEpochThatIsCutShortLeavesNothingBehind) {
  ahead_.start_epoch(0);
  ASSERT_TRUE(ahead_.next());
  ASSERT_NE(ahead_.ahead(), nullptr);
  ahead_.start_epoch(1);
  plain_.start_epoch(1);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(ahead_.next());
    ASSERT_TRUE(plain_.next());
    EXPECT_EQ(values_in(ahead_.feeds()[0].second), values_in(plain_.feeds()[0].second));
    if (i == 0) ASSERT_NE(ahead_.ahead(), nullptr);
  }
}

TEST_F(BatchesAhead, AreMadeOnlyWhereAThreadGathersThem) {
  plain_.start_epoch(0);
  ASSERT_TRUE(plain_.next());
  EXPECT_EQ(plain_.ahead(), nullptr);
}

}  // namespace
}  // namespace hone
