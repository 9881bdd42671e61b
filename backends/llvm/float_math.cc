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

// ln 2 in two parts: the first has 10 bits, so that its product with an exponent is exact.
constexpr float kLn2High = 0x1.63p-1F, kLn2Low = -0x1.bd0106p-13F;

constexpr float kShift = 0x1.8p23F;  // adding it rounds to an integer, which then stands in the low bits

/// 2^(n + offset) for the n in the low bits of `shifted`, whose other bits the shift drops; 0 where n + offset is -127.
llvm::Value* power_of_two(FloatMath& m, llvm::Value* shifted, int offset) {
  return m.from_bits(m.ir.CreateAdd(m.ir.CreateShl(m.bits(shifted), 23), m.integer(static_cast<std::uint32_t>(127 + offset) << 23)));
}

// x = n ln 2 + r with |r| <= ln 2 / 2; 2^(n-1) 2 exp r, so that n may be 128, and -126 gives 0.
llvm::Value* exp(FloatMath& m, llvm::Value* x) {
  llvm::Value* bounded = m.at_most(m.at_least(x, -87.3F), 89.0F);
  llvm::Value* shifted = m.multiply_add(bounded, m.number(0x1.715476p0F), m.number(kShift));
  llvm::Value* n = m.ir.CreateFSub(shifted, m.number(kShift));
  llvm::Value* r = m.multiply_add(n, m.number(-kLn2High), bounded);
  r = m.multiply_add(n, m.number(-kLn2Low), r);
  // (exp r - 1 - r) / r^2 on 1.01 [-ln2/2, ln2/2]: relative error of exp 3.3e-9
  llvm::Value* p = m.polynomial(r, {0x1.fffffcp-2F, 0x1.55548ap-3F, 0x1.555916p-5F, 0x1.123fc6p-7F, 0x1.6a1a78p-10F});
  llvm::Value* less_one = m.multiply_add(m.ir.CreateFMul(r, r), p, r);
  return m.ir.CreateFMul(m.multiply_add(less_one, m.number(2), m.number(2)), power_of_two(m, shifted, -1));
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

// 1 - 2^t with t = a b = n + r in [-126, 0] and |r| <= 1/2; 2^t = scale (1 + rest), so that no rounding at 1 stands between a t near zero and the result.
llvm::Value* one_less_power(FloatMath& m, llvm::Value* a, llvm::Value* b) {
  llvm::Value* shifted = m.multiply_add(a, b, m.number(kShift));
  llvm::Value* n = m.ir.CreateFSub(shifted, m.number(kShift));
  llvm::Value* r = m.multiply_add(a, b, m.ir.CreateFNeg(n));
  // (2^r - 1) / r on 1.01 [-1/2, 1/2]: relative error of 2^r - 1 1.1e-8
  llvm::Value* p = m.polynomial(r, {0x1.ebfbdep-3F, 0x1.c6af62p-5F, 0x1.3b2baap-7F, 0x1.5f0f6ap-10F, 0x1.4308fep-13F});
  llvm::Value* scale = power_of_two(m, shifted, 0);
  llvm::Value* rest = m.multiply_add(r, m.number(0x1.62e430p-1F), m.ir.CreateFMul(m.ir.CreateFMul(r, r), p));
  return m.multiply_add(m.ir.CreateFNeg(scale), rest, m.ir.CreateFSub(m.number(1), scale));
}

// |tanh x| = y / (2 - y) with y = 1 - exp(-2 |x|); 1 from 10 on
llvm::Value* tanh(FloatMath& m, llvm::Value* x) {
  constexpr float kMinusTwoOverLn2 = -0x1.715476p+1F;
  llvm::Value* y = one_less_power(m, m.at_most(m.abs(x), 10.0F), m.number(kMinusTwoOverLn2));
  return m.with_sign_of(m.ir.CreateFDiv(y, m.ir.CreateFSub(m.number(2), y)), x);
}

// With z = exp(-|x|), which cannot overflow: 1 / (1 + z) or z / (1 + z).
llvm::Value* sigmoid(FloatMath& m, llvm::Value* x) {
  llvm::Value* z = exp(m, m.ir.CreateFNeg(m.abs(x)));
  llvm::Value* numerator = m.ir.CreateSelect(m.ir.CreateFCmpOGE(x, m.number(0)), m.number(1), z);
  return m.ir.CreateFDiv(numerator, m.ir.CreateFAdd(z, m.number(1)));
}

// |erf x| = 1 - 2^t with t = log2(erfc |x|), which is 1 from 4 on.
llvm::Value* erf(FloatMath& m, llvm::Value* x) {
  llvm::Value* a = m.at_most(m.abs(x), 4.0F);
  // log2(erfc(x)) / x on (0, 4.02]: relative error of erf 4.0e-9
  llvm::Value* q = m.polynomial(a, {-0x1.a0be84p+0F, -0x1.d63ec4p-1F, -0x1.2fabe2p-3F, 0x1.c4b922p-6F, 0x1.e54844p-13F, -0x1.3b3ab0p-9F, 0x1.deab1cp-11F, -0x1.63ed66p-13F, 0x1.c0146ep-17F});
  return m.with_sign_of(one_less_power(m, a, q), x);
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
