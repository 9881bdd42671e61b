#include "backends/llvm/own_math.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Intrinsics.h>

#include <initializer_list>
#include <limits>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "backends/llvm/double_math.h"
#include "base/check.h"

namespace hone {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kPi = std::numbers::pi;

/// Scalar f64 arithmetic in which a formula reads as one.
class DoubleMath {
 public:
  explicit DoubleMath(llvm::IRBuilder<>& ir) : ir(ir) {}

  using Value = llvm::Value*;
  Value number(double value) { return llvm::ConstantFP::get(ir.getDoubleTy(), value); }
  Value add(Value a, Value b) { return ir.CreateFAdd(a, b); }
  Value sub(Value a, Value b) { return ir.CreateFSub(a, b); }
  Value mul(Value a, Value b) { return ir.CreateFMul(a, b); }
  Value div(Value a, Value b) { return ir.CreateFDiv(a, b); }
  Value fma(Value a, Value b, Value c) { return ir.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c}); }
  Value abs(Value x) { return ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value sqrt(Value x) { return ir.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }
  Value trunc(Value x) { return ir.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x); }
  Value round(Value x) { return ir.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x); }
  Value with_sign_of(Value x, Value sign) { return ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign); }
  Value select(Value condition, Value a, Value b) { return ir.CreateSelect(condition, a, b); }
  Value below(Value a, double b) { return ir.CreateFCmpOLT(a, number(b)); }
  Value above(Value a, double b) { return ir.CreateFCmpOGT(a, number(b)); }
  Value equals(Value a, double b) { return ir.CreateFCmpOEQ(a, number(b)); }
  Value bits(Value x) { return ir.CreateBitCast(x, ir.getInt64Ty()); }
  Value from_bits(Value x) { return ir.CreateBitCast(x, ir.getDoubleTy()); }
  /// The sum of coefficient(k) * x^k for k in [0, terms).
  template <typename Coefficient>
  Value series(Value x, int terms, Coefficient coefficient) {
    Value sum = number(coefficient(terms - 1));
    for (int k = terms - 2; k >= 0; --k) sum = fma(sum, x, number(coefficient(k)));
    return sum;
  }

  llvm::IRBuilder<>& ir;
};

using Value = llvm::Value*;
using Arguments = std::vector<Value>;

double one_over_factorial(int n) {
  double result = 1;
  for (int k = 2; k <= n; ++k) result /= k;
  return result;
}

Value exp(DoubleMath& m, const Arguments& a) { return emit_double_exp(m.ir, a[0]); }

/// x = 2^e y with y in [sqrt(1/2), sqrt 2); log y = 2 atanh s = 2 s (1 + s^2/3 + s^4/5 ...) with s = (y - 1) / (y + 1), |s| < 0.172.
Value log_of(DoubleMath& m, Value x) {
  llvm::IRBuilder<>& ir = m.ir;
  Value denormal = m.below(x, 0x1p-1022), scaled = m.select(denormal, m.mul(x, m.number(0x1p54)), x);
  Value bits = m.bits(scaled), above = ir.CreateSub(bits, ir.getInt64(0x3fe6a09e667f3bcdULL));  // the bits of sqrt(1/2)
  Value exponent = ir.CreateAShr(above, 52), y = m.from_bits(ir.CreateSub(bits, ir.CreateShl(exponent, 52)));
  Value e = m.add(ir.CreateSIToFP(exponent, ir.getDoubleTy()), m.select(denormal, m.number(-54), m.number(0)));
  Value s = m.div(m.sub(y, m.number(1)), m.add(y, m.number(1))), square = m.mul(s, s);
  Value rest = m.mul(square, m.series(square, 11, [](int k) { return 1.0 / (2 * k + 3); }));
  constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
  Value twice = m.add(s, s);
  Value low = m.fma(e, m.number(kLn2Low), m.mul(twice, rest));
  Value r = m.fma(e, m.number(kLn2High), m.add(twice, low));
  r = m.select(m.equals(x, kInfinity), x, r);
  r = m.select(m.equals(x, 0), m.number(-kInfinity), r);
  return m.select(ir.CreateFCmpULT(x, m.number(0)), m.number(std::numeric_limits<double>::quiet_NaN()), r);
}
Value log(DoubleMath& m, const Arguments& a) { return log_of(m, a[0]); }

/// log of 1 + x as rounded, and what the rounding lost.
Value log1p_of(DoubleMath& m, Value x) {
  Value u = m.add(x, m.number(1));
  Value lost = m.div(m.sub(m.sub(u, m.number(1)), x), u);
  Value large = m.ir.CreateOr(m.equals(u, kInfinity), m.equals(u, 0));
  return m.select(m.equals(u, 1), x, m.select(large, log_of(m, u), m.sub(log_of(m, u), lost)));
}
Value log1p(DoubleMath& m, const Arguments& a) { return log1p_of(m, a[0]); }

Value expm1_of(DoubleMath& m, Value x) {
  Value near_zero = m.fma(m.mul(x, x), m.series(x, 15, [](int k) { return one_over_factorial(k + 2); }), x);
  return m.select(m.below(m.abs(x), 0.5), near_zero, m.sub(emit_double_exp(m.ir, x), m.number(1)));
}
Value expm1(DoubleMath& m, const Arguments& a) { return expm1_of(m, a[0]); }

Value sinh(DoubleMath& m, const Arguments& a) {
  Value x = m.abs(a[0]), e = expm1_of(m, x), half = emit_double_exp(m.ir, m.mul(x, m.number(0.5)));
  Value small = m.mul(m.number(0.5), m.add(e, m.div(e, m.add(e, m.number(1))))), large = m.mul(m.mul(m.number(0.5), half), half);
  return m.with_sign_of(m.select(m.above(x, 40), large, small), a[0]);
}
Value cosh(DoubleMath& m, const Arguments& a) {
  Value half = emit_double_exp(m.ir, m.mul(m.abs(a[0]), m.number(0.5)));
  return m.fma(m.mul(m.number(0.5), half), half, m.div(m.div(m.number(0.5), half), half));
}
/// e / (e + 2) with e = exp(2 |x|) - 1; 1 from 20 on.
Value tanh(DoubleMath& m, const Arguments& a) {
  Value x = m.abs(a[0]), bounded = m.select(m.above(x, 20), m.number(20), x), e = expm1_of(m, m.add(bounded, bounded));
  return m.with_sign_of(m.div(e, m.add(e, m.number(2))), a[0]);
}

Value asinh(DoubleMath& m, const Arguments& a) {
  Value x = m.abs(a[0]), square = m.mul(x, x);
  Value sum = m.add(x, m.div(square, m.add(m.number(1), m.sqrt(m.add(square, m.number(1))))));
  return m.with_sign_of(m.select(m.above(x, 1e150), m.add(log_of(m, x), m.number(std::numbers::ln2)), log1p_of(m, sum)), a[0]);
}
Value acosh(DoubleMath& m, const Arguments& a) {
  Value t = m.sub(a[0], m.number(1)), sum = m.add(t, m.sqrt(m.mul(t, m.add(t, m.number(2)))));
  Value result = m.select(m.above(a[0], 1e150), m.add(log_of(m, a[0]), m.number(std::numbers::ln2)), log1p_of(m, sum));
  return m.select(m.below(a[0], 1), m.number(std::numeric_limits<double>::quiet_NaN()), result);
}
Value atanh(DoubleMath& m, const Arguments& a) {
  Value x = m.abs(a[0]);
  return m.with_sign_of(m.mul(m.number(0.5), log1p_of(m, m.div(m.add(x, x), m.sub(m.number(1), x)))), a[0]);
}

/// Above 1 by the reciprocal, above tan(pi/8) by the angle beyond pi/4; then a series in z^2 <= 0.172.
Value atan_of(DoubleMath& m, Value x) {
  Value a = m.abs(x), inverse = m.above(a, 1), y = m.select(inverse, m.div(m.number(1), a), a);
  Value beyond = m.above(y, 0.41421356237309503);
  Value z = m.select(beyond, m.div(m.sub(y, m.number(1)), m.add(y, m.number(1))), y), square = m.mul(z, z);
  Value series = m.series(square, 21, [](int k) { return (k % 2 == 0 ? -1.0 : 1.0) / (2 * k + 3); });
  Value angle = m.fma(m.mul(z, square), series, z);
  angle = m.select(beyond, m.add(m.number(kPi / 4), angle), angle);
  return m.with_sign_of(m.select(inverse, m.sub(m.number(kPi / 2), angle), angle), x);
}
Value atan(DoubleMath& m, const Arguments& a) { return atan_of(m, a[0]); }
Value asin(DoubleMath& m, const Arguments& a) {
  return atan_of(m, m.div(a[0], m.sqrt(m.mul(m.sub(m.number(1), a[0]), m.add(m.number(1), a[0])))));
}
Value acos(DoubleMath& m, const Arguments& a) {
  Value angle = atan_of(m, m.sqrt(m.div(m.sub(m.number(1), a[0]), m.add(m.number(1), a[0]))));
  return m.add(angle, angle);
}

/// x = n pi/2 + r with |r| <= pi/4, then Taylor series in r.
struct Angle {
  Value quadrant, sine, cosine;
};
Angle series_of(DoubleMath& m, Value quadrant, Value r) {
  Value square = m.mul(r, r);
  const auto sign = [](int k) { return k % 2 == 0 ? 1.0 : -1.0; };
  Value sine = m.fma(m.mul(r, square), m.series(square, 8, [&](int k) { return -sign(k) * one_over_factorial(2 * k + 3); }), r);
  Value cosine = m.fma(square, m.series(square, 9, [&](int k) { return -sign(k) * one_over_factorial(2 * k + 2); }), m.number(1));
  return {quadrant, sine, cosine};
}

/// 2/pi, its bits behind the point, as far as f64 angles need them.
constexpr std::uint64_t kTwoOverPi[] = {
    0xa2f9836e4e441529ULL, 0xfc2757d1f534ddc0ULL, 0xdb6295993c439041ULL, 0xfe5163abdebbc561ULL, 0xb7246e3a424dd2e0ULL,
    0x06492eea09d1921cULL, 0xfe1deb1cb129a73eULL, 0xe88235f52ebb4484ULL, 0xe99c7026b45f7e41ULL, 0x3991d639835339f4ULL,
    0x9c845f8bbdf9283bULL, 0x1ff897ffde05980fULL, 0xef2f118b5a0a6d1fULL, 0x6d367ecf27cb09b7ULL, 0x4f463f669e5fea2dULL,
    0x7527bac7ebe5f17bULL, 0x3d0739f78a5292eaULL, 0x6bfb5fb11f8d5d08ULL, 0x56033046fc7b6babULL, 0xf0cfbc209af4361dULL,
};

/// Of |x| = k 2^e only those bits of 2/pi matter which, multiplied by k, are not whole turns: 192 from the bit of weight 2^(1-e) on. (M. Payne, R. Hanek, 1983)
struct Remainder {
  Value quadrant, r;
};
Remainder large_remainder(DoubleMath& m, Value x) {
  llvm::IRBuilder<>& ir = m.ir;
  llvm::Module& module = *ir.GetInsertBlock()->getModule();
  constexpr const char* kName = "hone_two_over_pi";
  auto* type = llvm::ArrayType::get(ir.getInt64Ty(), std::size(kTwoOverPi));
  llvm::GlobalVariable* table = module.getNamedGlobal(kName);
  if (table == nullptr) table = new llvm::GlobalVariable(module, type, true, llvm::GlobalValue::InternalLinkage, llvm::ConstantDataArray::get(ir.getContext(), llvm::ArrayRef(kTwoOverPi)), kName);
  llvm::Type *i192 = ir.getIntNTy(192), *i256 = ir.getIntNTy(256);  // k has 53 bits, so their product fits
  Value bits = m.bits(m.abs(x));
  Value k = ir.CreateOr(ir.CreateAnd(bits, 0xfffffffffffffULL), 1ULL << 52);
  // The first bit that counts, from 0: e - 2 with e = exponent field - 1075.
  Value first = ir.CreateSub(ir.CreateLShr(bits, 52), ir.getInt64(1077));
  first = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, first, ir.getInt64(0)), ir.getInt64(64 * (std::size(kTwoOverPi) - 4)));
  Value skipped = ir.CreateSub(ir.CreateLShr(bits, 52), ir.CreateAdd(first, ir.getInt64(1077)));  // negative: e is below 2
  Value window = llvm::ConstantInt::get(i256, 0), word = ir.CreateLShr(first, 6);
  for (std::uint64_t i = 0; i < 4; ++i) {
    Value at = ir.CreateInBoundsGEP(type, table, {ir.getInt64(0), ir.CreateAdd(word, ir.getInt64(i))});
    window = ir.CreateOr(ir.CreateShl(window, 64), ir.CreateZExt(ir.CreateLoad(ir.getInt64Ty(), at), i256));
  }
  window = ir.CreateShl(window, ir.CreateZExt(ir.CreateAnd(first, 63), i256));
  Value product = ir.CreateMul(ir.CreateLShr(window, 64), ir.CreateZExt(k, i256));
  product = ir.CreateTrunc(ir.CreateLShr(product, ir.CreateZExt(ir.CreateNeg(skipped), i256)), i192);  // quarter turns: two bits, and the fraction behind them
  Value whole = ir.CreateTrunc(ir.CreateLShr(product, 190), ir.getInt64Ty()), fraction = ir.CreateShl(product, 2);
  Value high = ir.CreateTrunc(ir.CreateLShr(fraction, 128), ir.getInt64Ty()), low = ir.CreateTrunc(ir.CreateLShr(fraction, 64), ir.getInt64Ty());
  Value rounds_up = ir.CreateZExt(ir.CreateICmpSLT(high, ir.getInt64(0)), ir.getInt64Ty());  // then the fraction, as a signed number, is what is too much
  Value r = m.fma(ir.CreateUIToFP(low, ir.getDoubleTy()), m.number(0x1p-128), m.mul(ir.CreateSIToFP(high, ir.getDoubleTy()), m.number(0x1p-64)));
  r = m.mul(r, m.number(kPi / 2));
  Value quadrant = ir.CreateAdd(whole, rounds_up), negative = m.below(x, 0);
  return {ir.CreateSelect(negative, ir.CreateNeg(quadrant), quadrant), m.select(negative, ir.CreateFNeg(r), r)};
}

Angle reduced(DoubleMath& m, Value x) {
  llvm::IRBuilder<>& ir = m.ir;
  constexpr double kParts[] = {0x1.921fb54442d18p0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
  constexpr double kFarAway = 0x1p28;  // up to here three parts are enough
  Value n = m.round(m.mul(x, m.number(2 / kPi))), r = x, minus_n = ir.CreateFNeg(n);
  for (const double part : kParts) r = m.fma(minus_n, m.number(part), r);
  Value quadrant = ir.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {ir.getInt64Ty(), ir.getDoubleTy()}, {n});
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  llvm::BasicBlock *before = ir.GetInsertBlock(), *far = llvm::BasicBlock::Create(ir.getContext(), "far", function), *after = llvm::BasicBlock::Create(ir.getContext(), "after", function);
  ir.CreateCondBr(m.above(m.abs(x), kFarAway), far, after);
  ir.SetInsertPoint(far);
  const Remainder large = large_remainder(m, x);
  far = ir.GetInsertBlock();
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
  const auto either = [&](Value near_value, Value far_value) {
    llvm::PHINode* phi = ir.CreatePHI(near_value->getType(), 2);
    phi->addIncoming(near_value, before);
    phi->addIncoming(far_value, far);
    return phi;
  };
  llvm::PHINode *either_quadrant = either(quadrant, large.quadrant), *either_r = either(r, large.r);
  Value finite_r = m.select(m.below(m.abs(x), kInfinity), either_r, m.number(std::numeric_limits<double>::quiet_NaN()));
  return series_of(m, either_quadrant, finite_r);
}
/// The sine of an angle that many quadrants ahead.
Value sine_ahead(DoubleMath& m, const Angle& angle, std::uint64_t quadrants) {
  Value quadrant = m.ir.CreateAdd(angle.quadrant, m.ir.getInt64(quadrants));
  Value odd = m.ir.CreateICmpNE(m.ir.CreateAnd(quadrant, 1), m.ir.getInt64(0)), negative = m.ir.CreateICmpNE(m.ir.CreateAnd(quadrant, 2), m.ir.getInt64(0));
  Value result = m.select(odd, angle.cosine, angle.sine);
  return m.select(negative, m.ir.CreateFNeg(result), result);
}
Value sin(DoubleMath& m, const Arguments& a) { return sine_ahead(m, reduced(m, a[0]), 0); }
Value cos(DoubleMath& m, const Arguments& a) { return sine_ahead(m, reduced(m, a[0]), 1); }
Value tan(DoubleMath& m, const Arguments& a) {
  const Angle angle = reduced(m, a[0]);
  return m.div(sine_ahead(m, angle, 0), sine_ahead(m, angle, 1));
}

Value pow(DoubleMath& m, const Arguments& a) { return emit_double_power(m.ir, a[0], a[1]); }

/// A loop: `state` becomes step(state) as long as goes_on(state) holds.
template <typename GoesOn, typename Step>
Arguments repeat(llvm::IRBuilder<>& ir, const Arguments& first, GoesOn goes_on, Step step) {
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  const auto block = [&](const char* name) { return llvm::BasicBlock::Create(ir.getContext(), name, function); };
  llvm::BasicBlock *before = ir.GetInsertBlock(), *head = block("head"), *body = block("body"), *after = block("after");
  ir.CreateBr(head);
  ir.SetInsertPoint(head);
  std::vector<llvm::PHINode*> phis;
  Arguments state;
  for (Value value : first) {
    phis.push_back(ir.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, before);
    state.push_back(phis.back());
  }
  ir.CreateCondBr(goes_on(state), body, after);
  ir.SetInsertPoint(body);
  const Arguments next = step(state);
  for (std::size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(next[i], ir.GetInsertBlock());
  ir.CreateBr(head);
  ir.SetInsertPoint(after);
  return state;
}

/// 2/sqrt(pi) exp(-x^2) times the sum of x (2 x^2)^n / (1 3 5 ... (2n+1)), whose terms are all positive; 1 from 6 on.
Value erf(DoubleMath& m, const Arguments& a) {
  Value x = m.abs(a[0]), bounded = m.select(m.below(x, 6), x, m.number(6)), square = m.mul(bounded, bounded), twice = m.add(square, square);
  const Arguments sum = repeat(
      m.ir, {bounded, bounded, m.number(3)}, [&](const Arguments& s) { return m.ir.CreateFCmpOGT(s[0], m.mul(s[1], m.number(0x1p-60))); },
      [&](const Arguments& s) {
        Value term = m.div(m.mul(s[0], twice), s[2]);
        return Arguments{term, m.add(s[1], term), m.add(s[2], m.number(2))};
      });
  Value result = m.mul(m.mul(m.number(2 * std::numbers::inv_sqrtpi), emit_double_exp(m.ir, m.ir.CreateFNeg(square))), sum[1]);
  result = m.select(m.below(x, 6), result, m.number(1));
  return m.select(m.ir.CreateFCmpUNO(a[0], a[0]), a[0], m.with_sign_of(result, a[0]));
}

/// |x| less |y| 2^k as often as it fits, from the largest k on. Each difference is exact, because the two are within a factor of 2.
Value fmod(DoubleMath& m, const Arguments& a) {
  llvm::IRBuilder<>& ir = m.ir;
  Value x = m.abs(a[0]), y = m.abs(a[1]);
  Value is_finite = ir.CreateAnd(m.below(x, kInfinity), m.above(y, 0));  // else the result is NaN, and no loop ends
  Value from = m.select(is_finite, x, m.number(0)), first = m.select(is_finite, y, m.number(1));
  const Arguments largest = repeat(
      ir, {first}, [&](const Arguments& s) { return ir.CreateFCmpOLE(s[0], m.mul(from, m.number(0.5))); }, [&](const Arguments& s) { return Arguments{m.add(s[0], s[0])}; });
  const Arguments rest = repeat(
      ir, {from, largest[0]}, [&](const Arguments& s) { return ir.CreateAnd(ir.CreateFCmpOGE(s[0], y), is_finite); },
      [&](const Arguments& s) { return Arguments{m.select(ir.CreateFCmpOGE(s[0], s[1]), m.sub(s[0], s[1]), s[0]), m.mul(s[1], m.number(0.5))}; });
  Value result = m.with_sign_of(rest[0], a[0]);
  return m.select(ir.CreateAnd(is_finite, ir.CreateFCmpORD(y, y)), result, m.number(std::numeric_limits<double>::quiet_NaN()));
}

struct Function {
  std::string_view name;  ///< libm's; with an f behind it for float
  Value (*body)(DoubleMath&, const Arguments&);
};

constexpr Function kFunctions[] = {
    {"exp", exp},     {"log", log},     {"log1p", log1p}, {"expm1", expm1}, {"sin", sin},     {"cos", cos},     {"tan", tan}, {"asin", asin}, {"acos", acos}, {"atan", atan},
    {"sinh", sinh},   {"cosh", cosh},   {"tanh", tanh},   {"asinh", asinh}, {"acosh", acosh}, {"atanh", atanh}, {"erf", erf}, {"pow", pow},   {"fmod", fmod},
};

/// Gives the function, of any number of f32s or f64s to one, its body. Under another name, so that LLVM does not take it for libm's.
void define(llvm::Function& function, const Function& row) {
  function.setName("hone_" + function.getName());
  function.setLinkage(llvm::GlobalValue::InternalLinkage);
  function.setDoesNotThrow();
  function.setDoesNotAccessMemory();
  function.addFnAttr(llvm::Attribute::WillReturn);
  llvm::IRBuilder<> ir(llvm::BasicBlock::Create(function.getContext(), "entry", &function));
  DoubleMath math(ir);
  Arguments arguments;
  for (llvm::Argument& argument : function.args()) arguments.push_back(ir.CreateFPExt(&argument, ir.getDoubleTy()));
  Value result = row.body(math, arguments);
  ir.CreateRet(ir.CreateFPTrunc(result, function.getReturnType()));
}

void replace_remainders(llvm::Module& module) {
  std::vector<llvm::BinaryOperator*> remainders;
  for (llvm::Function& function : module)
    for (llvm::Instruction& instruction : llvm::instructions(function))
      if (instruction.getOpcode() == llvm::Instruction::FRem) remainders.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
  for (llvm::BinaryOperator* remainder : remainders) {
    llvm::Type* type = remainder->getType();
    HONE_CHECK(not type->isVectorTy(), "a remainder of vectors in a kernel in blocks");
    llvm::IRBuilder<> ir(remainder);
    const llvm::FunctionCallee function = module.getOrInsertFunction(type->isDoubleTy() ? "fmod" : "fmodf", llvm::FunctionType::get(type, {type, type}, false));
    remainder->replaceAllUsesWith(ir.CreateCall(function, {remainder->getOperand(0), remainder->getOperand(1)}));
    remainder->eraseFromParent();
  }
}

}  // namespace

void define_math(llvm::Module& module) {
  replace_remainders(module);
  for (const Function& row : kFunctions)
    for (const char* suffix : {"", "f"})
      if (llvm::Function* function = module.getFunction(std::string(row.name) + suffix)) define(*function, row);
  for (const llvm::Function& function : module)
    HONE_CHECK(function.isIntrinsic() or not function.isDeclaration(), "there is no own code for " + function.getName().str());
}

}  // namespace hone
