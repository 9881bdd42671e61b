// Batches on their way to a device: what is found there is what was fed, and nothing else; what uses it waits for it.
#include "runtime/feeds_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/check.h"
#include "runtime/device/pinned_memory.h"
#include "runtime/device/sim_device.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

using Feeds = std::vector<std::pair<std::string, TensorView>>;

/// 16 floats in pinned memory.
class Tensor16 {
 public:
  Tensor16(SimDevice& device, float value, std::uint64_t version) : memory_(&device, 64, "a batch") {
    fill(value);
    view_ = TensorView(DType::kF32, {4, 4}, memory_.data());
    view_.version = version;
  }
  void fill(float value) { std::fill_n(reinterpret_cast<float*>(memory_.data()), 16, value); }
  TensorView& view() { return view_; }

 private:
  PinnedMemory memory_;
  TensorView view_;
};

class FeedsAheadTest : public testing::Test {
 protected:
  /// What lies there for work in the stream that computes; 0 if it is not there.
  float content(const TensorView& view) {
    const std::byte* const place = ahead_.find(view, 64, compute_);
    if (place == nullptr) return 0;
    device_.copy(compute_, used_, place, 64);
    float values[16] = {};
    device_.copy_out(compute_, values, used_, 64);
    device_.synchronize(compute_);
    EXPECT_EQ(values[0], values[15]);
    return values[15];
  }
  void run_ends() {
    device_.synchronize(compute_);
    device_.synchronize(ahead_.stream());
  }

  SimDevice device_{{.memory_bytes = 1 << 20}};
  Stream compute_ = device_.make_stream();
  std::byte* used_ = device_.allocate(64, "what is fed");
  FeedsAhead ahead_{device_};
};

TEST_F(FeedsAheadTest, TwoBatchesAreThereAtATime) {
  Tensor16 a(device_, 1, 11), b(device_, 2, 12), c(device_, 3, 13);
  EXPECT_EQ(content(a.view()), 0);
  ahead_.begin(Feeds{{"x", a.view()}});
  run_ends();
  ahead_.begin(Feeds{{"x", b.view()}});
  EXPECT_EQ(content(a.view()), 1) << "while b comes in";
  run_ends();
  ahead_.begin(Feeds{{"x", c.view()}});
  EXPECT_EQ(content(b.view()), 2);
  EXPECT_EQ(content(a.view()), 0) << "c is where it was";
  run_ends();
  EXPECT_EQ(content(c.view()), 3);
  EXPECT_EQ(content(c.view()), 3) << "as often as it is asked for";
}

TEST_F(FeedsAheadTest, AnotherVersionIsAnotherContent) {
  Tensor16 a(device_, 1, 11);
  ahead_.begin(Feeds{{"x", a.view()}});
  run_ends();
  a.fill(5);
  TensorView changed = a.view();
  changed.version = 12;
  EXPECT_EQ(content(changed), 0);
  changed.version = 0;
  EXPECT_EQ(content(changed), 0);
  EXPECT_EQ(content(a.view()), 1);
}

TEST_F(FeedsAheadTest, WhatHasNoVersionIsPassedOver) {
  Tensor16 a(device_, 1, 11), rate(device_, 9, 0);
  ahead_.begin(Feeds{{"learning_rate", rate.view()}, {"x", a.view()}});
  run_ends();
  EXPECT_EQ(content(rate.view()), 0);
  EXPECT_EQ(content(a.view()), 1);
}

TEST_F(FeedsAheadTest, PartsOfATensorAreFoundApart) {
  Tensor16 all(device_, 4, 11);
  TensorView first = all.view(), second = all.view();
  first.shape = second.shape = {2, 4};
  second.data = static_cast<const std::byte*>(second.data) + 32;
  ahead_.begin(Feeds{{"x", first}, {"x", second}});
  run_ends();
  EXPECT_EQ(content(all.view()), 0) << "it did not come as a whole";
  EXPECT_NE(ahead_.find(first, 32, compute_), nullptr);
  EXPECT_NE(ahead_.find(second, 32, compute_), ahead_.find(first, 32, compute_));
}

TEST_F(FeedsAheadTest, GrowsWithTheBatch) {
  Tensor16 a(device_, 1, 11), b(device_, 2, 12);
  ahead_.begin(Feeds{{"x", a.view()}});
  ahead_.begin(Feeds{{"x", a.view()}});
  ahead_.begin(Feeds{{"x", a.view()}, {"y", b.view()}});
  EXPECT_EQ(content(b.view()), 2);
  EXPECT_EQ(content(a.view()), 1);
  run_ends();
}

TEST_F(FeedsAheadTest, ADeviceWithoutMemoryForItIsFedWhenItIsTime) {
  std::byte* const rest = device_.allocate(device_.free_memory() - 4096, "all the rest");  // pinned memory is the host's
  std::byte* const last = device_.allocate(device_.free_memory(), "the last of it");
  Tensor16 a(device_, 1, 11);
  ahead_.begin(Feeds{{"x", a.view()}});
  EXPECT_EQ(content(a.view()), 0);
  device_.release(rest);
  device_.release(last);
}

/// The wait that find() makes is what orders the two streams: without it sim finds the race.
TEST_F(FeedsAheadTest, WithoutItsWaitItIsARace) {
  Tensor16 a(device_, 1, 11);
  const Stream wrong = device_.make_stream();
  ahead_.begin(Feeds{{"x", a.view()}});
  const std::byte* const place = ahead_.find(a.view(), 64, wrong);
  try {
    device_.copy(compute_, used_, place, 64);
    FAIL() << "nothing was found";
  } catch (const InternalError& error) { EXPECT_THAT(error.what(), HasSubstr("nothing orders the two")); }
  run_ends();
}

TEST_F(FeedsAheadTest, ABatchThatIsGatheredTooEarlyIsFound) {
  Tensor16 a(device_, 1, 11);
  ahead_.begin(Feeds{{"x", a.view()}});
  a.fill(2);
  EXPECT_THROW(device_.synchronize(ahead_.stream()), InternalError);
}

}  // namespace
}  // namespace hone
