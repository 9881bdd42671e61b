// ExprPool: equal expressions are one, integer arithmetic folds, floats keep what was written; types are checked when building.
#include <gtest/gtest.h>

#include <cmath>

#include "base/check.h"
#include "ir/kernel/expr.h"
#include "ir/kernel/scalar_math.h"

namespace hone {
namespace {

class ExprTest : public testing::Test {
 protected:
  Scalar index(std::uint32_t axis) {
    Expr expr;
    expr.op = ScalarOp::kIndex;
    expr.dtype = DType::kI64;
    expr.slot = axis;
    return {pool, pool.add(expr)};
  }
  Scalar load(DType dtype, std::uint32_t buffer, Scalar at, Scalar guard = {}) {
    Expr expr;
    expr.op = ScalarOp::kLoad;
    expr.dtype = dtype;
    expr.slot = buffer;
    expr.index = {at.id()};
    if (guard.valid()) expr.guard = guard.id();
    return {pool, pool.add(expr)};
  }
  Scalar size(Dim dim) {
    Expr expr;
    expr.op = ScalarOp::kSize;
    expr.dtype = DType::kI64;
    expr.size = dim;
    return {pool, pool.add(expr)};
  }
  Scalar integer(std::int64_t value, DType dtype = DType::kI64) { return expr::constant_int(pool, dtype, value); }
  void expect_number(Scalar x, std::int64_t value) {
    ASSERT_EQ(pool[x.id()].op, ScalarOp::kConstInt);
    EXPECT_EQ(pool[x.id()].int_value, value);
  }
  void expect_same(Scalar a, Scalar b) { EXPECT_EQ(a.id(), b.id()); }

  ExprPool pool;
  Scalar i = index(0), j = index(1);
  Scalar x = load(DType::kF32, 0, i);
};

TEST_F(ExprTest, EqualExpressionsAreOne) {
  expect_same(index(0), i);
  expect_same(x * x + 1.0, x * x + 1.0);
  EXPECT_NE((x + 1.0).id(), (x + 2.0).id());
  EXPECT_NE(load(DType::kF32, 1, i).id(), x.id());
  EXPECT_NE(size(Dim::symbol("N")).id(), size(Dim::symbol("M")).id());
}

TEST_F(ExprTest, IntegerIdentitiesFold) {
  expect_same(i + 0.0, i);
  expect_same(0.0 + i, i);
  expect_same(i * 1.0, i);
  expect_number(i * 0.0, 0);
  expect_number(i - i, 0);
  expect_same(expr::floordiv(i, integer(1)), i);
  expect_number(expr::mod(i, integer(1)), 0);
  expect_same((i + 3.0) - 3.0, i);
  expect_same((i - 3.0) + 3.0, i);
  EXPECT_NE(((i + 3.0) + 3.0).id(), i.id());
  EXPECT_NE(((i - 3.0) - 3.0).id(), i.id());
}

TEST_F(ExprTest, IntegerConstantsFoldAndWrap) {
  expect_number(integer(7) * integer(6), 42);
  expect_number(expr::floordiv(integer(-7), integer(2)), -4);
  expect_number(integer(-7) / integer(2), -3);
  expect_number(integer(7) / integer(0), 0);
  expect_number(integer(127, DType::kI8) + integer(1, DType::kI8), -128);
  expect_number(expr::cast(integer(300), DType::kU8), 44);
  expect_number(size(28), 28);
}

TEST_F(ExprTest, FloatsKeepEveryOperation) {
  EXPECT_EQ(pool[(x + 0.0).id()].op, ScalarOp::kAdd);  // -0 + 0 is 0
  EXPECT_EQ(pool[(x * 0.0).id()].op, ScalarOp::kMul);  // NaN * 0 is NaN
}

TEST_F(ExprTest, LogicAndSelectFold) {
  const Scalar less = expr::less(i, j), yes = integer(1, DType::kBool), no = integer(0, DType::kBool);
  expect_same(expr::logical_and(less, yes), less);
  expect_number(expr::logical_and(no, less), 0);
  expect_same(expr::logical_or(no, less), less);
  expect_same(expr::logical_not(expr::logical_not(less)), less);
  expect_same(expr::select(yes, i, j), i);
  expect_same(expr::select(less, i, i), i);
  expect_number(expr::less(i, i), 0);
}

TEST_F(ExprTest, GuardsThatAreConstantDisappear) {
  const Scalar yes = integer(1, DType::kBool), no = integer(0, DType::kBool);
  expect_same(load(DType::kF32, 0, i, yes), x);
  const Expr& never = pool[load(DType::kF32, 0, i, no).id()];
  EXPECT_EQ(never.op, ScalarOp::kConstFloat);
  EXPECT_EQ(never.float_value, 0);
}

TEST_F(ExprTest, StorageTypesAreWidened) {
  EXPECT_EQ(expr::constant(pool, DType::kBF16, 1).dtype(), DType::kF32);
  EXPECT_EQ(expr::cast(i, DType::kF16).dtype(), DType::kF32);
}

TEST_F(ExprTest, MixedTypesAreRefused) {
  EXPECT_THROW(x + i, InternalError);
  EXPECT_THROW(expr::exp(i), InternalError);
  EXPECT_THROW(expr::logical_not(i), InternalError);
  EXPECT_THROW(expr::select(i, x, x), InternalError);
  ExprPool other;
  EXPECT_THROW(x + expr::constant(other, DType::kF32, 1), InternalError);
}

TEST(ScalarMath, CastsSaturate) {
  using scalar_math::to_integer;
  EXPECT_EQ(to_integer(DType::kI8, 300), 127);
  EXPECT_EQ(to_integer(DType::kI8, -1e30), -128);
  EXPECT_EQ(to_integer(DType::kU8, -5), 0);
  EXPECT_EQ(to_integer(DType::kI64, 1e30), INT64_MAX);
  EXPECT_EQ(to_integer(DType::kI32, -2.9), -2);
  EXPECT_EQ(to_integer(DType::kI32, NAN), 0);
  EXPECT_EQ(to_integer(DType::kBool, NAN), 1);
  EXPECT_EQ(static_cast<std::uint64_t>(to_integer(DType::kU64, 0x1p63)), std::uint64_t{1} << 63);
}

TEST(ScalarMath, IntegerEdges) {
  using scalar_math::integer_binary;
  EXPECT_EQ(integer_binary(ScalarOp::kDiv, DType::kI64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(integer_binary(ScalarOp::kMod, DType::kI64, -7, 3), 2);
  EXPECT_EQ(integer_binary(ScalarOp::kFmod, DType::kI64, -7, 3), -1);
  EXPECT_EQ(integer_binary(ScalarOp::kMod, DType::kI64, 7, 0), 0);
  EXPECT_EQ(integer_binary(ScalarOp::kPow, DType::kI64, 3, 4), 81);
  EXPECT_EQ(integer_binary(ScalarOp::kPow, DType::kI64, 2, -1), 0);
  EXPECT_EQ(integer_binary(ScalarOp::kShiftLeft, DType::kI8, 1, 8), 0);
  EXPECT_EQ(integer_binary(ScalarOp::kShiftRight, DType::kI64, -8, 1), -4);
  EXPECT_EQ(integer_binary(ScalarOp::kLt, DType::kU64, -1, 1), 0);
}

TEST(ScalarMath, FloatMaxGivesNanForEitherOperand) {
  for (const ScalarOp op : {ScalarOp::kMax, ScalarOp::kMin}) {
    EXPECT_TRUE(std::isnan(scalar_math::float_binary(op, NAN, 1)));
    EXPECT_TRUE(std::isnan(scalar_math::float_binary(op, 1, NAN)));
  }
  EXPECT_EQ(scalar_math::float_binary(ScalarOp::kMod, -7, 3), 2);
  EXPECT_EQ(scalar_math::float_unary(ScalarOp::kRound, 2.5), 2);
}

}  // namespace
}  // namespace hone
