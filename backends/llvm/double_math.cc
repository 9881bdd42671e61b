#include "backends/llvm/double_math.h"

#include <llvm/IR/Intrinsics.h>

#include <cmath>
#include <limits>
#include <utility>

#include "backends/llvm/storage.h"

namespace hone {

namespace {

// ln 2 in two parts: the first has 33 bits, so that its product with an exponent is exact.
constexpr double kLog2E = 0x1.71547652b82fep0, kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;

/// What formulas with results in two parts, the second what rounding took from the first, are written with.
struct Pairs {
  using Value = llvm::Value*;
  Pairs(llvm::IRBuilder<>& ir, Value like) : ir(ir), type(like->getType()), integer(shaped_like(like, ir.getInt64Ty())) {}

  llvm::IRBuilder<>& ir;
  llvm::Type *type, *integer;  // scalars, or vectors of them

  Value number(double value) const { return llvm::ConstantFP::get(type, value); }
  Value whole(std::int64_t value) const { return llvm::ConstantInt::get(integer, static_cast<std::uint64_t>(value), true); }
  Value add(Value a, Value b) const { return ir.CreateFAdd(a, b); }
  Value sub(Value a, Value b) const { return ir.CreateFSub(a, b); }
  Value mul(Value a, Value b) const { return ir.CreateFMul(a, b); }
  Value fma(Value a, Value b, Value c) const { return ir.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {a, b, c}); }
  Value negative(Value a) const { return ir.CreateFNeg(a); }
  /// a b, and what is missing from it.
  std::pair<Value, Value> product(Value a, Value b) const {
    Value high = mul(a, b);
    return {high, fma(a, b, negative(high))};
  }
  /// a + b, and what is missing from it, where |a| is not below |b|. (T. J. Dekker, "A floating-point technique for extending the available precision", 1971)
  std::pair<Value, Value> sum(Value a, Value b) const {
    Value high = add(a, b);
    return {high, sub(b, sub(high, a))};
  }
};

/// A Taylor polynomial of exp with so many terms is off by 4e-18 on [-ln 2 / 2, ln 2 / 2].
constexpr int kTerms = 14;

/// e^(product + rest), where `rest` is small beside it.
llvm::Value* exponential(llvm::IRBuilder<>& ir, llvm::Value* product, llvm::Value* rest) {
  const Pairs p(ir, product);

  // bounded where the result is 0 or infinite anyway
  llvm::Value *too_low = ir.CreateFCmpOLT(product, p.number(-746)), *too_high = ir.CreateFCmpOGT(product, p.number(710));
  rest = ir.CreateSelect(ir.CreateOr(too_low, too_high), p.number(0), rest);
  product = ir.CreateSelect(too_low, p.number(-746), ir.CreateSelect(too_high, p.number(710), product));

  // ... = n ln 2 + r with |r| <= ln 2 / 2
  llvm::Value* n = ir.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, ir.CreateFMul(product, p.number(kLog2E)));
  llvm::Value* r = ir.CreateFAdd(p.fma(n, p.number(-kLn2Low), p.fma(n, p.number(-kLn2High), product)), rest);
  double factorial = 1;
  for (int k = 2; k < kTerms; ++k) factorial *= k;
  llvm::Value* series = p.number(1 / factorial);
  for (int k = kTerms - 1; k > 2; --k) series = p.fma(series, r, p.number(1 / (factorial /= k)));
  llvm::Value* y = ir.CreateFAdd(p.fma(ir.CreateFMul(r, r), series, r), p.number(1));

  // 2^n in two factors, for results that are denormal or just below overflow
  llvm::Value* power = ir.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {p.integer, p.type}, {n});
  const auto power_of_two = [&](llvm::Value* exponent) { return ir.CreateBitCast(ir.CreateShl(ir.CreateAdd(exponent, p.whole(1023)), 52), p.type); };
  llvm::Value* half = ir.CreateAShr(power, 1);
  return ir.CreateFMul(ir.CreateFMul(y, power_of_two(half)), power_of_two(ir.CreateSub(power, half)));
}

/// e^(x (log + log_low)).
llvm::Value* power_by_log(llvm::IRBuilder<>& ir, llvm::Value* x, llvm::Value* log, llvm::Value* log_low) {
  const Pairs p(ir, x);
  const auto [product, rest] = p.product(x, log);
  return exponential(ir, product, p.fma(x, log_low, rest));
}

/// log x of x >= 0 in two parts, off by 2^-64 of it: x = 2^e y with y in [sqrt(1/2), sqrt 2); log y = 2 atanh s = 2 s (1 + s^2/3 + s^4/5 ...) with s = (y - 1) / (y + 1), |s| < 0.172.
std::pair<llvm::Value*, llvm::Value*> logarithm(llvm::IRBuilder<>& ir, llvm::Value* x) {
  const Pairs p(ir, x);
  llvm::Value *denormal = ir.CreateFCmpOLT(x, p.number(0x1p-1022)), *scaled = ir.CreateSelect(denormal, p.mul(x, p.number(0x1p54)), x);
  llvm::Value *bits = ir.CreateBitCast(scaled, p.integer), *exponent = ir.CreateAShr(ir.CreateSub(bits, p.whole(0x3fe6a09e667f3bcd)), 52);  // less the bits of sqrt(1/2)
  llvm::Value* y = ir.CreateBitCast(ir.CreateSub(bits, ir.CreateShl(exponent, 52)), p.type);
  llvm::Value* e = p.add(ir.CreateSIToFP(exponent, p.type), ir.CreateSelect(denormal, p.number(-54), p.number(0)));

  llvm::Value *above = p.sub(y, p.number(1)), *divisor = p.add(y, p.number(1)), *divisor_low = p.sub(y, p.sub(divisor, p.number(1)));
  llvm::Value* s = ir.CreateFDiv(above, divisor);
  llvm::Value* s_low = ir.CreateFDiv(p.fma(p.negative(s), divisor_low, p.fma(p.negative(s), divisor, above)), divisor);
  auto [square, square_low] = p.product(s, s);
  square_low = p.fma(p.add(s, s), s_low, square_low);

  constexpr double kThird = 0x1.5555555555555p-2, kThirdLow = 0x1.5555555555555p-56;
  constexpr int kBehindThird = 12;  // terms
  llvm::Value* series = p.number(1.0 / (2 * kBehindThird + 3));
  for (int k = kBehindThird - 1; k > 0; --k) series = p.fma(series, square, p.number(1.0 / (2 * k + 3)));
  auto [third, third_low] = p.product(square, p.number(kThird));
  third_low = p.add(third_low, p.fma(square, p.number(kThirdLow), p.mul(square_low, p.number(kThird))));
  const auto [more, more_low] = p.sum(third, p.fma(p.mul(square, square), series, third_low));
  auto [beyond, beyond_low] = p.product(s, more);
  beyond_low = p.add(beyond_low, p.fma(s, more_low, p.mul(s_low, more)));
  const auto [half, half_low] = p.sum(s, beyond);
  llvm::Value *log = p.add(half, half), *log_low = p.mul(p.number(2), p.add(half_low, p.add(beyond_low, s_low)));

  const auto [whole_log, whole_low] = p.sum(p.mul(e, p.number(kLn2High)), log);
  const auto [high, low] = p.sum(whole_log, p.add(whole_low, p.fma(e, p.number(kLn2Low), log_low)));
  const double infinity = std::numeric_limits<double>::infinity();
  llvm::Value *is_zero = ir.CreateFCmpOEQ(x, p.number(0)), *is_infinite = ir.CreateFCmpOEQ(x, p.number(infinity));
  return {ir.CreateSelect(is_zero, p.number(-infinity), ir.CreateSelect(is_infinite, x, high)), ir.CreateSelect(ir.CreateOr(is_zero, is_infinite), p.number(0), low)};
}

}  // namespace

llvm::Value* emit_double_exp(llvm::IRBuilder<>& ir, llvm::Value* x) {
  const llvm::IRBuilder<>::FastMathFlagGuard guard(ir);
  ir.clearFastMathFlags();
  return exponential(ir, x, llvm::ConstantFP::get(x->getType(), 0.0));
}

llvm::Value* emit_power_of_constant(llvm::IRBuilder<>& ir, double base, llvm::Value* x) {
  const llvm::IRBuilder<>::FastMathFlagGuard guard(ir);
  ir.clearFastMathFlags();  // the formula relies on its roundings
  const Pairs p(ir, x);
  if (base == 1) return p.number(1);
  const long double log = std::log(static_cast<long double>(base));
  const auto high = static_cast<double>(log);
  return power_by_log(ir, x, p.number(high), p.number(static_cast<double>(log - high)));
}

/// |base|^x = exp(x log |base|), with the sign of an odd power of a negative base, and C's special cases.
llvm::Value* emit_double_power(llvm::IRBuilder<>& ir, llvm::Value* base, llvm::Value* x) {
  const llvm::IRBuilder<>::FastMathFlagGuard guard(ir);
  ir.clearFastMathFlags();  // the formula relies on its roundings
  const Pairs p(ir, x);
  const double infinity = std::numeric_limits<double>::infinity();
  const auto rounded = [&](llvm::Value* value) { return ir.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, value); };
  llvm::Value* magnitude = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, base);
  const auto [log, log_low] = logarithm(ir, magnitude);
  llvm::Value* power = power_by_log(ir, x, log, log_low);
  power = ir.CreateSelect(ir.CreateFCmpOEQ(magnitude, p.number(1)), p.number(1), power);
  llvm::Value *half = p.mul(x, p.number(0.5)), *is_integer = ir.CreateFCmpOEQ(rounded(x), x), *is_odd = ir.CreateAnd(is_integer, ir.CreateFCmpUNE(rounded(half), half));
  llvm::Value* is_negative = ir.CreateICmpSLT(ir.CreateBitCast(base, p.integer), p.whole(0));
  llvm::Value* result = ir.CreateSelect(ir.CreateAnd(is_negative, is_odd), p.negative(power), power);
  llvm::Value* has_no_root = ir.CreateAnd(ir.CreateAnd(ir.CreateFCmpOLT(base, p.number(0)), ir.CreateFCmpOGT(base, p.number(-infinity))), ir.CreateNot(is_integer));
  result = ir.CreateSelect(has_no_root, p.number(std::numeric_limits<double>::quiet_NaN()), result);
  result = ir.CreateSelect(ir.CreateFCmpUNO(base, x), p.add(base, x), result);
  return ir.CreateSelect(ir.CreateOr(ir.CreateFCmpOEQ(base, p.number(1)), ir.CreateFCmpOEQ(x, p.number(0))), p.number(1), result);
}

}  // namespace hone
