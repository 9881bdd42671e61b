// Weights in bf16 and in int8 by channel, against what NumPy makes of the same numbers.
#include "base/kept_weight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hone::test {
namespace {

Tensor floats(std::vector<std::int64_t> shape, const std::vector<float>& values) { return Tensor::of<float>(std::move(shape), std::span<const float>(values)); }

// w = uniform(-2, 2, (3, 4)) with zeros put in; s = abs(w).max(other axes) / float32(127); q = rint(w / s)
const std::vector<float> kWeight = {-1.6574033498764038F, -1.052757978439331F, 0, 0.3286481499671936F, -1.6234854459762573F, -0.26749223470687866F,
                                    0,                    0,                   0.938308596611023F, -1.5453119277954102F, 0, 0.06696072965860367F};

void expect_kept(std::size_t axis, const std::vector<float>& scales, const std::vector<std::int8_t>& steps) {
  const KeptWeight kept = keep_as(floats({3, 4}, kWeight), DType::kI8, axis);
  ASSERT_EQ(kept.scales.element_count(), static_cast<std::int64_t>(scales.size()));
  for (std::size_t i = 0; i < scales.size(); ++i) EXPECT_EQ(kept.scales.data<float>()[i], scales[i]);
  for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(kept.stored.data<std::int8_t>()[i], steps[i]) << i;
  const Tensor again = widened(kept, axis, DType::kF32);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const float scale = scales[axis == 0 ? i / 4 : i % 4];
    EXPECT_EQ(again.data<float>()[i], static_cast<float>(steps[i]) * scale);
    EXPECT_LE(std::abs(again.data<float>()[i] - kWeight[i]), scale / 2);
  }
}

TEST(KeptWeight, Int8IsWhatNumPyGives) {
  expect_kept(0, {0.013050420209765434F, 0.012783350422978401F, 0.012167810462415218F}, {-127, -81, 0, 25, -127, -21, 0, 0, 77, -127, 0, 6});
  expect_kept(1, {0.013050420209765434F, 0.012167810462415218F, 0, 0.002587780822068453F}, {-127, -87, 0, 127, -124, -22, 0, 0, 72, -127, 0, 26});
}

TEST(KeptWeight, ChannelsMayLieInTheMiddle) {
  const KeptWeight kept = keep_as(floats({2, 2, 2}, {127, 1, 2, 254, -3, 0, 4, -6}), DType::kI8, 1);
  EXPECT_EQ(std::vector(kept.scales.data<float>().begin(), kept.scales.data<float>().end()), (std::vector<float>{1, 2}));
  EXPECT_EQ(kept.stored.int_at(3), 127);
  EXPECT_EQ(kept.stored.int_at(4), -3);
  EXPECT_EQ(kept.stored.int_at(7), -3);
}

TEST(KeptWeight, WhatCannotBeScaledIsSeen) {
  const float infinity = std::numeric_limits<float>::infinity(), least = std::numeric_limits<float>::denorm_min();
  const KeptWeight kept = keep_as(floats({3, 1}, {infinity, NAN, least}), DType::kI8, 0);
  EXPECT_FALSE(std::isfinite(kept.scales.at(0)));
  EXPECT_FALSE(std::isfinite(kept.scales.at(1)));
  EXPECT_EQ(widened(kept, 0, DType::kF32).at(2), 0) << "less than a 127th of it is no number";
}

TEST(KeptWeight, Bf16IsRounded) {
  const KeptWeight kept = keep_as(floats({1, 2}, {1.0F + 0x1p-9F, 3}), DType::kBF16, 0);
  EXPECT_EQ(widened(kept, 0, DType::kF32).at(0), 1);
  EXPECT_EQ(widened(kept, 0, DType::kF32).at(1), 3);
  EXPECT_EQ(kept.stored.byte_count(), 4U);
}

}  // namespace
}  // namespace hone::test
