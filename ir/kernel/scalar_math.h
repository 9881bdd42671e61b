// What the operations of HONE_SCALAR_OPS mean on numbers, for constant folding and for the interpreter: one definition for both.
// Integers of every type travel as std::int64_t holding the value (u64: its bits); `wrap` brings a result back into its type.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "ir/kernel/expr.h"

namespace hone {

/// The type in which a kernel computes with elements of `dtype`: f32 or i32 for types that are storage only, else the same.
constexpr DType arithmetic_type(DType dtype) { return info(dtype).arithmetic; }

namespace scalar_math {

/// `value` modulo 2^width in the range of the integer type; for bool, value != 0.
constexpr std::int64_t wrap(DType dtype, std::int64_t value) {
  if (dtype == DType::kBool) return value != 0;
  const int unused = 64 - info(dtype).bits;
  const std::uint64_t raised = static_cast<std::uint64_t>(value) << unused;
  return info(dtype).is_signed ? static_cast<std::int64_t>(raised) >> unused : static_cast<std::int64_t>(raised >> unused);
}

/// Smallest and largest value of an integer type (u64: bits of the largest); bool 0 and 1.
constexpr std::int64_t lowest(DType dtype) { return info(dtype).is_signed ? wrap(dtype, std::int64_t{1} << (info(dtype).bits - 1)) : 0; }
constexpr std::int64_t highest(DType dtype) { return wrap(dtype, ~lowest(dtype)); }

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

constexpr int width(DType dtype) { return info(dtype).bits; }

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
