#include "base/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace hone {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(DType, NamesAreDistinctAndRoundTrip) {
  std::set<std::string_view> names;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_TRUE(names.insert(to_string(dtype)).second) << to_string(dtype);
    EXPECT_EQ(dtype_from_name(to_string(dtype)), dtype);
  }
  EXPECT_EQ(dtype_from_name("float"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

// The table's rows must stand in the order of the enumerators.
TEST(DType, FactsFitTheCppType) {
  const auto check = []<typename T>(T, std::string_view name) {
    constexpr DType kDType = kDTypeOf<T>;
    EXPECT_EQ(to_string(kDType), name);
    EXPECT_EQ(size_of(kDType), sizeof(T)) << name;
    EXPECT_EQ(is_float(kDType), std::is_floating_point_v<T>) << name;
    EXPECT_EQ(info(kDType).is_signed, std::is_signed_v<T>) << name;
    EXPECT_EQ(is_integer(kDType), std::is_integral_v<T> and kDType != DType::kBool) << name;
  };
  check(float{}, "f32");
  check(double{}, "f64");
  check(std::int8_t{}, "i8");
  check(std::int16_t{}, "i16");
  check(std::int32_t{}, "i32");
  check(std::int64_t{}, "i64");
  check(std::uint8_t{}, "u8");
  check(std::uint16_t{}, "u16");
  check(std::uint32_t{}, "u32");
  check(std::uint64_t{}, "u64");
  check(bool{}, "bool");
  EXPECT_EQ(size_of(DType::kF16), 2u);
  EXPECT_EQ(size_of(DType::kBF16), 2u);
  EXPECT_TRUE(is_float(DType::kF16) and is_float(DType::kBF16));
}

TEST(Half, KnownValuesBothWays) {
  const struct { float value; std::uint16_t bits; } cases[] = {
      {0.0f, 0x0000}, {-0.0f, 0x8000}, {1.0f, 0x3c00}, {-2.0f, 0xc000}, {65504.0f, 0x7bff}, {0x1p-14f, 0x0400}, {0x1p-24f, 0x0001}, {kInf, 0x7c00}};
  for (const auto& [value, bits] : cases) {
    EXPECT_EQ(float_to_half(value), bits) << value;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(half_to_float(bits)), std::bit_cast<std::uint32_t>(value)) << value;
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(float_to_half(1.0f + 0x1p-11f), 0x3c00);              // halfway, down to even
  EXPECT_EQ(float_to_half(1.0f + 3 * 0x1p-11f), 0x3c02);          // halfway, up to even
  EXPECT_EQ(float_to_half(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);   // above halfway
  EXPECT_EQ(float_to_half(65519.0f), 0x7bff);                     // below halfway to 2^16
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);                     // overflow
  EXPECT_EQ(float_to_half(0x1p-25f), 0x0000);                     // half the smallest subnormal, down to even
}

TEST(Half, EveryValueRoundTrips) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value)))) << bits;
    else ASSERT_EQ(float_to_half(value), half) << bits;
  }
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNan) {
  EXPECT_EQ(float_to_bfloat16(1.0f), 0x3f80);
  EXPECT_EQ(float_to_bfloat16(1.0f + 0x1p-8f), 0x3f80);      // halfway, down to even
  EXPECT_EQ(float_to_bfloat16(1.0f + 3 * 0x1p-8f), 0x3f82);  // halfway, up to even
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(float_to_bfloat16(-kInf), 0xff80);
  // A NaN whose payload lies in the dropped half must not become an infinity.
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(BFloat16, EveryValueRoundTrips) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const float value = bfloat16_to_float(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(value)))) << bits;
    else ASSERT_EQ(float_to_bfloat16(value), bits);
  }
}

}  // namespace
}  // namespace hone
