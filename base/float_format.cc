#include "base/float_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/check.h"

namespace hone {

namespace {

double rounded(double value, Rounding rounding) {
  const double low = std::floor(value), rest = value - low;
  switch (rounding) {
    case Rounding::kUp: return std::ceil(value);
    case Rounding::kDown: return low;
    case Rounding::kNearest: break;
  }
  const bool odd = std::fmod(low, 2) != 0;
  return rest > 0.5 or (rest == 0.5 and odd) ? low + 1 : low;
}

/// The code of a positive number below infinity, which may turn out to be beyond the largest.
std::uint32_t magnitude_code(const FloatFormat& format, double value, Rounding rounding) {
  const int lowest = format.has_zero() ? 1 - format.bias : -format.bias;  // exponent of the smallest number that is no denormal
  const int exponent = value == 0 ? lowest : std::max(std::ilogb(value), lowest);
  const double units = rounded(std::ldexp(value, format.mantissa_bits - exponent), rounding);  // the leading 1 of the mantissa is in it
  return static_cast<std::uint32_t>((exponent - lowest) << format.mantissa_bits) + static_cast<std::uint32_t>(units) - (format.has_zero() ? 0 : 1);
}

}  // namespace

const FloatFormat& float_format(DType dtype) {
  const auto* const found = std::find_if(std::begin(kFloatFormats), std::end(kFloatFormats), [&](const FloatFormat& row) { return row.dtype == dtype; });
  HONE_CHECK(found != std::end(kFloatFormats), "a type that is no float kept for storage only");
  return *found;
}

float decode(const FloatFormat& format, std::uint32_t code) {
  const std::uint32_t sign_bit = 1U << format.magnitude_bits(), magnitude = code & (sign_bit - 1);
  const bool negative = format.sign != FloatFormat::Sign::kUnsigned and (code & sign_bit) != 0;
  const float sign = negative ? -1.0F : 1.0F;
  const bool is_minus_zero = negative and magnitude == 0;
  if (magnitude > format.max or (is_minus_zero and format.sign == FloatFormat::Sign::kSignedWithoutMinusZero)) {
    const bool infinite = format.has_infinity() and magnitude == format.beyond;
    return std::copysign(infinite ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN(), sign);
  }
  const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const auto mantissa = static_cast<float>(magnitude & ((1U << format.mantissa_bits) - 1));
  const auto leading = static_cast<float>(1 << format.mantissa_bits);
  if (format.has_zero() and exponent == 0) return sign * std::ldexp(mantissa, 1 - format.bias - format.mantissa_bits);
  return sign * std::ldexp(leading + mantissa, exponent - format.bias - format.mantissa_bits);
}

std::uint16_t encode(const FloatFormat& format, double value, Rounding rounding, bool saturate) {
  const bool negative = std::signbit(value), is_unsigned = format.sign == FloatFormat::Sign::kUnsigned;
  const auto sign = static_cast<std::uint32_t>(negative and not is_unsigned) << format.magnitude_bits();
  const auto signed_code = [&](std::uint32_t magnitude) {
    const bool bare = magnitude == 0 and format.sign == FloatFormat::Sign::kSignedWithoutMinusZero;
    return static_cast<std::uint16_t>(bare ? 0 : magnitude | sign);
  };
  if (std::isnan(value) or (is_unsigned and value < 0)) return signed_code(format.nan);
  const double magnitude = std::abs(value);
  const std::uint16_t too_large = saturate ? format.max : format.beyond;
  if (std::isinf(magnitude) or std::ilogb(magnitude) > 128) return signed_code(too_large);
  if (not format.has_zero() and magnitude < std::ldexp(1.0, -format.bias)) return saturate ? 0 : format.nan;
  const std::uint32_t code = magnitude_code(format, magnitude, rounding);
  return signed_code(code > format.max ? too_large : code);
}

float read_storage(DType dtype, const void* element) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, element, size_of(dtype));
  if (dtype == DType::kF16) return half_to_float(bits);
  return dtype == DType::kBF16 ? bfloat16_to_float(bits) : decode(float_format(dtype), bits);
}

void write_storage(DType dtype, void* element, double value) {
  const auto narrow = static_cast<float>(value);
  const bool is_f32 = static_cast<double>(narrow) == value or std::isnan(value);  // then two of the types have faster ways
  std::uint16_t bits = 0;
  if (is_f32 and dtype == DType::kF16) bits = float_to_half(narrow);
  else if (is_f32 and dtype == DType::kBF16) bits = float_to_bfloat16(narrow);
  else bits = encode(float_format(dtype), value);
  std::memcpy(element, &bits, size_of(dtype));
}

}  // namespace hone
