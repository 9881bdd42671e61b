#include "base/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/diag.h"

namespace hone {
namespace {

template <typename T>
Tensor tensor(std::vector<std::int64_t> shape, std::vector<T> values) {
  return Tensor::of<T>(std::move(shape), std::span<const T>(values));
}

Code code_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.diags().front().code;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Code::kUsage;
}

TEST(Tensor, HoldsACopyOfItsValues) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const Tensor t = Tensor::of<float>({2, 3}, std::span<const float>(values));
  values[0] = 100;
  EXPECT_EQ(t.dtype(), DType::kF32);
  EXPECT_EQ(t.shape(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(t.element_count(), 6);
  EXPECT_EQ(t.byte_count(), 24u);
  EXPECT_EQ(t.data<float>()[0], 1.0f);
  EXPECT_EQ(t.at(5), 6.0);
}

TEST(Tensor, CopyingSharesTheBytes) {
  const Tensor a = tensor<float>({2}, {1, 2});
  const Tensor b = a;  // NOLINT: the copy is what is tested
  EXPECT_EQ(a.bytes().data(), b.bytes().data());
  EXPECT_EQ(a.bytes().data(), a.reshaped({1, 2}).bytes().data());
}

TEST(Tensor, BytesAreAlignedForVectorLoads) {
  for (const std::int64_t count : {1, 3, 17, 1000})
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(Tensor::zeros(DType::kU8, {count}).bytes().data()) % 64, 0u) << count;
}

TEST(Tensor, ScalarHasRankZeroAndOneElement) {
  const Tensor t = Tensor::scalar<std::int64_t>(-7);
  EXPECT_TRUE(t.shape().empty());
  EXPECT_EQ(t.element_count(), 1);
  EXPECT_EQ(t.int_at(0), -7);
}

TEST(Tensor, EmptyTensorsAreLegal) {
  EXPECT_EQ(Tensor().element_count(), 0);
  const Tensor t = Tensor::zeros(DType::kF64, {3, 0, 2});
  EXPECT_EQ(t.element_count(), 0);
  EXPECT_TRUE(t.bytes().empty());
  EXPECT_EQ(t.reshaped({0}).shape(), std::vector<std::int64_t>{0});
}

TEST(Tensor, ZerosAreZeroAndMakeFillsOnce) {
  const Tensor zeros = Tensor::zeros(DType::kF64, {5});
  for (const std::byte b : zeros.bytes()) EXPECT_EQ(b, std::byte{0});
  const Tensor t = Tensor::make(DType::kI16, {2}, [](std::span<std::byte> bytes) {
    const std::int16_t values[] = {-3, 300};
    ASSERT_EQ(bytes.size(), sizeof(values));
    std::memcpy(bytes.data(), values, sizeof(values));
  });
  EXPECT_EQ(t.int_at(0), -3);
  EXPECT_EQ(t.int_at(1), 300);
}

TEST(Tensor, ReadsEveryElementTypeAsANumber) {
  EXPECT_EQ(tensor<std::int8_t>({1}, {-128}).at(0), -128.0);
  EXPECT_EQ(tensor<std::uint8_t>({1}, {255}).at(0), 255.0);
  EXPECT_EQ(tensor<std::uint16_t>({1}, {65535}).at(0), 65535.0);
  EXPECT_EQ(tensor<std::int32_t>({1}, {-5}).at(0), -5.0);
  EXPECT_EQ(tensor<std::uint32_t>({1}, {4294967295u}).at(0), 4294967295.0);
  EXPECT_EQ(tensor<double>({1}, {0.1}).at(0), 0.1);
  EXPECT_EQ(Tensor::scalar<bool>(true).at(0), 1.0);
  EXPECT_EQ(Tensor::scalar<float>(1.5f).cast(DType::kF16).at(0), 1.5);
  EXPECT_EQ(Tensor::scalar<float>(-1.5f).cast(DType::kBF16).at(0), -1.5);
}

TEST(Tensor, IntegersAreExactBeyondDoublePrecision) {
  constexpr std::int64_t kBig = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(Tensor::scalar<std::int64_t>(kBig).int_at(0), kBig);
  EXPECT_EQ(Tensor::scalar<std::int64_t>(kBig).cast(DType::kU64).int_at(0), kBig);
}

TEST(Tensor, CastConvertsAsCDoes) {
  const Tensor t = tensor<float>({4}, {-1.75f, 0.0f, 2.9f, 100.0f});
  const Tensor i = t.cast(DType::kI32);
  EXPECT_EQ(i.shape(), t.shape());
  EXPECT_EQ((std::vector<std::int32_t>(i.data<std::int32_t>().begin(), i.data<std::int32_t>().end())), (std::vector<std::int32_t>{-1, 0, 2, 100}));
  const Tensor b = t.cast(DType::kBool);
  EXPECT_EQ(b.int_at(0), 1);
  EXPECT_EQ(b.int_at(1), 0);
  EXPECT_EQ(tensor<std::int32_t>({1}, {300}).cast(DType::kU8).int_at(0), 44);
  EXPECT_EQ(t.cast(DType::kF32).bytes().data(), t.bytes().data());  // nothing to do, nothing copied
  EXPECT_TRUE(std::isnan(Tensor::scalar<float>(std::nanf("")).cast(DType::kF16).at(0)));
}

TEST(Tensor, WrongUseIsTheCallers) {
  const Tensor t = tensor<float>({2}, {1, 2});
  EXPECT_EQ(code_of([&] { t.data<double>(); }), Code::kUsage);
  EXPECT_EQ(code_of([&] { t.at(2); }), Code::kUsage);
  EXPECT_EQ(code_of([&] { t.at(-1); }), Code::kUsage);
  EXPECT_EQ(code_of([&] { t.int_at(0); }), Code::kUsage);  // not an integer tensor
  EXPECT_EQ(code_of([&] { t.reshaped({3}); }), Code::kUsage);
  EXPECT_EQ(code_of([] { tensor<float>({3}, {1, 2}); }), Code::kUsage);
}

TEST(Tensor, ShapesOutOfBoundsAreRefusedBeforeMemoryIsAskedFor) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(checked_element_count(std::vector<std::int64_t>{}), 1);
  EXPECT_EQ(checked_element_count(std::vector<std::int64_t>{1 << 20, 1 << 20}), std::int64_t{1} << 40);
  EXPECT_EQ(code_of([] { checked_element_count(std::vector<std::int64_t>{1 << 20, 1 << 20, 2}); }), Code::kTooLarge);
  EXPECT_EQ(code_of([] { checked_element_count(std::vector<std::int64_t>{-1}); }), Code::kTooLarge);
  EXPECT_EQ(code_of([] { checked_element_count(std::vector<std::int64_t>{kMax, kMax}); }), Code::kTooLarge);
  EXPECT_EQ(code_of([] { Tensor::zeros(DType::kF32, {kMax}); }), Code::kTooLarge);
}

}  // namespace
}  // namespace hone
