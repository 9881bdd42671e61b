// The small floats' conversions against a search over all their numbers, and against the hardware's f16.
#include "base/float_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/tensor.h"

namespace hone {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Number {
  double value;
  std::uint16_t code;
};

/// The format's finite numbers that are not negative, ascending.
std::vector<Number> numbers_of(const FloatFormat& format) {
  std::vector<Number> numbers;
  for (std::uint32_t code = 0; code <= format.max; ++code) numbers.push_back({decode(format, code), static_cast<std::uint16_t>(code)});
  return numbers;
}

/// The code that is nearest to `value` among the format's numbers and the one that would come next.
std::uint32_t nearest_magnitude(const FloatFormat& format, const std::vector<Number>& numbers, double value) {
  const auto above = std::lower_bound(numbers.begin(), numbers.end(), value, [](const Number& number, double limit) { return number.value < limit; });
  if (above != numbers.end() and above->value == value) return above->code;
  const double step = numbers.back().value - (numbers.end() - 2)->value;
  const double next = above != numbers.end() ? above->value : format.mantissa_bits == 0 ? 2 * numbers.back().value : numbers.back().value + step;
  const Number low = *(above - 1);
  const double down = value - low.value, up = next - value;
  if (down != up) return down < up ? low.code : low.code + 1U;
  return format.mantissa_bits == 0 or low.code % 2 == 1 ? low.code + 1U : low.code;
}

std::uint32_t expected_code(const FloatFormat& format, const std::vector<Number>& numbers, double value, bool saturate) {
  const bool negative = std::signbit(value);
  const std::uint32_t sign = negative and format.sign != FloatFormat::Sign::kUnsigned ? 1U << format.magnitude_bits() : 0;
  const double magnitude = std::abs(value);
  if (format.sign == FloatFormat::Sign::kUnsigned and value < 0) return format.nan;
  if (magnitude < numbers[0].value) return saturate ? 0 : format.nan;
  std::uint32_t code = format.max + 1U;
  if (magnitude <= 2 * numbers.back().value) code = nearest_magnitude(format, numbers, magnitude);
  if (code > format.max) code = saturate ? format.max : format.beyond;
  if (code == 0 and format.sign == FloatFormat::Sign::kSignedWithoutMinusZero) return 0;
  return code | sign;
}

TEST(FloatFormat, RoundsToTheNearestOfAllNumbers) {
  for (const FloatFormat& format : kFloatFormats) {
    const std::vector<Number> numbers = numbers_of(format);
    std::vector<double> values = {0, kInfinity, 1e30, 1e300, 1e-30, 1e-45, 1e-300};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double here = numbers[i].value;
      const double next = i + 1 < numbers.size() ? numbers[i + 1].value : format.mantissa_bits == 0 ? 2 * here : 2 * here - numbers[i - 1].value;
      const double middle = (here + next) / 2;
      for (const double value : {here, middle, here * 0.75 + next * 0.25}) {
        values.push_back(value);
        values.push_back(std::nextafter(value, 0));  // ties missed by the last bit of a double
        values.push_back(std::nextafter(value, kInfinity));
      }
    }
    for (const double value : values) {
      for (const double x : {value, -value}) {
        for (const bool saturate : {false, true}) {
          ASSERT_EQ(encode(format, x, Rounding::kNearest, saturate), expected_code(format, numbers, x, saturate))
              << to_string(format.dtype) << " of " << std::to_string(x) << " " << x << (saturate ? " saturating" : "");
        }
      }
    }
  }
}

TEST(FloatFormat, EveryNumberRoundTrips) {
  for (const FloatFormat& format : kFloatFormats) {
    for (std::uint32_t code = 0; code < 1U << info(format.dtype).bits; ++code) {
      const float value = decode(format, code);
      if (not std::isnan(value)) ASSERT_EQ(encode(format, value), code) << to_string(format.dtype);
      else ASSERT_EQ(encode(format, value) | 1U << format.magnitude_bits(), format.nan | 1U << format.magnitude_bits()) << to_string(format.dtype) << " " << code;
    }
  }
}

TEST(FloatFormat, AgreesWithTheHardware) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const float half = half_to_float(static_cast<std::uint16_t>(code)), brain = bfloat16_to_float(static_cast<std::uint16_t>(code));
    if (not std::isnan(half)) ASSERT_EQ(std::bit_cast<std::uint32_t>(decode(float_format(DType::kF16), code)), std::bit_cast<std::uint32_t>(half));
    if (not std::isnan(brain)) ASSERT_EQ(std::bit_cast<std::uint32_t>(decode(float_format(DType::kBF16), code)), std::bit_cast<std::uint32_t>(brain));
  }
}

TEST(FloatFormat, KnownNumbers) {
  const struct {
    DType dtype;
    double largest, smallest;
  } cases[] = {{DType::kF8E4M3FN, 448, 0x1p-9},   {DType::kF8E4M3FNUZ, 240, 0x1p-10},   {DType::kF8E5M2, 57344, 0x1p-16},
               {DType::kF8E5M2FNUZ, 57344, 0x1p-17}, {DType::kF8E8M0, 0x1p127, 0x1p-126}, {DType::kF4E2M1, 6, 0.5}};
  for (const auto& [dtype, largest, smallest] : cases) {
    EXPECT_EQ(decode(float_format(dtype), float_format(dtype).max), largest) << to_string(dtype);
    EXPECT_EQ(decode(float_format(dtype), 1), smallest) << to_string(dtype);
  }
  EXPECT_EQ(decode(float_format(DType::kF8E8M0), 0), 0x1p-127F);
  EXPECT_TRUE(std::isinf(decode(float_format(DType::kF8E5M2), 0xfc)));
  EXPECT_TRUE(std::isnan(decode(float_format(DType::kF8E5M2FNUZ), 0x80)));
  EXPECT_EQ(encode(float_format(DType::kF4E2M1), std::nan("")), 0x8);
}

TEST(FloatFormat, PowersOfTwoRoundAsAsked) {
  const FloatFormat& format = float_format(DType::kF8E8M0);
  const struct {
    double value;
    std::uint16_t up, down, nearest;
  } cases[] = {{1, 127, 127, 127}, {1.0001, 128, 127, 127}, {1.5, 128, 127, 128}, {1.9, 128, 127, 128}, {0x1p-127, 0, 0, 0}, {0x1.8p-127, 1, 0, 1}, {0x1p128, 254, 254, 254},
               {0, 0, 0, 0}, {0x1.1p127, 254, 254, 254}};
  for (const auto& c : cases) {
    EXPECT_EQ(encode(format, c.value, Rounding::kUp, true), c.up) << c.value;
    EXPECT_EQ(encode(format, c.value, Rounding::kDown, true), c.down) << c.value;
    EXPECT_EQ(encode(format, c.value, Rounding::kNearest, true), c.nearest) << c.value;
  }
  EXPECT_EQ(encode(format, 0x1.1p127, Rounding::kUp), 255);
  EXPECT_EQ(encode(format, 0, Rounding::kNearest), 255);
  EXPECT_EQ(encode(format, -1, Rounding::kNearest, true), 255);
}

TEST(FloatFormat, TensorsHoldOneElementAByte) {
  const std::vector<float> values = {0.3F, -6.6F, 1000, 7};
  const auto cast = [&](DType dtype) { return Tensor::of<float>({4}, std::span<const float>(values)).cast(dtype); };
  EXPECT_EQ(cast(DType::kF8E4M3FN).at(0), 0.3125);
  EXPECT_TRUE(std::isnan(cast(DType::kF8E4M3FN).at(2)));
  EXPECT_EQ(cast(DType::kF4E2M1).at(2), 6);
  EXPECT_EQ(cast(DType::kI4).int_at(1), -6);
  EXPECT_EQ(cast(DType::kI4).int_at(3), 7);
  EXPECT_EQ(cast(DType::kI2).int_at(3), -1);
  EXPECT_EQ(cast(DType::kU2).int_at(3), 3);
  EXPECT_EQ(cast(DType::kU4).byte_count(), 4U);
  EXPECT_EQ(Tensor::scalar(1 + 0x1p-11 + 0x1p-40).cast(DType::kF16).at(0), 1 + 0x1p-10);  // rounded once
}

TEST(StorageRounding, Packs) {
  const StorageRounding back = StorageRounding::unpacked(StorageRounding{DType::kU2, Rounding::kDown, true}.packed());
  EXPECT_EQ(back.dtype, DType::kU2);
  EXPECT_EQ(back.rounding, Rounding::kDown);
  EXPECT_TRUE(back.saturate);
}

}  // namespace
}  // namespace hone
