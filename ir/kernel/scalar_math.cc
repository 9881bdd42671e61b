#include "ir/kernel/scalar_math.h"

#include "base/check.h"

namespace hone::scalar_math {

namespace {

using Unsigned = std::uint64_t;

std::int64_t divide(DType dtype, std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (dtype == DType::kU64) return static_cast<std::int64_t>(static_cast<Unsigned>(a) / static_cast<Unsigned>(b));
  if (b == -1) return static_cast<std::int64_t>(Unsigned{0} - static_cast<Unsigned>(a));  // lowest / -1 wraps
  return a / b;
}

std::int64_t remainder(DType dtype, std::int64_t a, std::int64_t b) {
  if (b == 0 or b == -1) return dtype == DType::kU64 and b == -1 ? (a == -1 ? 0 : a) : 0;
  if (dtype == DType::kU64) return static_cast<std::int64_t>(static_cast<Unsigned>(a) % static_cast<Unsigned>(b));
  return a % b;
}

std::int64_t power(DType dtype, std::int64_t base, std::int64_t exponent) {
  if (exponent < 0 and dtype != DType::kU64) {  // truncated: only 1 and -1 leave something
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  Unsigned result = 1, factor = static_cast<Unsigned>(base);
  for (auto bits = static_cast<Unsigned>(exponent); bits != 0; bits >>= 1, factor *= factor)
    if (bits & 1) result *= factor;
  return static_cast<std::int64_t>(result);
}

std::int64_t shift_left(DType dtype, std::int64_t a, std::int64_t by) {
  const bool outside = static_cast<Unsigned>(by) >= static_cast<Unsigned>(width(dtype));  // a negative count is a huge one
  return outside ? 0 : static_cast<std::int64_t>(static_cast<Unsigned>(a) << by);
}

std::int64_t shift_right(DType dtype, std::int64_t a, std::int64_t by) {
  if (static_cast<Unsigned>(by) >= static_cast<Unsigned>(width(dtype))) return 0;
  return dtype == DType::kU64 ? static_cast<std::int64_t>(static_cast<Unsigned>(a) >> by) : a >> by;
}

double sign_of(double a) { return std::isnan(a) ? a : static_cast<double>((a > 0) - (a < 0)); }

double floor_mod(double a, double b) {
  const double m = std::fmod(a, b);
  return m != 0 and (m < 0) != (b < 0) ? m + b : m;
}

double sigmoid(double a) {
  if (a >= 0) return 1 / (1 + std::exp(-a));
  const double e = std::exp(a);
  return e / (1 + e);
}

}  // namespace

std::int64_t integer_unary(ScalarOp op, DType dtype, std::int64_t a) {
  const auto negated = [a] { return static_cast<std::int64_t>(Unsigned{0} - static_cast<Unsigned>(a)); };
  switch (op) {
    case ScalarOp::kNeg: return wrap(dtype, negated());
    case ScalarOp::kAbs: return less(dtype, a, 0) ? wrap(dtype, negated()) : a;
    case ScalarOp::kSign: return a == 0 ? 0 : less(dtype, a, 0) ? -1 : 1;
    case ScalarOp::kNot: return a == 0;
    case ScalarOp::kBitNot: return wrap(dtype, ~a);
    default: internal_error(__FILE__, __LINE__, "no integer meaning of " + std::string(info(op).name));
  }
}

std::int64_t integer_binary(ScalarOp op, DType dtype, std::int64_t a, std::int64_t b) {
  const auto ua = static_cast<Unsigned>(a), ub = static_cast<Unsigned>(b);
  switch (op) {
    case ScalarOp::kAdd: return wrap(dtype, static_cast<std::int64_t>(ua + ub));
    case ScalarOp::kSub: return wrap(dtype, static_cast<std::int64_t>(ua - ub));
    case ScalarOp::kMul: return wrap(dtype, static_cast<std::int64_t>(ua * ub));
    case ScalarOp::kDiv: return wrap(dtype, divide(dtype, a, b));
    case ScalarOp::kFloorDiv: {
      const std::int64_t r = remainder(dtype, a, b);
      const bool down = r != 0 and dtype != DType::kU64 and (r < 0) != (b < 0);
      return wrap(dtype, divide(dtype, a, b) - static_cast<std::int64_t>(down));
    }
    case ScalarOp::kMod: {
      const std::int64_t r = remainder(dtype, a, b);
      return r != 0 and dtype != DType::kU64 and (r < 0) != (b < 0) ? r + b : r;
    }
    case ScalarOp::kFmod: return remainder(dtype, a, b);
    case ScalarOp::kPow: return wrap(dtype, power(dtype, a, b));
    case ScalarOp::kMax: return less(dtype, a, b) ? b : a;
    case ScalarOp::kMin: return less(dtype, b, a) ? b : a;
    case ScalarOp::kEq: return a == b;
    case ScalarOp::kNe: return a != b;
    case ScalarOp::kLt: return less(dtype, a, b);
    case ScalarOp::kLe: return not less(dtype, b, a);
    case ScalarOp::kGt: return less(dtype, b, a);
    case ScalarOp::kGe: return not less(dtype, a, b);
    case ScalarOp::kAnd:
    case ScalarOp::kBitAnd: return a & b;
    case ScalarOp::kOr:
    case ScalarOp::kBitOr: return a | b;
    case ScalarOp::kXor:
    case ScalarOp::kBitXor: return a ^ b;
    case ScalarOp::kShiftLeft: return wrap(dtype, shift_left(dtype, a, b));
    case ScalarOp::kShiftRight: return shift_right(dtype, a, b);
    default: internal_error(__FILE__, __LINE__, "no integer meaning of " + std::string(info(op).name));
  }
}

double float_unary(ScalarOp op, double a) {
  switch (op) {
    case ScalarOp::kNeg: return -a;
    case ScalarOp::kAbs: return std::fabs(a);
    case ScalarOp::kSign: return sign_of(a);
    case ScalarOp::kExp: return std::exp(a);
    case ScalarOp::kLog: return std::log(a);
    case ScalarOp::kSqrt: return std::sqrt(a);
    case ScalarOp::kTanh: return std::tanh(a);
    case ScalarOp::kSigmoid: return sigmoid(a);
    case ScalarOp::kErf: return std::erf(a);
    case ScalarOp::kSin: return std::sin(a);
    case ScalarOp::kCos: return std::cos(a);
    case ScalarOp::kTan: return std::tan(a);
    case ScalarOp::kAsin: return std::asin(a);
    case ScalarOp::kAcos: return std::acos(a);
    case ScalarOp::kAtan: return std::atan(a);
    case ScalarOp::kSinh: return std::sinh(a);
    case ScalarOp::kCosh: return std::cosh(a);
    case ScalarOp::kAsinh: return std::asinh(a);
    case ScalarOp::kAcosh: return std::acosh(a);
    case ScalarOp::kAtanh: return std::atanh(a);
    case ScalarOp::kLog1p: return std::log1p(a);
    case ScalarOp::kExpm1: return std::expm1(a);
    case ScalarOp::kFloor: return std::floor(a);
    case ScalarOp::kCeil: return std::ceil(a);
    case ScalarOp::kRound: return std::nearbyint(a);  // the rounding mode is never changed: half to even
    case ScalarOp::kTrunc: return std::trunc(a);
    default: internal_error(__FILE__, __LINE__, "no float meaning of " + std::string(info(op).name));
  }
}

double float_binary(ScalarOp op, double a, double b) {
  switch (op) {
    case ScalarOp::kAdd: return a + b;
    case ScalarOp::kSub: return a - b;
    case ScalarOp::kMul: return a * b;
    case ScalarOp::kDiv: return a / b;
    case ScalarOp::kFloorDiv: return std::floor(a / b);
    case ScalarOp::kMod: return floor_mod(a, b);
    case ScalarOp::kFmod: return std::fmod(a, b);
    case ScalarOp::kPow: return std::pow(a, b);
    case ScalarOp::kMax: return std::isnan(a) ? a : a < b or std::isnan(b) ? b : a;
    case ScalarOp::kMin: return std::isnan(a) ? a : b < a or std::isnan(b) ? b : a;
    default: internal_error(__FILE__, __LINE__, "no float meaning of " + std::string(info(op).name));
  }
}

bool float_compare(ScalarOp op, double a, double b) {
  switch (op) {
    case ScalarOp::kEq: return a == b;
    case ScalarOp::kNe: return a != b;
    case ScalarOp::kLt: return a < b;
    case ScalarOp::kLe: return a <= b;
    case ScalarOp::kGt: return a > b;
    case ScalarOp::kGe: return a >= b;
    default: internal_error(__FILE__, __LINE__, "no comparison: " + std::string(info(op).name));
  }
}

}  // namespace hone::scalar_math
