#include "backends/llvm/double_math.h"

#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "backends/llvm/storage.h"

namespace hone {

namespace {

// ln 2 in two parts: the first has 33 bits, so that its product with an exponent is exact.
constexpr double kLog2E = 0x1.71547652b82fep0, kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;

/// A Taylor polynomial of exp with so many terms is off by 4e-18 on [-ln 2 / 2, ln 2 / 2].
constexpr int kTerms = 14;

/// e^(product + rest), where `rest` is small beside it.
llvm::Value* exponential(llvm::IRBuilder<>& ir, llvm::Value* product, llvm::Value* rest) {
  llvm::Type *type = product->getType(), *integer = shaped_like(product, ir.getInt64Ty());
  const auto number = [&](double value) { return llvm::ConstantFP::get(type, value); };
  const auto whole = [&](std::int64_t value) { return llvm::ConstantInt::get(integer, static_cast<std::uint64_t>(value), true); };
  const auto multiply_add = [&](llvm::Value* a, llvm::Value* b, llvm::Value* c) { return ir.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {a, b, c}); };

  // bounded where the result is 0 or infinite anyway
  llvm::Value *too_low = ir.CreateFCmpOLT(product, number(-746)), *too_high = ir.CreateFCmpOGT(product, number(710));
  rest = ir.CreateSelect(ir.CreateOr(too_low, too_high), number(0), rest);
  product = ir.CreateSelect(too_low, number(-746), ir.CreateSelect(too_high, number(710), product));

  // ... = n ln 2 + r with |r| <= ln 2 / 2
  llvm::Value* n = ir.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, ir.CreateFMul(product, number(kLog2E)));
  llvm::Value* r = ir.CreateFAdd(multiply_add(n, number(-kLn2Low), multiply_add(n, number(-kLn2High), product)), rest);
  double factorial = 1;
  for (int k = 2; k < kTerms; ++k) factorial *= k;
  llvm::Value* series = number(1 / factorial);
  for (int k = kTerms - 1; k > 2; --k) series = multiply_add(series, r, number(1 / (factorial /= k)));
  llvm::Value* y = ir.CreateFAdd(multiply_add(ir.CreateFMul(r, r), series, r), number(1));

  // 2^n in two factors, for results that are denormal or just below overflow
  llvm::Value* power = ir.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {integer, type}, {n});
  const auto power_of_two = [&](llvm::Value* exponent) { return ir.CreateBitCast(ir.CreateShl(ir.CreateAdd(exponent, whole(1023)), 52), type); };
  llvm::Value* half = ir.CreateAShr(power, 1);
  return ir.CreateFMul(ir.CreateFMul(y, power_of_two(half)), power_of_two(ir.CreateSub(power, half)));
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
  llvm::Type* type = x->getType();
  const auto number = [&](double value) { return llvm::ConstantFP::get(type, value); };
  const auto multiply_add = [&](llvm::Value* a, llvm::Value* b, llvm::Value* c) { return ir.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {a, b, c}); };
  if (base == 1) return number(1);
  const long double log = std::log(static_cast<long double>(base));
  const auto high = static_cast<double>(log);

  // x log base = product + rest, where it is finite
  llvm::Value* product = ir.CreateFMul(x, number(high));
  llvm::Value* rest = multiply_add(x, number(static_cast<double>(log - high)), multiply_add(x, number(high), ir.CreateFNeg(product)));
  return exponential(ir, product, rest);
}

}  // namespace hone
