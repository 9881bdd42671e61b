// The floats that are storage only: one row a type says how its codes stand for numbers, and one pair of functions converts by it. The LLVM emitter builds the
// same conversions from the same rows.
#pragma once

#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace hone {

struct FloatFormat {
  /// What the bit above the exponent is. kUnsigned has no zero and no denormals either: its codes are powers of two.
  enum class Sign : std::uint8_t { kSigned, kSignedWithoutMinusZero, kUnsigned };

  DType dtype;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Sign sign;
  std::uint16_t max;     ///< code of the largest finite number
  std::uint16_t beyond;  ///< code of what is too large when it does not saturate: infinity, NaN, or `max` where there is neither
  std::uint16_t nan;     ///< code that a NaN becomes (with its sign in kSigned formats); what stands for nothing else is read as NaN, too

  constexpr int magnitude_bits() const { return exponent_bits + mantissa_bits; }
  constexpr bool has_infinity() const { return beyond != nan and beyond != max; }
  constexpr bool has_zero() const { return sign != Sign::kUnsigned; }
};

// ONNX's names: FN is without infinity, UZ without -0 (whose code is the NaN). f4e2m1 has no NaN: it becomes -0, as in ml_dtypes.
inline constexpr FloatFormat kFloatFormats[] = {
    {DType::kF16, 5, 10, 15, FloatFormat::Sign::kSigned, 0x7bff, 0x7c00, 0x7e00},
    {DType::kBF16, 8, 7, 127, FloatFormat::Sign::kSigned, 0x7f7f, 0x7f80, 0x7fc0},
    {DType::kF8E4M3FN, 4, 3, 7, FloatFormat::Sign::kSigned, 0x7e, 0x7f, 0x7f},
    {DType::kF8E4M3FNUZ, 4, 3, 8, FloatFormat::Sign::kSignedWithoutMinusZero, 0x7f, 0x80, 0x80},
    {DType::kF8E5M2, 5, 2, 15, FloatFormat::Sign::kSigned, 0x7b, 0x7c, 0x7e},
    {DType::kF8E5M2FNUZ, 5, 2, 16, FloatFormat::Sign::kSignedWithoutMinusZero, 0x7f, 0x80, 0x80},
    {DType::kF8E8M0, 8, 0, 127, FloatFormat::Sign::kUnsigned, 0xfe, 0xff, 0xff},
    {DType::kF4E2M1, 2, 1, 1, FloatFormat::Sign::kSigned, 0x7, 0x7, 0x8},
};

/// The row of a float that is storage only.
const FloatFormat& float_format(DType dtype);

enum class Rounding : std::uint8_t {
  kNearest,  ///< ties to even; where there is no mantissa, away from zero
  kUp,       ///< away from zero
  kDown      ///< towards zero
};

/// How a number becomes one of a storage-only type. Integers keep their low bits, whatever is asked.
struct StorageRounding {
  DType dtype;
  Rounding rounding = Rounding::kNearest;
  /// What is too large, infinity included, becomes the largest number; else infinity, or NaN where there is none. f8e8m0 does the same below its smallest.
  bool saturate = false;

  /// As one number, for where a plain number travels.
  constexpr std::uint32_t packed() const {
    return static_cast<std::uint32_t>(dtype) | static_cast<std::uint32_t>(rounding) << 8 | static_cast<std::uint32_t>(saturate) << 16;
  }
  static constexpr StorageRounding unpacked(std::uint32_t packed) {
    return {static_cast<DType>(packed & 0xff), static_cast<Rounding>(packed >> 8 & 0xff), (packed >> 16 & 1) != 0};
  }
};

/// The number that `code` stands for, exactly. Bits above the format's are ignored.
float decode(const FloatFormat& format, std::uint32_t code);
/// The code of `value`, rounded once. Numbers below 0 are NaN in an unsigned format.
std::uint16_t encode(const FloatFormat& format, double value, Rounding rounding = Rounding::kNearest, bool saturate = false);

/// An element of a float type that is storage only, in memory.
float read_storage(DType dtype, const void* element);
void write_storage(DType dtype, void* element, double value);

}  // namespace hone
