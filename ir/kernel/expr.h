// Scalar expressions: what a kernel computes at one index. A hash-consed DAG in one pool per kernel.
//
// Types: floats, integers and bool as in DType; index arithmetic is i64. Some types are storage only: a load widens them (to f32 or i32), a store rounds to nearest
// (integers keep their low bits).
// Operands of one operation have one type (build through Scalar, which checks); comparisons and logic give bool.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dims.h"
#include "base/float_format.h"
#include "ir/ids.h"

namespace hone {

// name, operand count, text. The one list: the interpreter, the emitter and the printer have a row each.
// Semantics: integer division truncates, and by 0 gives 0; fmod/mod as named; max/min give NaN if either operand is; pow as C's pow;
// shifts by the width or more give 0; cast float->int truncates and saturates, NaN gives 0; cast to bool is x != 0.
// clang-format off
#define HONE_SCALAR_OPS(X)                                                                                            \
  X(kConstFloat, 0, "const")  X(kConstInt, 0, "const")  X(kIndex, 0, "index")  X(kSize, 0, "size")                    \
  X(kLoad, 0, "load")  X(kTemp, 0, "temp")                                                                            \
  X(kNeg, 1, "neg")  X(kAbs, 1, "abs")  X(kSign, 1, "sign")  X(kExp, 1, "exp")  X(kLog, 1, "log")  X(kSqrt, 1, "sqrt") \
  X(kTanh, 1, "tanh")  X(kSigmoid, 1, "sigmoid")  X(kErf, 1, "erf")                                                   \
  X(kSin, 1, "sin")  X(kCos, 1, "cos")  X(kTan, 1, "tan")  X(kAsin, 1, "asin")  X(kAcos, 1, "acos")  X(kAtan, 1, "atan") \
  X(kSinh, 1, "sinh")  X(kCosh, 1, "cosh")  X(kAsinh, 1, "asinh")  X(kAcosh, 1, "acosh")  X(kAtanh, 1, "atanh")       \
  X(kLog1p, 1, "log1p")  X(kExpm1, 1, "expm1")                                                                        \
  X(kFloor, 1, "floor")  X(kCeil, 1, "ceil")  X(kRound, 1, "round" /* half to even */)  X(kTrunc, 1, "trunc")         \
  X(kNot, 1, "not")  X(kBitNot, 1, "bitnot")  X(kIsNan, 1, "is_nan")  X(kIsInf, 1, "is_inf")  X(kCast, 1, "cast")     \
  X(kRoundTo, 1, "round_to" /* as if stored by slot, a packed StorageRounding, and loaded */)                         \
  X(kAdd, 2, "+")  X(kSub, 2, "-")  X(kMul, 2, "*")  X(kDiv, 2, "/")  X(kFloorDiv, 2, "//")  X(kMod, 2, "mod" /* sign of the divisor */) \
  X(kFmod, 2, "fmod" /* sign of the dividend */)  X(kPow, 2, "pow")  X(kMax, 2, "max")  X(kMin, 2, "min")             \
  X(kEq, 2, "==")  X(kNe, 2, "!=")  X(kLt, 2, "<")  X(kLe, 2, "<=")  X(kGt, 2, ">")  X(kGe, 2, ">=")                  \
  X(kAnd, 2, "and")  X(kOr, 2, "or")  X(kXor, 2, "xor")                                                               \
  X(kBitAnd, 2, "&")  X(kBitOr, 2, "|")  X(kBitXor, 2, "^")  X(kShiftLeft, 2, "<<")  X(kShiftRight, 2, ">>")          \
  X(kSelect, 3, "select" /* condition ? a : b */)
// clang-format on

enum class ScalarOp : std::uint8_t {
#define HONE_SCALAR_OP(name, operands, text) name,
  HONE_SCALAR_OPS(HONE_SCALAR_OP)
#undef HONE_SCALAR_OP
};

struct ScalarOpInfo {
  std::string_view name;
  int operands;
};
const ScalarOpInfo& info(ScalarOp op);

using ExprId = Id<struct ExprTag>;

struct Expr {
  ScalarOp op;
  DType dtype;
  std::uint32_t slot = 0;            ///< kIndex: axis; kLoad: buffer; kTemp: reduction temporary; kRoundTo: how
  ExprId operands[3] = {};
  double float_value = 0;            ///< kConstFloat
  std::int64_t int_value = 0;        ///< kConstInt (also bool)
  Dim size = {};                     ///< kSize
  std::vector<ExprId> index = {};    ///< kLoad: one i64 per axis of the buffer
  ExprId guard = {};                 ///< kLoad: where it is false nothing is read and the value is 0; invalid: always read
};

/// The expressions of one kernel. Operands come before their users, so ids are a topological order.
class ExprPool {
 public:
  const Expr& operator[](ExprId id) const { return exprs_[id.index]; }
  std::size_t size() const { return exprs_.size(); }
  /// The id of an expression equal to `expr`, new or old. Folds index arithmetic on constants, and x + 0, x * 1, x * 0 on integers.
  ExprId add(Expr expr);

 private:
  std::deque<Expr> exprs_;
  std::unordered_map<std::string, ExprId> ids_;
};

/// An expression with its pool, so that formulas read as formulas.
class Scalar {
 public:
  Scalar() = default;
  Scalar(ExprPool& pool, ExprId id) : pool_(&pool), id_(id) {}
  bool valid() const { return id_.valid(); }
  ExprId id() const { return id_; }
  ExprPool& pool() const { return *pool_; }
  DType dtype() const { return (*pool_)[id_].dtype; }

 private:
  ExprPool* pool_ = nullptr;
  ExprId id_;
};

namespace expr {

Scalar constant(ExprPool& pool, DType dtype, double value);
Scalar constant_int(ExprPool& pool, DType dtype, std::int64_t value);
/// A size, as an index: i64.
Scalar size(ExprPool& pool, const Dim& dim);
/// A constant of like's type.
Scalar like(Scalar like, double value);
Scalar unary(ScalarOp op, Scalar x);
Scalar binary(ScalarOp op, Scalar a, Scalar b);
Scalar select(Scalar condition, Scalar a, Scalar b);
Scalar cast(Scalar x, DType to);
/// x, a number of any type, as an element of `to.dtype`: f32 and f64 are rounded once. For a type that is not storage only this is a cast.
Scalar round_to(Scalar x, StorageRounding to);
/// What to store into memory of `dtype` to have x there: x without a rounding that the store does anyway.
Scalar to_store(Scalar x, DType dtype);

#define HONE_UNARY(name, op) \
  inline Scalar name(Scalar x) { return unary(ScalarOp::op, x); }
#define HONE_BINARY(name, op) \
  inline Scalar name(Scalar a, Scalar b) { return binary(ScalarOp::op, a, b); }
HONE_UNARY(abs, kAbs) HONE_UNARY(sign, kSign) HONE_UNARY(exp, kExp) HONE_UNARY(log, kLog) HONE_UNARY(sqrt, kSqrt) HONE_UNARY(tanh, kTanh)
HONE_UNARY(sigmoid, kSigmoid) HONE_UNARY(erf, kErf) HONE_UNARY(sin, kSin) HONE_UNARY(cos, kCos) HONE_UNARY(tan, kTan) HONE_UNARY(asin, kAsin)
HONE_UNARY(acos, kAcos) HONE_UNARY(atan, kAtan) HONE_UNARY(sinh, kSinh) HONE_UNARY(cosh, kCosh) HONE_UNARY(asinh, kAsinh) HONE_UNARY(acosh, kAcosh)
HONE_UNARY(atanh, kAtanh) HONE_UNARY(log1p, kLog1p) HONE_UNARY(expm1, kExpm1) HONE_UNARY(floor, kFloor) HONE_UNARY(ceil, kCeil)
HONE_UNARY(round, kRound) HONE_UNARY(trunc, kTrunc) HONE_UNARY(is_nan, kIsNan) HONE_UNARY(is_inf, kIsInf) HONE_UNARY(logical_not, kNot)
HONE_UNARY(bit_not, kBitNot)
HONE_BINARY(floordiv, kFloorDiv) HONE_BINARY(mod, kMod) HONE_BINARY(fmod, kFmod) HONE_BINARY(pow, kPow) HONE_BINARY(max, kMax) HONE_BINARY(min, kMin)
HONE_BINARY(equal, kEq) HONE_BINARY(not_equal, kNe) HONE_BINARY(less, kLt) HONE_BINARY(less_equal, kLe) HONE_BINARY(greater, kGt)
HONE_BINARY(greater_equal, kGe) HONE_BINARY(logical_and, kAnd) HONE_BINARY(logical_or, kOr) HONE_BINARY(logical_xor, kXor)
HONE_BINARY(bit_and, kBitAnd) HONE_BINARY(bit_or, kBitOr) HONE_BINARY(bit_xor, kBitXor) HONE_BINARY(shift_left, kShiftLeft) HONE_BINARY(shift_right, kShiftRight)
#undef HONE_UNARY
#undef HONE_BINARY

}  // namespace expr

inline Scalar operator+(Scalar a, Scalar b) { return expr::binary(ScalarOp::kAdd, a, b); }
inline Scalar operator-(Scalar a, Scalar b) { return expr::binary(ScalarOp::kSub, a, b); }
inline Scalar operator*(Scalar a, Scalar b) { return expr::binary(ScalarOp::kMul, a, b); }
inline Scalar operator/(Scalar a, Scalar b) { return expr::binary(ScalarOp::kDiv, a, b); }
inline Scalar operator-(Scalar a) { return expr::unary(ScalarOp::kNeg, a); }
inline Scalar operator+(Scalar a, double b) { return a + expr::like(a, b); }
inline Scalar operator-(Scalar a, double b) { return a - expr::like(a, b); }
inline Scalar operator*(Scalar a, double b) { return a * expr::like(a, b); }
inline Scalar operator/(Scalar a, double b) { return a / expr::like(a, b); }
inline Scalar operator+(double a, Scalar b) { return expr::like(b, a) + b; }
inline Scalar operator-(double a, Scalar b) { return expr::like(b, a) - b; }
inline Scalar operator*(double a, Scalar b) { return expr::like(b, a) * b; }
inline Scalar operator/(double a, Scalar b) { return expr::like(b, a) / b; }

}  // namespace hone
