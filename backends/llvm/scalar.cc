#include "backends/llvm/scalar.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "backends/llvm/double_math.h"
#include "backends/llvm/float_math.h"
#include "backends/llvm/integer_power.h"
#include "base/check.h"
#include "ir/kernel/scalar_math.h"

namespace hone {

namespace {

using llvm::Value;
namespace intrinsic = llvm::Intrinsic;

/// One operation to emit.
struct Operation {
  llvm::IRBuilder<>& ir;
  std::span<Value* const> operands;
  DType type;         ///< of the operands
  DType result_type;

  Value* operator[](std::size_t i) const { return operands[i]; }
  llvm::Type* llvm_type() const { return operands[0]->getType(); }
  llvm::Type* llvm_result_type() const { return shaped_like(operands[0], value_type(ir.getContext(), result_type)); }
  bool is_signed() const { return info(type).is_signed; }
  bool is_bool() const { return type == DType::kBool; }
  Value* number(double value) const { return llvm::ConstantFP::get(llvm_type(), value); }
  Value* integer(std::int64_t value) const { return llvm::ConstantInt::get(llvm_type(), static_cast<std::uint64_t>(value), true); }
  Value* intrinsic(intrinsic::ID id) const { return ir.CreateIntrinsic(id, {llvm_type()}, arguments()); }
  llvm::ArrayRef<Value*> arguments() const { return {operands.data(), operands.size()}; }
};

/// What has no vector form is done element by element: `function` takes scalar operands.
template <typename Function>
Value* per_lane(const Operation& o, Function function) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(o.llvm_type());
  if (vector == nullptr) return function(o);
  Value* result = nullptr;
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
    std::vector<Value*> elements;
    for (Value* operand : o.operands) elements.push_back(o.ir.CreateExtractElement(operand, lane));
    Value* element = function({o.ir, elements, o.type, o.result_type});
    if (result == nullptr) result = llvm::PoisonValue::get(llvm::FixedVectorType::get(element->getType(), vector));
    result = o.ir.CreateInsertElement(result, element, lane);
  }
  return result;
}

/// Calls NAME(double...) or NAMEf(float...) of libm. It has no effect but its result: nobody reads errno.
Value* call_libm(const Operation& all, std::string_view name) {
  return per_lane(all, [name](const Operation& o) -> Value* {
    llvm::Module& module = *o.ir.GetInsertBlock()->getModule();
    std::vector<llvm::Type*> types(o.operands.size(), o.llvm_type());
    auto* type = llvm::FunctionType::get(o.llvm_type(), types, false);
    llvm::FunctionCallee callee = module.getOrInsertFunction(std::string(name) + (o.type == DType::kF64 ? "" : "f"), type);
    auto* function = llvm::cast<llvm::Function>(callee.getCallee());
    function->setDoesNotAccessMemory();
    function->setDoesNotThrow();
    function->addFnAttr(llvm::Attribute::WillReturn);
    return o.ir.CreateCall(callee, o.arguments());
  });
}

Value* select_nonzero(const Operation& o, Value* divisor, Value* result) { return o.ir.CreateSelect(o.ir.CreateICmpEQ(divisor, o.integer(0)), o.integer(0), result); }

/// A divisor with which the hardware does not trap: 1 instead of 0 and -1.
Value* safe_divisor(const Operation& o) {
  Value* unsafe = o.ir.CreateICmpEQ(o[1], o.integer(0));
  if (o.is_signed()) unsafe = o.ir.CreateOr(unsafe, o.ir.CreateICmpEQ(o[1], o.integer(-1)));
  return o.ir.CreateSelect(unsafe, o.integer(1), o[1]);
}

Value* quotient(const Operation& o) {
  Value* divisor = safe_divisor(o);
  if (not o.is_signed()) return select_nonzero(o, o[1], o.ir.CreateUDiv(o[0], divisor));
  Value* result = o.ir.CreateSDiv(o[0], divisor);
  result = o.ir.CreateSelect(o.ir.CreateICmpEQ(o[1], o.integer(-1)), o.ir.CreateNeg(o[0]), result);  // lowest / -1 wraps
  return select_nonzero(o, o[1], result);
}

Value* remainder(const Operation& o) {  // by 1, which stands for 0 and -1, it is 0 as it must be
  Value* divisor = safe_divisor(o);
  return o.is_signed() ? o.ir.CreateSRem(o[0], divisor) : o.ir.CreateURem(o[0], divisor);
}

/// Is a nonzero signed remainder of another sign than the divisor?
Value* rounds_down(const Operation& o, Value* remainder) {
  Value* differs = o.ir.CreateICmpSLT(o.ir.CreateXor(remainder, o[1]), o.integer(0));
  return o.ir.CreateAnd(o.ir.CreateICmpNE(remainder, o.integer(0)), differs);
}

Value* floor_quotient(const Operation& o) {
  Value* result = quotient(o);
  return o.is_signed() ? o.ir.CreateSub(result, o.ir.CreateZExt(rounds_down(o, remainder(o)), o.llvm_type())) : result;
}

Value* floor_remainder(const Operation& o) {
  Value* r = remainder(o);
  return o.is_signed() ? o.ir.CreateSelect(rounds_down(o, r), o.ir.CreateAdd(r, o[1]), r) : r;
}

Value* float_mod(const Operation& o) {
  Value* r = o.ir.CreateFRem(o[0], o[1]);
  Value* differs = o.ir.CreateXor(o.ir.CreateFCmpOLT(r, o.number(0)), o.ir.CreateFCmpOLT(o[1], o.number(0)));
  return o.ir.CreateSelect(o.ir.CreateAnd(o.ir.CreateFCmpONE(r, o.number(0)), differs), o.ir.CreateFAdd(r, o[1]), r);
}

/// floor of the quotient itself: a quotient rounded to float may have been rounded up to an integer.
Value* float_floor_quotient(const Operation& o) {
  if (o.type == DType::kF64) return o.ir.CreateUnaryIntrinsic(intrinsic::floor, o.ir.CreateFDiv(o[0], o[1]));
  const auto wide = [&o](Value* x) { return o.ir.CreateFPExt(x, shaped_like(x, o.ir.getDoubleTy())); };
  return o.ir.CreateFPTrunc(o.ir.CreateUnaryIntrinsic(intrinsic::floor, o.ir.CreateFDiv(wide(o[0]), wide(o[1]))), o.llvm_type());
}

Value* float_sign(const Operation& o) {  // NaN keeps being NaN
  Value* positive = o.ir.CreateSelect(o.ir.CreateFCmpOGT(o[0], o.number(0)), o.number(1), o[0]);
  return o.ir.CreateSelect(o.ir.CreateFCmpOLT(o[0], o.number(0)), o.number(-1), positive);
}

Value* integer_sign(const Operation& o) {
  Value* positive = o.ir.CreateZExt(o.ir.CreateICmpNE(o[0], o.integer(0)), o.llvm_type());
  return o.is_signed() ? o.ir.CreateSelect(o.ir.CreateICmpSLT(o[0], o.integer(0)), o.integer(-1), positive) : positive;
}

Value* integer_extreme(const Operation& o, bool is_max) {
  if (o.is_bool()) return is_max ? o.ir.CreateOr(o[0], o[1]) : o.ir.CreateAnd(o[0], o[1]);
  if (o.is_signed()) return o.intrinsic(is_max ? intrinsic::smax : intrinsic::smin);
  return o.intrinsic(is_max ? intrinsic::umax : intrinsic::umin);
}

template <typename Shift>
Value* bounded_shift(const Operation& o, Shift shift) {
  Value* inside = o.ir.CreateICmpULT(o[1], o.integer(static_cast<std::int64_t>(o.llvm_type()->getScalarSizeInBits())));
  Value* result = shift(o.ir.CreateSelect(inside, o[1], o.integer(0)));
  return o.ir.CreateSelect(inside, result, o.integer(0));
}

template <llvm::CmpInst::Predicate kPredicate>
Value* compare_floats(const Operation& o) { return o.ir.CreateFCmp(kPredicate, o[0], o[1]); }

template <llvm::CmpInst::Predicate kSigned, llvm::CmpInst::Predicate kUnsigned>
Value* compare_integers(const Operation& o) { return o.ir.CreateICmp(o.is_signed() ? kSigned : kUnsigned, o[0], o[1]); }

Value* cast_from_float(const Operation& o) {
  llvm::Type* to = o.llvm_result_type();
  if (o.result_type == DType::kBool) return o.ir.CreateFCmpUNE(o[0], o.number(0));
  if (is_float(o.result_type)) return o.ir.CreateFPCast(o[0], to);
  return o.ir.CreateIntrinsic(info(o.result_type).is_signed ? intrinsic::fptosi_sat : intrinsic::fptoui_sat, {to, o.llvm_type()}, {o[0]});
}

Value* cast_from_integer(const Operation& o) {
  llvm::Type* to = o.llvm_result_type();
  if (o.result_type == DType::kBool) return o.ir.CreateICmpNE(o[0], o.integer(0));
  if (is_float(o.result_type)) return o.is_signed() ? o.ir.CreateSIToFP(o[0], to) : o.ir.CreateUIToFP(o[0], to);
  return o.ir.CreateIntCast(o[0], to, o.is_signed());
}

Value* choose(const Operation& o) { return o.ir.CreateSelect(o[0], o[1], o[2]); }

Value* integer_power(const Operation& all) {
  return per_lane(all, [](const Operation& o) {
    const auto widened = [&o](Value* x) { return o.ir.CreateIntCast(x, o.ir.getInt64Ty(), o.is_signed()); };
    Value* power = call_integer_power(o.ir, widened(o[0]), widened(o[1]), o.type == DType::kU64 ? ExponentSign::kUnsigned : ExponentSign::kSigned);
    return o.ir.CreateTrunc(power, o.llvm_type());
  });
}

/// In f64, as in an optimizer's bias corrections, without libm.
Value* float_power(const Operation& o) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(o[0]);
  if (constant != nullptr and constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* base = o.type == DType::kF64 ? llvm::dyn_cast_or_null<llvm::ConstantFP>(constant) : nullptr;
  const double value = base == nullptr ? 0 : base->getValueAPF().convertToDouble();
  if (value > 0 and value <= std::numeric_limits<double>::max()) return emit_power_of_constant(o.ir, value, o[1]);
  return o.type == DType::kF64 ? emit_double_power(o.ir, o[0], o[1]) : call_libm(o, "pow");
}

/// 1 / (1 + exp(-|x|)), or exp(-|x|) times that.
Value* double_sigmoid(const Operation& o) {
  Value* argument[] = {o.ir.CreateFNeg(o.intrinsic(intrinsic::fabs))};
  Value* z = call_libm({o.ir, argument, o.type, o.result_type}, "exp");
  Value* numerator = o.ir.CreateSelect(o.ir.CreateFCmpOGE(o[0], o.number(0)), o.number(1), z);
  return o.ir.CreateFDiv(numerator, o.ir.CreateFAdd(z, o.number(1)));
}

using Emit = Value* (*)(const Operation&);
using EmitFloat = Value* (*)(llvm::IRBuilder<>&, Value*);

struct Row {
  ScalarOp op;
  Emit on_floats = nullptr;
  Emit on_integers = nullptr;       ///< and on bool
  EmitFloat on_f32 = nullptr;       ///< instead of on_floats and libm
  std::string_view libm = {};       ///< where neither is given
};

template <intrinsic::ID kId>
Value* by_intrinsic(const Operation& o) { return o.intrinsic(kId); }

// clang-format off
constexpr Row kRows[] = {
    {ScalarOp::kConstFloat}, {ScalarOp::kConstInt}, {ScalarOp::kIndex}, {ScalarOp::kSize}, {ScalarOp::kLoad}, {ScalarOp::kTemp},  // leaves
    {ScalarOp::kNeg, [](const Operation& o) { return o.ir.CreateFNeg(o[0]); }, [](const Operation& o) { return o.ir.CreateNeg(o[0]); }},
    {ScalarOp::kAbs, by_intrinsic<intrinsic::fabs>,
     [](const Operation& o) -> Value* { return o.is_signed() ? o.ir.CreateBinaryIntrinsic(intrinsic::abs, o[0], o.ir.getFalse()) : o[0]; }},
    {ScalarOp::kSign, float_sign, integer_sign},
    {.op = ScalarOp::kExp, .on_f32 = emit_exp, .libm = "exp"},
    {.op = ScalarOp::kLog, .on_f32 = emit_log, .libm = "log"},
    {ScalarOp::kSqrt, by_intrinsic<intrinsic::sqrt>},
    {.op = ScalarOp::kTanh, .on_f32 = emit_tanh, .libm = "tanh"},
    {.op = ScalarOp::kSigmoid, .on_floats = double_sigmoid, .on_f32 = emit_sigmoid},
    {.op = ScalarOp::kErf, .on_f32 = emit_erf, .libm = "erf"},
    {.op = ScalarOp::kSin, .libm = "sin"}, {.op = ScalarOp::kCos, .libm = "cos"}, {.op = ScalarOp::kTan, .libm = "tan"},
    {.op = ScalarOp::kAsin, .libm = "asin"}, {.op = ScalarOp::kAcos, .libm = "acos"}, {.op = ScalarOp::kAtan, .libm = "atan"},
    {.op = ScalarOp::kSinh, .libm = "sinh"}, {.op = ScalarOp::kCosh, .libm = "cosh"},
    {.op = ScalarOp::kAsinh, .libm = "asinh"}, {.op = ScalarOp::kAcosh, .libm = "acosh"}, {.op = ScalarOp::kAtanh, .libm = "atanh"},
    {.op = ScalarOp::kLog1p, .libm = "log1p"}, {.op = ScalarOp::kExpm1, .libm = "expm1"},
    {ScalarOp::kFloor, by_intrinsic<intrinsic::floor>}, {ScalarOp::kCeil, by_intrinsic<intrinsic::ceil>},
    {ScalarOp::kRound, by_intrinsic<intrinsic::roundeven>}, {ScalarOp::kTrunc, by_intrinsic<intrinsic::trunc>},
    {ScalarOp::kNot, nullptr, [](const Operation& o) { return o.ir.CreateNot(o[0]); }},
    {ScalarOp::kBitNot, nullptr, [](const Operation& o) { return o.ir.CreateNot(o[0]); }},
    {ScalarOp::kIsNan, [](const Operation& o) { return o.ir.CreateFCmpUNO(o[0], o[0]); }},
    {ScalarOp::kIsInf, [](const Operation& o) { return o.ir.CreateFCmpOEQ(o.intrinsic(intrinsic::fabs), o.number(std::numeric_limits<double>::infinity())); }},
    {ScalarOp::kCast, cast_from_float, cast_from_integer},
    {ScalarOp::kRoundTo},  // backends/llvm/storage.h
    {ScalarOp::kAdd, [](const Operation& o) { return o.ir.CreateFAdd(o[0], o[1]); }, [](const Operation& o) { return o.ir.CreateAdd(o[0], o[1]); }},
    {ScalarOp::kSub, [](const Operation& o) { return o.ir.CreateFSub(o[0], o[1]); }, [](const Operation& o) { return o.ir.CreateSub(o[0], o[1]); }},
    {ScalarOp::kMul, [](const Operation& o) { return o.ir.CreateFMul(o[0], o[1]); }, [](const Operation& o) { return o.ir.CreateMul(o[0], o[1]); }},
    {ScalarOp::kDiv, [](const Operation& o) { return o.ir.CreateFDiv(o[0], o[1]); }, quotient},
    {ScalarOp::kFloorDiv, float_floor_quotient, floor_quotient},
    {ScalarOp::kMod, float_mod, floor_remainder},
    {ScalarOp::kFmod, [](const Operation& o) { return o.ir.CreateFRem(o[0], o[1]); }, remainder},
    {ScalarOp::kPow, float_power, integer_power},
    {ScalarOp::kMax, by_intrinsic<intrinsic::maximum>, [](const Operation& o) { return integer_extreme(o, true); }},
    {ScalarOp::kMin, by_intrinsic<intrinsic::minimum>, [](const Operation& o) { return integer_extreme(o, false); }},
    {ScalarOp::kEq, compare_floats<llvm::CmpInst::FCMP_OEQ>, compare_integers<llvm::CmpInst::ICMP_EQ, llvm::CmpInst::ICMP_EQ>},
    {ScalarOp::kNe, compare_floats<llvm::CmpInst::FCMP_UNE>, compare_integers<llvm::CmpInst::ICMP_NE, llvm::CmpInst::ICMP_NE>},
    {ScalarOp::kLt, compare_floats<llvm::CmpInst::FCMP_OLT>, compare_integers<llvm::CmpInst::ICMP_SLT, llvm::CmpInst::ICMP_ULT>},
    {ScalarOp::kLe, compare_floats<llvm::CmpInst::FCMP_OLE>, compare_integers<llvm::CmpInst::ICMP_SLE, llvm::CmpInst::ICMP_ULE>},
    {ScalarOp::kGt, compare_floats<llvm::CmpInst::FCMP_OGT>, compare_integers<llvm::CmpInst::ICMP_SGT, llvm::CmpInst::ICMP_UGT>},
    {ScalarOp::kGe, compare_floats<llvm::CmpInst::FCMP_OGE>, compare_integers<llvm::CmpInst::ICMP_SGE, llvm::CmpInst::ICMP_UGE>},
    {ScalarOp::kAnd, nullptr, [](const Operation& o) { return o.ir.CreateAnd(o[0], o[1]); }},
    {ScalarOp::kOr, nullptr, [](const Operation& o) { return o.ir.CreateOr(o[0], o[1]); }},
    {ScalarOp::kXor, nullptr, [](const Operation& o) { return o.ir.CreateXor(o[0], o[1]); }},
    {ScalarOp::kBitAnd, nullptr, [](const Operation& o) { return o.ir.CreateAnd(o[0], o[1]); }},
    {ScalarOp::kBitOr, nullptr, [](const Operation& o) { return o.ir.CreateOr(o[0], o[1]); }},
    {ScalarOp::kBitXor, nullptr, [](const Operation& o) { return o.ir.CreateXor(o[0], o[1]); }},
    {ScalarOp::kShiftLeft, nullptr, [](const Operation& o) { return bounded_shift(o, [&](Value* by) { return o.ir.CreateShl(o[0], by); }); }},
    {ScalarOp::kShiftRight, nullptr,
     [](const Operation& o) { return bounded_shift(o, [&](Value* by) { return o.is_signed() ? o.ir.CreateAShr(o[0], by) : o.ir.CreateLShr(o[0], by); }); }},
    {ScalarOp::kSelect, choose, choose},
};
// clang-format on

constexpr std::size_t kOpCount = 0
#define HONE_SCALAR_OP(name, operands, text) +1
    HONE_SCALAR_OPS(HONE_SCALAR_OP)
#undef HONE_SCALAR_OP
    ;

constexpr bool rows_in_order() {
  for (std::size_t i = 0; i < std::size(kRows); ++i)
    if (static_cast<std::size_t>(kRows[i].op) != i) return false;
  return std::size(kRows) == kOpCount;
}
static_assert(rows_in_order(), "one row per ScalarOp, in the order of HONE_SCALAR_OPS");

}  // namespace

Value* emit_operation(llvm::IRBuilder<>& ir, ScalarOp op, DType operand_type, DType result_type, std::span<Value* const> operands) {
  const Row& row = kRows[static_cast<std::size_t>(op)];
  const Operation operation{ir, operands, operand_type, result_type};
  const bool floats = is_float(operand_type);
  if (floats and operand_type != DType::kF64 and row.on_f32 != nullptr) return row.on_f32(ir, operands[0]);
  if (const Emit emit = floats ? row.on_floats : row.on_integers; emit != nullptr) return emit(operation);
  HONE_CHECK(floats and not row.libm.empty(), std::string(info(op).name) + " has no code for " + std::string(to_string(operand_type)));
  return call_libm(operation, row.libm);
}

bool is_long_chain(ScalarOp op) { return kRows[static_cast<std::size_t>(op)].on_f32 != nullptr; }

Value* emit_constant(llvm::IRBuilder<>& ir, DType dtype, double float_value, std::int64_t int_value) {
  llvm::Type* type = value_type(ir.getContext(), dtype);
  if (dtype == DType::kF64) return llvm::ConstantFP::get(type, float_value);
  if (is_float(dtype)) return llvm::ConstantFP::get(ir.getContext(), llvm::APFloat(static_cast<float>(float_value)));
  return llvm::ConstantInt::get(type, static_cast<std::uint64_t>(int_value), true);
}

Value* reduction_start(llvm::IRBuilder<>& ir, ReduceKind kind, DType value_type) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (kind) {
    case ReduceKind::kSum: return emit_constant(ir, value_type, 0, 0);
    case ReduceKind::kProd: return emit_constant(ir, value_type, 1, 1);
    case ReduceKind::kMax: case ReduceKind::kArgMax: return emit_constant(ir, value_type, -infinity, scalar_math::lowest(value_type));
    case ReduceKind::kMin: case ReduceKind::kArgMin: return emit_constant(ir, value_type, infinity, scalar_math::highest(value_type));
  }
  internal_error(__FILE__, __LINE__, "a reduction of unknown kind");
}

}  // namespace hone
