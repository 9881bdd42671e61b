#include "ir/kernel/expr.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <optional>

#include "base/check.h"
#include "ir/kernel/scalar_math.h"

namespace hone {

namespace {

constexpr ScalarOpInfo kInfo[] = {
#define HONE_SCALAR_OP(name, operands, text) {text, operands},
    HONE_SCALAR_OPS(HONE_SCALAR_OP)
#undef HONE_SCALAR_OP
};

/// All that distinguishes one expression from another, as bytes.
std::string key_of(const Expr& expr) {
  std::string key;
  const auto append = [&key](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  append(expr.op);
  append(expr.dtype);
  append(expr.slot);
  for (const ExprId id : expr.operands) append(id.index);
  append(std::bit_cast<std::uint64_t>(expr.float_value));
  append(expr.int_value);
  append(expr.guard.index);
  for (const ExprId id : expr.index) append(id.index);
  if (expr.op == ScalarOp::kSize) key += expr.size.text();
  return key;
}

Expr operation(ScalarOp op, DType dtype, std::initializer_list<ExprId> operands = {}) {
  Expr expr;
  expr.op = op;
  expr.dtype = dtype;
  std::ranges::copy(operands, expr.operands);
  return expr;
}

Expr integer(DType dtype, std::int64_t value) {
  Expr expr = operation(ScalarOp::kConstInt, dtype);
  expr.int_value = scalar_math::wrap(dtype, value);
  return expr;
}

Expr real(DType dtype, double value) {
  Expr expr = operation(ScalarOp::kConstFloat, dtype);
  expr.float_value = value;
  return expr;
}

Expr zero(DType dtype) { return is_float(dtype) ? real(dtype, 0) : integer(dtype, 0); }

bool commutes(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAdd:
    case ScalarOp::kMul:
    case ScalarOp::kMax:
    case ScalarOp::kMin:
    case ScalarOp::kEq:
    case ScalarOp::kNe:
    case ScalarOp::kAnd:
    case ScalarOp::kOr:
    case ScalarOp::kXor:
    case ScalarOp::kBitAnd:
    case ScalarOp::kBitOr:
    case ScalarOp::kBitXor: return true;
    default: return false;
  }
}

/// What a new expression turns out to be: an expression that is there already, or a simpler new one.
struct Folded {
  ExprId same;
  std::optional<Expr> simpler;
};

/// Folding of one expression. Integers and bool only: floats keep every operation that was written.
class Folder {
 public:
  Folder(const ExprPool& pool, const Expr& expr) : pool_(pool), expr_(expr) {}

  std::optional<Folded> fold() const {
    switch (info(expr_.op).operands) {
      case 0: return leaf();
      case 1: return expr_.op == ScalarOp::kCast ? cast() : expr_.op == ScalarOp::kRoundTo ? round_to() : unary();
      case 2: return binary();
      default: return select();
    }
  }

 private:
  const Expr& operand(int i) const { return pool_[expr_.operands[i]]; }
  std::optional<std::int64_t> number(ExprId id) const {
    return id.valid() and pool_[id].op == ScalarOp::kConstInt ? std::optional(pool_[id].int_value) : std::nullopt;
  }
  std::optional<std::int64_t> number(int i) const { return number(expr_.operands[i]); }
  std::optional<Folded> is(int i) const { return Folded{expr_.operands[i], {}}; }
  std::optional<Folded> is(Expr simpler) const { return Folded{{}, std::move(simpler)}; }

  std::optional<Folded> leaf() const {
    if (expr_.op == ScalarOp::kSize and expr_.size.is_constant()) return is(integer(DType::kI64, expr_.size.value()));
    if (const auto guard = number(expr_.guard); guard and expr_.op == ScalarOp::kLoad) {
      if (*guard == 0) return is(zero(expr_.dtype));
      Expr always = expr_;
      always.guard = {};
      return is(std::move(always));
    }
    return std::nullopt;
  }

  std::optional<Folded> cast() const {
    const Expr& x = operand(0);
    if (x.dtype == expr_.dtype) return is(0);
    if (x.op == ScalarOp::kConstInt) {
      if (is_float(expr_.dtype)) return is(real(expr_.dtype, scalar_math::to_float(x.dtype, x.int_value)));
      return is(integer(expr_.dtype, x.int_value));
    }
    if (x.op == ScalarOp::kConstFloat) {
      if (not is_float(expr_.dtype)) return is(integer(expr_.dtype, scalar_math::to_integer(expr_.dtype, x.float_value)));
      return is(real(expr_.dtype, x.dtype == DType::kF32 ? static_cast<float>(x.float_value) : x.float_value));
    }
    return std::nullopt;
  }

  std::optional<Folded> round_to() const {
    if (operand(0).op == ScalarOp::kRoundTo and operand(0).slot == expr_.slot) return is(0);
    const auto x = number(0);
    return x ? is(integer(expr_.dtype, scalar_math::wrap(StorageRounding::unpacked(expr_.slot).dtype, *x))) : std::nullopt;
  }

  std::optional<Folded> unary() const {
    if (const auto x = number(0)) return is(integer(expr_.dtype, scalar_math::integer_unary(expr_.op, operand(0).dtype, *x)));
    const bool twice = operand(0).op == expr_.op and not is_float(expr_.dtype);
    if (twice and (expr_.op == ScalarOp::kNot or expr_.op == ScalarOp::kBitNot or expr_.op == ScalarOp::kNeg)) return Folded{operand(0).operands[0], {}};
    return std::nullopt;
  }

  std::optional<Folded> binary() const {
    const DType type = operand(0).dtype;
    if (is_float(type)) return std::nullopt;
    const auto a = number(0), b = number(1);
    if (a and b) return is(integer(expr_.dtype, scalar_math::integer_binary(expr_.op, type, *a, *b)));
    if (a and commutes(expr_.op)) {  // constants stand right
      Expr swapped = expr_;
      std::swap(swapped.operands[0], swapped.operands[1]);
      return is(std::move(swapped));
    }
    if (expr_.operands[0] == expr_.operands[1]) return same_operands();
    if (b) return with_number(*b);
    if (a == 0 and (expr_.op == ScalarOp::kDiv or expr_.op == ScalarOp::kFloorDiv or expr_.op == ScalarOp::kMod or expr_.op == ScalarOp::kFmod)) return is(0);
    return std::nullopt;
  }

  std::optional<Folded> same_operands() const {
    switch (expr_.op) {
      case ScalarOp::kSub:
      case ScalarOp::kXor:
      case ScalarOp::kBitXor:
      case ScalarOp::kNe:
      case ScalarOp::kLt:
      case ScalarOp::kGt: return is(integer(expr_.dtype, 0));
      case ScalarOp::kEq:
      case ScalarOp::kLe:
      case ScalarOp::kGe: return is(integer(expr_.dtype, 1));
      case ScalarOp::kMax:
      case ScalarOp::kMin:
      case ScalarOp::kAnd:
      case ScalarOp::kOr:
      case ScalarOp::kBitAnd:
      case ScalarOp::kBitOr: return is(0);
      default: return std::nullopt;
    }
  }

  /// x op b.
  std::optional<Folded> with_number(std::int64_t b) const {
    switch (expr_.op) {
      case ScalarOp::kAdd:
      case ScalarOp::kSub: return b == 0 ? is(0) : cancelled(b);
      case ScalarOp::kBitOr:
      case ScalarOp::kBitXor:
      case ScalarOp::kShiftLeft:
      case ScalarOp::kShiftRight:
      case ScalarOp::kXor: return b == 0 ? is(0) : std::nullopt;
      case ScalarOp::kMul: return b == 1 ? is(0) : b == 0 ? is(1) : std::nullopt;
      case ScalarOp::kDiv:
      case ScalarOp::kFloorDiv: return b == 1 ? is(0) : b == 0 ? is(1) : std::nullopt;
      case ScalarOp::kMod:
      case ScalarOp::kFmod: return b == 1 or b == 0 ? is(integer(expr_.dtype, 0)) : std::nullopt;
      case ScalarOp::kBitAnd: return b == 0 ? is(1) : std::nullopt;
      case ScalarOp::kAnd: return b == 0 ? is(1) : is(0);
      case ScalarOp::kOr: return b == 0 ? is(0) : is(1);
      default: return std::nullopt;
    }
  }

  /// (x + c) - c and (x - c) + c, as padding and unpadding leave them.
  std::optional<Folded> cancelled(std::int64_t b) const {
    const Expr& x = operand(0);
    if (x.op != ScalarOp::kAdd and x.op != ScalarOp::kSub) return std::nullopt;
    const auto c = number(x.operands[1]);
    if (not c) return std::nullopt;
    const std::int64_t negated = scalar_math::integer_unary(ScalarOp::kNeg, x.dtype, b);
    if ((x.op == expr_.op ? negated : b) != *c) return std::nullopt;
    return Folded{x.operands[0], {}};
  }

  std::optional<Folded> select() const {
    if (const auto condition = number(0)) return is(*condition != 0 ? 1 : 2);
    if (expr_.operands[1] == expr_.operands[2]) return is(1);
    return std::nullopt;
  }

  const ExprPool& pool_;
  const Expr& expr_;
};

std::string describe(ScalarOp op, Scalar a, Scalar b) {
  return std::string(info(op).name) + " of " + std::string(to_string(a.dtype())) + " and " + std::string(to_string(b.dtype()));
}

bool takes_float(ScalarOp op) { return (op >= ScalarOp::kExp and op <= ScalarOp::kTrunc) or op == ScalarOp::kIsNan or op == ScalarOp::kIsInf; }

/// May `op` be applied to operands of `type`?
bool accepts(ScalarOp op, DType type) {
  if (takes_float(op)) return is_float(type);
  switch (op) {
    case ScalarOp::kNeg:
    case ScalarOp::kAbs:
    case ScalarOp::kSign: return type != DType::kBool;
    case ScalarOp::kNot:
    case ScalarOp::kAnd:
    case ScalarOp::kOr:
    case ScalarOp::kXor: return type == DType::kBool;
    case ScalarOp::kBitNot:
    case ScalarOp::kBitAnd:
    case ScalarOp::kBitOr:
    case ScalarOp::kBitXor:
    case ScalarOp::kShiftLeft:
    case ScalarOp::kShiftRight: return is_integer(type);
    case ScalarOp::kMax:
    case ScalarOp::kMin:
    case ScalarOp::kCast:
    case ScalarOp::kRoundTo: return true;
    default: return is_comparison(op) or type != DType::kBool;
  }
}

}  // namespace

const ScalarOpInfo& info(ScalarOp op) { return kInfo[static_cast<std::size_t>(op)]; }

ExprId ExprPool::add(Expr expr) {
  const int operands = info(expr.op).operands;
  for (int i = 0; i < 3; ++i) {
    const ExprId operand = expr.operands[i];
    HONE_CHECK(i < operands ? operand.index < exprs_.size() : not operand.valid(), "an expression whose operands are not in its pool");
  }
  if (std::optional<Folded> folded = Folder(*this, expr).fold()) return folded->simpler ? add(std::move(*folded->simpler)) : folded->same;
  const auto [at, is_new] = ids_.try_emplace(key_of(expr), ExprId(exprs_.size()));
  if (is_new) exprs_.push_back(std::move(expr));
  return at->second;
}

namespace expr {

Scalar constant(ExprPool& pool, DType dtype, double value) {
  dtype = arithmetic_type(dtype);
  return {pool, pool.add(is_float(dtype) ? real(dtype, value) : integer(dtype, scalar_math::to_integer(dtype, value)))};
}

Scalar constant_int(ExprPool& pool, DType dtype, std::int64_t value) {
  dtype = arithmetic_type(dtype);
  return {pool, pool.add(is_float(dtype) ? real(dtype, static_cast<double>(value)) : integer(dtype, value))};
}

Scalar size(ExprPool& pool, const Dim& dim) {
  if (dim.is_constant()) return constant_int(pool, DType::kI64, dim.value());
  return {pool, pool.add({.op = ScalarOp::kSize, .dtype = DType::kI64, .size = dim})};
}

Scalar like(Scalar like, double value) { return constant(like.pool(), like.dtype(), value); }

Scalar unary(ScalarOp op, Scalar x) {
  HONE_CHECK(info(op).operands == 1 and op != ScalarOp::kCast and op != ScalarOp::kRoundTo, std::string(info(op).name) + " built as a unary expression");
  HONE_CHECK(accepts(op, x.dtype()), std::string(info(op).name) + " of " + std::string(to_string(x.dtype())));
  const bool gives_bool = op == ScalarOp::kIsNan or op == ScalarOp::kIsInf;
  return {x.pool(), x.pool().add(operation(op, gives_bool ? DType::kBool : x.dtype(), {x.id()}))};
}

Scalar binary(ScalarOp op, Scalar a, Scalar b) {
  HONE_CHECK(info(op).operands == 2, std::string(info(op).name) + " built as a binary expression");
  HONE_CHECK(&a.pool() == &b.pool(), "operands from two pools");
  HONE_CHECK(a.dtype() == b.dtype() and accepts(op, a.dtype()), describe(op, a, b));
  return {a.pool(), a.pool().add(operation(op, is_comparison(op) ? DType::kBool : a.dtype(), {a.id(), b.id()}))};
}

Scalar select(Scalar condition, Scalar a, Scalar b) {
  HONE_CHECK(condition.dtype() == DType::kBool and a.dtype() == b.dtype(), describe(ScalarOp::kSelect, a, b));
  return {a.pool(), a.pool().add(operation(ScalarOp::kSelect, a.dtype(), {condition.id(), a.id(), b.id()}))};
}

Scalar cast(Scalar x, DType to) { return {x.pool(), x.pool().add(operation(ScalarOp::kCast, arithmetic_type(to), {x.id()}))}; }

Scalar round_to(Scalar x, StorageRounding to) {
  if (not is_storage_only(to.dtype)) return cast(x, to.dtype);
  if (not is_float(to.dtype) or not is_float(x.dtype())) x = cast(x, to.dtype);
  Expr expr = operation(ScalarOp::kRoundTo, arithmetic_type(to.dtype), {x.id()});
  expr.slot = to.packed();
  return {x.pool(), x.pool().add(std::move(expr))};
}

Scalar to_store(Scalar x, DType dtype) {
  const Expr& rounded = x.pool()[x.id()];
  if (rounded.op != ScalarOp::kRoundTo or rounded.slot != StorageRounding{dtype}.packed()) return x;
  const Scalar inner(x.pool(), rounded.operands[0]);
  return inner.dtype() == x.dtype() ? inner : x;
}

}  // namespace expr

}  // namespace hone
