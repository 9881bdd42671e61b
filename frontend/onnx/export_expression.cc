#include "frontend/onnx/export_expression.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "ir/kernel/scalar_math.h"

namespace hone::onnx {

namespace {

/// Operations that are an operator of ONNX.
struct OperatorRow {
  ScalarOp op;
  std::string_view type;
  bool only_f32 = false;  ///< common runtimes have no f64 of it: it is computed in f32
};
constexpr OperatorRow kOperators[] = {
    {ScalarOp::kNeg, "Neg"},           {ScalarOp::kAbs, "Abs"},           {ScalarOp::kSign, "Sign"},         {ScalarOp::kExp, "Exp"},
    {ScalarOp::kLog, "Log"},           {ScalarOp::kSqrt, "Sqrt"},         {ScalarOp::kTanh, "Tanh"},         {ScalarOp::kSigmoid, "Sigmoid"},
    {ScalarOp::kErf, "Erf", true},     {ScalarOp::kSin, "Sin"},           {ScalarOp::kCos, "Cos"},           {ScalarOp::kTan, "Tan", true},
    {ScalarOp::kAsin, "Asin", true},   {ScalarOp::kAcos, "Acos", true},   {ScalarOp::kAtan, "Atan", true},   {ScalarOp::kSinh, "Sinh", true},
    {ScalarOp::kCosh, "Cosh", true},   {ScalarOp::kAsinh, "Asinh", true}, {ScalarOp::kAcosh, "Acosh", true}, {ScalarOp::kAtanh, "Atanh", true},
    {ScalarOp::kFloor, "Floor"},       {ScalarOp::kCeil, "Ceil"},         {ScalarOp::kRound, "Round"},       {ScalarOp::kNot, "Not"},
    {ScalarOp::kBitNot, "BitwiseNot"}, {ScalarOp::kIsNan, "IsNaN"},       {ScalarOp::kIsInf, "IsInf"},       {ScalarOp::kAdd, "Add"},
    {ScalarOp::kSub, "Sub"},           {ScalarOp::kMul, "Mul"},           {ScalarOp::kPow, "Pow"},           {ScalarOp::kMax, "Max"},
    {ScalarOp::kMin, "Min"},           {ScalarOp::kEq, "Equal"},          {ScalarOp::kLt, "Less"},           {ScalarOp::kLe, "LessOrEqual"},
    {ScalarOp::kGt, "Greater"},        {ScalarOp::kGe, "GreaterOrEqual"}, {ScalarOp::kAnd, "And"},           {ScalarOp::kOr, "Or"},
    {ScalarOp::kXor, "Xor"},           {ScalarOp::kBitAnd, "BitwiseAnd"}, {ScalarOp::kBitOr, "BitwiseOr"},   {ScalarOp::kBitXor, "BitwiseXor"},
};

const OperatorRow* find_operator(ScalarOp op) {
  const auto* found = std::ranges::find(kOperators, op, &OperatorRow::op);
  return found == std::end(kOperators) ? nullptr : found;
}

DType unsigned_of(DType dtype) {
  switch (size_of(dtype)) {
    case 1: return DType::kU8;
    case 2: return DType::kU16;
    case 4: return DType::kU32;
    default: return DType::kU64;
  }
}

/// Marks what `root` is made of; operands come before who reads them.
std::vector<bool> reachable(const ExprPool& pool, ExprId root) {
  std::vector<bool> needed(root.index + 1);
  needed[root.index] = true;
  for (std::size_t i = root.index + 1; i-- > 0;) {
    if (not needed[i]) continue;
    const Expr& expr = pool[ExprId(i)];
    for (const ExprId operand : expr.operands)
      if (operand.valid()) needed[operand.index] = true;
    for (const ExprId index : expr.index) needed[index.index] = true;
    if (expr.guard.valid()) needed[expr.guard.index] = true;
  }
  return needed;
}

}  // namespace

Spread ExpressionWriter::write(ExprId root) {
  if (not made_[root.index].name.empty()) return made_[root.index];
  const std::vector<bool> needed = reachable(pool_, root);
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (needed[i] and made_[i].name.empty()) made_[i] = write_one(pool_[ExprId(i)]);
  return made_[root.index];
}

Spread ExpressionWriter::write_one(const Expr& expr) {
  std::vector<Spread> operands;
  for (const ExprId index : expr.index) operands.push_back(made_[index.index]);
  if (expr.guard.valid()) operands.push_back(made_[expr.guard.index]);
  switch (expr.op) {
    case ScalarOp::kConstFloat: return {number(expr.dtype, expr.float_value)};
    case ScalarOp::kConstInt: return {integer(expr.dtype, expr.int_value)};
    case ScalarOp::kSize: return {exporter_.sizes({expr.size}, hint_, from_), 1};
    case ScalarOp::kIndex:
    case ScalarOp::kLoad:
    case ScalarOp::kTemp: return leaf_(expr, operands);
    default: break;
  }
  Spread made;
  std::vector<std::string> x;
  for (int i = 0; i < info(expr.op).operands; ++i) {
    const Spread& operand = made_[expr.operands[i].index];
    x.push_back(operand.name);
    made.rank = std::max(made.rank, operand.rank);
    made.varies |= operand.varies;
  }
  made.name = operation(expr, x, pool_[expr.operands[0]].dtype);
  return made;
}

std::string ExpressionWriter::number(DType dtype, double value) { return exporter_.constant(Tensor::scalar(value).cast(dtype), hint_ + "_number"); }

std::string ExpressionWriter::integer(DType dtype, std::int64_t value) { return exporter_.constant(Tensor::scalar(value).cast(dtype), hint_ + "_number"); }

std::string ExpressionWriter::select(const std::string& condition, const std::string& a, const std::string& b, DType dtype) {
  if (dtype == DType::kBool) return of("Or", {of("And", {condition, a}), of("And", {of("Not", {condition}), b})});
  constexpr DType kChosen[] = {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kU8};
  if (std::ranges::find(kChosen, dtype) != std::end(kChosen)) return of("Where", {condition, a, b});
  return cast(of("Where", {condition, cast(a, DType::kI64), cast(b, DType::kI64)}), dtype);
}

/// `type`: of the operands.
std::string ExpressionWriter::operation(const Expr& expr, const std::vector<std::string>& x, DType type) {
  const auto constant = [&](double value) { return number(type, value); };
  switch (expr.op) {
    case ScalarOp::kCast: return cast(x[0], expr.dtype);
    case ScalarOp::kRoundTo: return rounded(x[0], expr.dtype, expr.slot);
    case ScalarOp::kSelect: return select(x[0], x[1], x[2], expr.dtype);
    case ScalarOp::kNe: return of("Not", {comparison("Equal", x, type)});
    case ScalarOp::kDiv:
    case ScalarOp::kFloorDiv:
    case ScalarOp::kMod:
    case ScalarOp::kFmod: return division(expr.op, x, type);
    case ScalarOp::kShiftLeft:
    case ScalarOp::kShiftRight: return shift(expr.op, x, type);
    case ScalarOp::kTrunc: return of("Mul", {of("Sign", {x[0]}), of("Floor", {of("Abs", {x[0]})})});
    case ScalarOp::kLog1p: {  // Kahan: what 1 + x lost is made good by the slope
      const std::string sum = of("Add", {x[0], constant(1)}), lost = of("Sub", {sum, constant(1)}), exact = of("Equal", {lost, constant(0)});
      return select(exact, x[0], of("Div", {of("Mul", {of("Log", {sum}), x[0]}), select(exact, constant(1), lost, type)}), type);
    }
    case ScalarOp::kExpm1: {
      const std::string grown = of("Exp", {x[0]}), less = of("Sub", {grown, constant(1)}), logarithm = of("Log", {grown});
      const std::string flat = of("Equal", {logarithm, constant(0)}), far = of("Or", {of("Equal", {less, constant(-1)}), of("IsInf", {grown})});
      return select(flat, x[0], select(far, less, of("Div", {of("Mul", {less, x[0]}), select(flat, constant(1), logarithm, type)}), type), type);
    }
    default: break;
  }
  const OperatorRow* row = find_operator(expr.op);
  HONE_CHECK(row != nullptr, "a scalar operation that ONNX has no form of");
  if (is_comparison(expr.op)) return comparison(row->type, x, type);
  if (type == DType::kBool and expr.op == ScalarOp::kMax) return of("Or", x);
  if (type == DType::kBool and expr.op == ScalarOp::kMin) return of("And", x);
  if (row->only_f32 and type == DType::kF64) return cast(of(row->type, {cast(x[0], DType::kF32)}), DType::kF64);
  return of(row->type, x);
}

std::string ExpressionWriter::comparison(std::string_view name, std::vector<std::string> x, DType type) {
  if (type == DType::kBool and name != "Equal")
    for (std::string& each : x) each = cast(each, DType::kI32);
  return of(name, x);
}

std::string ExpressionWriter::division(ScalarOp op, const std::vector<std::string>& x, DType type) {
  const auto with_fmod = [&] {
    const std::string made = exporter_.fresh(hint_);
    set(exporter_.node("Mod", x, {made}, from_), "fmod", std::int64_t{1});
    return made;
  };
  if (op == ScalarOp::kFmod) return with_fmod();
  if (is_float(type)) {
    if (op == ScalarOp::kDiv) return of("Div", x);
    if (op == ScalarOp::kFloorDiv) return of("Floor", {of("Div", x)});
    const std::string rest = with_fmod(), zero = number(type, 0);
    const std::string other_sign = of("Less", {of("Mul", {rest, x[1]}), zero});
    return select(other_sign, of("Add", {rest, x[1]}), rest, type);
  }
  const std::string zero = integer(type, 0), none = of("Equal", {x[1], zero}), divisor = select(none, integer(type, 1), x[1], type);  // by 0 gives 0
  const auto unless_none = [&](const std::string& result) { return select(none, zero, result, type); };
  if (op == ScalarOp::kDiv) return unless_none(of("Div", {x[0], divisor}));
  const std::string rest = of("Mod", {x[0], divisor});
  return unless_none(op == ScalarOp::kMod ? rest : of("Div", {of("Sub", {x[0], rest}), divisor}));
}

/// BitShift is for unsigned integers and for shifts below the width.
std::string ExpressionWriter::shift(ScalarOp op, const std::vector<std::string>& x, DType type) {
  const DType bits = unsigned_of(type);
  const std::string width = integer(DType::kI64, info(type).bits), zero = integer(type, 0), by = cast(x[1], DType::kI64);
  const std::string fits = of("And", {of("GreaterOrEqual", {by, integer(DType::kI64, 0)}), of("Less", {by, width})});
  const std::string distance = cast(of("Where", {fits, by, integer(DType::kI64, 0)}), bits);
  const auto moved = [&](const std::string& value, const char* direction) {
    const std::string made = exporter_.fresh(hint_);
    set(exporter_.node("BitShift", {value, distance}, {made}, from_), "direction", std::string(direction));
    return made;
  };
  std::string result;
  if (op == ScalarOp::kShiftLeft) result = cast(moved(cast(x[0], bits), "LEFT"), type);
  else if (not info(type).is_signed) result = moved(x[0], "RIGHT");
  else {  // the bits of ~x, which is not negative, and back
    const std::string negative = of("Less", {x[0], zero}), flipped = select(negative, of("BitwiseNot", {x[0]}), x[0], type);
    const std::string right = cast(moved(cast(flipped, bits), "RIGHT"), type);
    result = select(negative, of("BitwiseNot", {right}), right, type);
  }
  return select(fits, result, zero, type);
}

/// As if it were stored and loaded again.
std::string ExpressionWriter::rounded(const std::string& x, DType type, std::uint32_t rounding) {
  const StorageRounding to = StorageRounding::unpacked(rounding);
  return cast(cast(x, to.dtype), type);
}

}  // namespace hone::onnx
