// What the operations of HONE_SCALAR_OPS mean on numbers, for constant folding and for the interpreter: one definition for both.
// Integers of every type travel as std::int64_t holding the value (u64: its bits); `wrap` brings a result back into its type.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "ir/kernel/expr.h"

namespace hone {

/// The type in which a kernel computes with elements of `dtype`: f32 for the storage-only f16 and bf16, else the same.
constexpr DType arithmetic_type(DType dtype) { return dtype == DType::kF16 or dtype == DType::kBF16 ? DType::kF32 : dtype; }

namespace scalar_math {

/// `value` modulo 2^width in the range of the integer type; for bool, value != 0.
constexpr std::int64_t wrap(DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::kI8: return static_cast<std::int8_t>(value);
    case DType::kI16: return static_cast<std::int16_t>(value);
    case DType::kI32: return static_cast<std::int32_t>(value);
    case DType::kU8: return static_cast<std::uint8_t>(value);
    case DType::kU16: return static_cast<std::uint16_t>(value);
    case DType::kU32: return static_cast<std::uint32_t>(value);
    case DType::kBool: return value != 0;
    default: return value;
  }
}

/// Smallest and largest value of an integer type (u64: bits of the largest); bool 0 and 1.
constexpr std::int64_t lowest(DType dtype) {
  switch (dtype) {
    case DType::kI8: return INT8_MIN;
    case DType::kI16: return INT16_MIN;
    case DType::kI32: return INT32_MIN;
    case DType::kI64: return INT64_MIN;
    default: return 0;
  }
}
constexpr std::int64_t highest(DType dtype) {
  switch (dtype) {
    case DType::kI8: return INT8_MAX;
    case DType::kI16: return INT16_MAX;
    case DType::kI32: return INT32_MAX;
    case DType::kI64: return INT64_MAX;
    case DType::kU8: return UINT8_MAX;
    case DType::kU16: return UINT16_MAX;
    case DType::kU32: return UINT32_MAX;
    case DType::kBool: return 1;
    default: return -1;  // u64: all bits
  }
}

/// Truncates and saturates; NaN gives 0. To bool: value != 0 (NaN is true).
inline std::int64_t to_integer(DType to, double value) {
  if (to == DType::kBool) return value != 0;
  if (std::isnan(value)) return 0;
  const double whole = std::trunc(value);
  if (to == DType::kU64) {
    if (whole <= 0) return 0;
    return whole >= 0x1p64 ? -1 : static_cast<std::int64_t>(static_cast<std::uint64_t>(whole));
  }
  if (whole <= static_cast<double>(lowest(to))) return lowest(to);
  if (whole >= static_cast<double>(highest(to))) return highest(to);
  return static_cast<std::int64_t>(whole);
}

inline double to_float(DType from, std::int64_t value) {
  return from == DType::kU64 ? static_cast<double>(static_cast<std::uint64_t>(value)) : static_cast<double>(value);
}

constexpr bool less(DType dtype, std::int64_t a, std::int64_t b) {
  return dtype == DType::kU64 ? static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(b) : a < b;
}

constexpr int width(DType dtype) {
  switch (dtype) {
    case DType::kI8:
    case DType::kU8: return 8;
    case DType::kI16:
    case DType::kU16: return 16;
    case DType::kI32:
    case DType::kU32: return 32;
    default: return 64;
  }
}

/// Each operation on integers of `dtype`, and on bool where the operation is defined for it. Results wrap.
std::int64_t integer_unary(ScalarOp op, DType dtype, std::int64_t a);
std::int64_t integer_binary(ScalarOp op, DType dtype, std::int64_t a, std::int64_t b);

/// On floats, in double. Comparisons and predicates are apart: they give bool.
double float_unary(ScalarOp op, double a);
double float_binary(ScalarOp op, double a, double b);
bool float_compare(ScalarOp op, double a, double b);

}  // namespace scalar_math

/// kEq .. kGe.
constexpr bool is_comparison(ScalarOp op) { return op >= ScalarOp::kEq and op <= ScalarOp::kGe; }

}  // namespace hone
