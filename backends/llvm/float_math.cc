// The polynomials are minimax fits by fit_polynomials.py beside this file, rounded to float; each comment names function, interval and error.
#include "backends/llvm/float_math.h"

#include <llvm/IR/Intrinsics.h>

#include <initializer_list>
#include <limits>

#include "backends/llvm/storage.h"

namespace hone {

namespace {

/// float and i32 arithmetic on values shaped like `x` (scalars or vectors) in which a formula reads as one. No fast-math flags: these formulas rely on their
/// roundings.
class FloatMath {
 public:
  FloatMath(llvm::IRBuilder<>& ir, llvm::Value* x) : ir(ir), float_(x->getType()), integer_(shaped_like(x, ir.getInt32Ty())), guard_(ir) {
    ir.clearFastMathFlags();
  }

  using Value = llvm::Value*;
  Value number(float value) { return llvm::ConstantFP::get(float_, value); }
  Value integer(std::uint32_t value) { return llvm::ConstantInt::get(integer_, value); }
  Value to_float(Value integer) { return ir.CreateSIToFP(integer, float_); }
  /// a * b + c, fused where the target can.
  Value multiply_add(Value a, Value b, Value c) { return ir.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, c}); }
  Value abs(Value x) { return ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value with_sign_of(Value x, Value sign) { return ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign); }
  Value bits(Value x) { return ir.CreateBitCast(x, integer_); }
  Value from_bits(Value x) { return ir.CreateBitCast(x, float_); }
  /// NaN stays NaN.
  Value at_most(Value x, float limit) { return ir.CreateSelect(ir.CreateFCmpOGT(x, number(limit)), number(limit), x); }
  Value at_least(Value x, float limit) { return ir.CreateSelect(ir.CreateFCmpOLT(x, number(limit)), number(limit), x); }
  /// coefficients[0] + x * (coefficients[1] + x * (...))
  Value polynomial(Value x, std::initializer_list<float> coefficients) {
    const float* c = coefficients.end();
    Value result = number(*--c);
    while (c != coefficients.begin()) result = multiply_add(result, x, number(*--c));
    return result;
  }

  llvm::IRBuilder<>& ir;

 private:
  llvm::Type *float_, *integer_;
  llvm::IRBuilder<>::FastMathFlagGuard guard_;
};

/// 2^n for integers n in [-126, 127].
llvm::Value* power_of_two(FloatMath& m, llvm::Value* n) { return m.from_bits(m.ir.CreateShl(m.ir.CreateAdd(n, m.integer(127)), 23)); }

// ln 2 in two parts: the first has 10 bits, so that its product with an exponent is exact.
constexpr float kLn2High = 0x1.63p-1F, kLn2Low = -0x1.bd0106p-13F;

/// exp x = 2^n y.
struct Scaled {
  llvm::Value* y;
  llvm::Value* shifted;  ///< n in its low bits
};

constexpr float kShift = 0x1.8p23F;  // adding it rounds to an integer, which then stands in the low bits

// x = n ln 2 + r with |r| <= ln 2 / 2; y = exp r.
Scaled scaled_exp(FloatMath& m, llvm::Value* x) {
  llvm::Value* shifted = m.multiply_add(x, m.number(0x1.715476p0F), m.number(kShift));
  llvm::Value* n = m.ir.CreateFSub(shifted, m.number(kShift));
  llvm::Value* r = m.multiply_add(n, m.number(-kLn2High), x);
  r = m.multiply_add(n, m.number(-kLn2Low), r);
  // (exp r - 1 - r) / r^2 on 1.01 [-ln2/2, ln2/2]: relative error of exp 3.3e-9
  llvm::Value* p = m.polynomial(r, {0x1.fffffcp-2F, 0x1.55548ap-3F, 0x1.555916p-5F, 0x1.123fc6p-7F, 0x1.6a1a78p-10F});
  return {m.ir.CreateFAdd(m.multiply_add(m.ir.CreateFMul(r, r), p, r), m.number(1)), m.bits(shifted)};
}

// 2^n in two factors, for results that are denormal or just below overflow.
llvm::Value* exp(FloatMath& m, llvm::Value* x) {
  const auto [y, shifted] = scaled_exp(m, m.at_most(m.at_least(x, -104.0F), 89.0F));
  llvm::Value* power = m.ir.CreateSub(shifted, m.bits(m.number(kShift)));
  llvm::Value* half = m.ir.CreateAShr(power, 1);
  llvm::Value* scaled = m.ir.CreateFMul(y, power_of_two(m, half));
  return m.ir.CreateFMul(scaled, power_of_two(m, m.ir.CreateSub(power, half)));
}

// The same for |x| <= 86, where one factor will do: the shift drops all bits of `shifted` but those of n.
llvm::Value* exp_within(FloatMath& m, llvm::Value* x) {
  const auto [y, shifted] = scaled_exp(m, x);
  return m.ir.CreateFMul(y, m.from_bits(m.ir.CreateAdd(m.ir.CreateShl(shifted, 23), m.bits(m.number(1)))));
}

// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt 2); log x = e ln 2 + f - f^2 / 2 + f^3 P(f).
llvm::Value* log(FloatMath& m, llvm::Value* x) {
  llvm::IRBuilder<>& ir = m.ir;
  llvm::Value* denormal = ir.CreateFCmpOLT(x, m.number(0x1p-126F));
  llvm::Value* scaled = ir.CreateSelect(denormal, ir.CreateFMul(x, m.number(0x1p23F)), x);
  llvm::Value* above = ir.CreateSub(m.bits(scaled), m.integer(0x3f3504f3));  // the bits of sqrt(1/2)
  llvm::Value* exponent = ir.CreateAShr(above, 23);
  llvm::Value* f = ir.CreateFSub(m.from_bits(ir.CreateSub(m.bits(scaled), ir.CreateShl(exponent, 23))), m.number(1));
  llvm::Value* e = ir.CreateFAdd(m.to_float(exponent), ir.CreateSelect(denormal, m.number(-23), m.number(0)));
  // (log(1+f) - f + f^2/2) / f^3 on [sqrt(1/2) - 1, sqrt 2 - 1]: relative error of log(1+f) 5.8e-9
  llvm::Value* p =
      m.polynomial(f, {0x1.555554p-2F, -0x1.000226p-2F, 0x1.99a008p-3F, -0x1.547246p-3F, 0x1.22da20p-3F, -0x1.0d8540p-3F, 0x1.055b5ap-3F, -0x1.38b564p-4F});
  llvm::Value* square = ir.CreateFMul(f, f);
  llvm::Value* r = ir.CreateFMul(ir.CreateFMul(square, f), p);
  r = m.multiply_add(e, m.number(kLn2Low), r);
  r = m.multiply_add(square, m.number(-0.5F), r);
  r = m.multiply_add(e, m.number(kLn2High), ir.CreateFAdd(r, f));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  r = ir.CreateSelect(ir.CreateFCmpOEQ(x, m.number(kInfinity)), x, r);
  r = ir.CreateSelect(ir.CreateFCmpOEQ(x, m.number(0)), m.number(-kInfinity), r);
  return ir.CreateSelect(ir.CreateFCmpULT(x, m.number(0)), m.number(std::numeric_limits<float>::quiet_NaN()), r);
}

llvm::Value* tanh(FloatMath& m, llvm::Value* x) {
  llvm::Value* a = m.abs(x);
  llvm::Value* square = m.ir.CreateFMul(x, x);
  // (tanh(x) / x - 1) / x^2 in x^2, |x| <= 0.625: relative error of tanh 4.4e-9
  llvm::Value* p = m.polynomial(square, {-0x1.555532p-2F, 0x1.110726p-3F, -0x1.b83c5ap-5F, 0x1.522698p-6F, -0x1.75e1c2p-8F});
  llvm::Value* near_zero = m.multiply_add(m.ir.CreateFMul(x, square), p, x);
  // |tanh x| = 1 - 2 / (exp(2 |x|) + 1), which is 1 from 10 on
  llvm::Value* bounded = m.at_most(a, 10.0F);
  llvm::Value* e = exp_within(m, m.ir.CreateFAdd(bounded, bounded));
  llvm::Value* far = m.ir.CreateFSub(m.number(1), m.ir.CreateFDiv(m.number(2), m.ir.CreateFAdd(e, m.number(1))));
  return m.ir.CreateSelect(m.ir.CreateFCmpOLT(a, m.number(0.625F)), near_zero, m.with_sign_of(far, x));
}

// With z = exp(-|x|), which cannot overflow: 1 / (1 + z) or z / (1 + z).
llvm::Value* sigmoid(FloatMath& m, llvm::Value* x) {
  llvm::Value* z = exp(m, m.ir.CreateFNeg(m.abs(x)));
  llvm::Value* numerator = m.ir.CreateSelect(m.ir.CreateFCmpOGE(x, m.number(0)), m.number(1), z);
  return m.ir.CreateFDiv(numerator, m.ir.CreateFAdd(z, m.number(1)));
}

llvm::Value* erf(FloatMath& m, llvm::Value* x) {
  llvm::Value* a = m.abs(x);
  llvm::Value* square = m.ir.CreateFMul(x, x);
  // erf(x) / x - 1 in x^2, |x| <= 1: relative error of erf 1.2e-9
  llvm::Value* p = m.polynomial(square, {0x1.06eba8p-3F, -0x1.81273ep-2F, 0x1.ce2cf8p-4F, -0x1.b7f90ep-6F, 0x1.5405b2p-8F, -0x1.a3f700p-11F, 0x1.496a2ep-14F});
  llvm::Value* near_zero = m.multiply_add(x, p, x);
  // -log(erfc(x)) on [1, 4.05]: absolute error of erf 1.0e-9
  llvm::Value* q =
      m.polynomial(m.at_most(a, 4.0F), {0x1.72ec90p-12F, 0x1.2085b0p0F, 0x1.46c58ap-1F, 0x1.a60a60p-4F, -0x1.6541dep-6F, 0x1.814c50p-9F, -0x1.852c64p-13F});
  llvm::Value* far = m.ir.CreateFSub(m.number(1), exp_within(m, m.ir.CreateFNeg(q)));
  return m.ir.CreateSelect(m.ir.CreateFCmpOLT(a, m.number(1)), near_zero, m.with_sign_of(far, x));
}

}  // namespace

#define HONE_FLOAT_MATH(name)                                       \
  llvm::Value* emit_##name(llvm::IRBuilder<>& ir, llvm::Value* x) { \
    FloatMath math(ir, x);                                          \
    return name(math, x);                                           \
  }
HONE_FLOAT_MATH(exp) HONE_FLOAT_MATH(log) HONE_FLOAT_MATH(tanh) HONE_FLOAT_MATH(sigmoid) HONE_FLOAT_MATH(erf)
#undef HONE_FLOAT_MATH

}  // namespace hone
