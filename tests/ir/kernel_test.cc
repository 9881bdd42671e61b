// Kernels: pseudo-code for people, size arguments, and the invariants that verify() holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "ir/op.h"
#include "ir/ops/ops.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Dim kRows = Dim::symbol("N");

Kernel kernel_for(const OpDef& op, const std::vector<Type>& types, Attrs attrs = {}) {
  Graph graph;
  Builder b(graph);
  std::vector<Val> operands;
  for (const Type& type : types) operands.push_back(b.input(Role::kInput, "x" + std::to_string(operands.size()), type));
  op.build(operands, std::move(attrs));
  return kernel_of(graph, NodeId(0));
}

TEST(KernelPrint, ReductionsStandInOneLine) {
  EXPECT_EQ(print(kernel_for(op::matmul, {{DType::kF32, {kRows, 784}}, {DType::kF32, {784, 10}}})),
            R"(kernel matmul(a: f32[N,784], b: f32[784,10]) -> y: f32[N,10]
  for n in N, m in 10:
    t0 = sum over k in 784: a[n, k] * b[k, m]
    y[n, m] = t0
)");
}

TEST(KernelPrint, ScatterAndGuards) {
  EXPECT_EQ(print(kernel_for(op::scatter_add, {{DType::kF32, {kRows, 2}}, {DType::kI64, {kRows}}}, {kAxis = 0, kShape = Shape{3, 2}})),
            R"(kernel scatter_add(x: f32[N,2], index: i64[N]) -> y: f32[3,2]
  for n in 3:
    over k in 2:
      y[n, k] = 0
    scatter over l in N, r in 2:
      let v0 = index[l] < 0 ? index[l] + 3 : index[l]
      if v0 >= 0 and v0 < 3: y[v0, r] += x[l, r]
)");
}

TEST(KernelPrint, LargeSharedExpressionsGetNames) {
  EXPECT_EQ(print(kernel_for(op::conv, {{DType::kF32, {kRows, 3, 32}}, {DType::kF32, {8, 3, 3}}},
                             {kStrides = Ints{2}, kDilations = Ints{1}, kPadsBegin = Shape{1}, kPadsEnd = Shape{1}, kGroups = 1})),
            R"(kernel conv(x: f32[N,3,32], w: f32[8,3,3]) -> y: f32[N,8,16]
  for n in N, m in 8, i in 16:
    over k in 3, l in 3:
      let v0 = i * 2 + l - 1
      t0 = sum of (x[n, k, v0] if v0 >= 0 else 0) * w[m, k, l]
    y[n, m, i] = t0
)");
}

TEST(KernelPrint, ParenthesesOnlyWhereNeeded) {
  Kernel kernel;
  kernel.name = "k";
  kernel.buffers = {{"y", DType::kF32, {}, Access::kWrite}};
  const Scalar a = expr::constant(kernel.exprs, DType::kF32, 2), b = expr::constant(kernel.exprs, DType::kF32, -0.5);
  const Scalar value = expr::select(expr::less(a + b, b), (a - (a - b)) * b, -expr::max(a, b) / (a * a));
  kernel.phases.push_back({{}, {}, {{0, {}, value.id(), {}}}, false});
  EXPECT_EQ(print(kernel), "kernel k() -> y: f32[]\n  y = 2 + -0.5 < -0.5 ? (2 - (2 - -0.5)) * -0.5 : -max(2, -0.5) / (2 * 2)\n");
}

TEST(Kernel, SizeArgumentsAreDistinctAndOrdered) {
  const Kernel kernel = kernel_for(op::concat, {{DType::kF32, {kRows, 2}}, {DType::kF32, {Dim::symbol("M"), 2}}}, {kAxis = 0});
  std::vector<std::string> texts;
  for (const Dim& dim : size_arguments(kernel)) texts.push_back(dim.text());
  EXPECT_THAT(texts, ElementsAre("M + N", "N", "M"));
}

/// y[n] = t0 with t0 = sum over k of x[n, k], whole and verified; each test breaks one thing.
class KernelVerifyTest : public testing::Test {
 protected:
  void SetUp() override {
    kernel = kernel_for(op::reduce_sum, {{DType::kF32, {kRows, 4}}}, {kAxes = Ints{1}});
    ASSERT_NO_THROW(verify(kernel));
  }
  void expect_broken(const char* invariant) {
    try {
      verify(kernel);
      FAIL() << "accepted:\n" << print(kernel);
    } catch (const InternalError& error) { EXPECT_THAT(error.what(), HasSubstr(std::string("invariant ") + invariant + ":")); }
  }
  ExprId index(std::uint32_t axis) {
    Expr expr;
    expr.op = ScalarOp::kIndex;
    expr.dtype = DType::kI64;
    expr.slot = axis;
    return kernel.exprs.add(expr);
  }
  Kernel kernel;
};

TEST_F(KernelVerifyTest, RefusesAnIdOutsideThePool) {
  kernel.phases[0].reductions[0].value = ExprId(1000);
  expect_broken("K1");
}
TEST_F(KernelVerifyTest, RefusesAnOuterAxisAsInner) {
  kernel.phases[0].inner = {0};
  expect_broken("K2");
}
TEST_F(KernelVerifyTest, RefusesAnIndexOfAnotherPhase) {
  kernel.phases[1].stores[0].index = {index(1)};
  expect_broken("K3");
}
TEST_F(KernelVerifyTest, RefusesAWrongNumberOfIndices) {
  kernel.phases[1].stores[0].index = {index(0), index(0)};
  expect_broken("K4");
}
TEST_F(KernelVerifyTest, RefusesATemporaryInItsOwnPhase) {
  std::swap(kernel.phases[0].stores, kernel.phases[1].stores);
  expect_broken("K5");
}
TEST_F(KernelVerifyTest, RefusesReductionsOutOfOrder) {
  kernel.phases[0].reductions[0].temp = 1;
  expect_broken("K6");
}
TEST_F(KernelVerifyTest, RefusesAStoreToWhatIsRead) {
  kernel.buffers[1].access = Access::kRead;
  expect_broken("K7");
}
TEST_F(KernelVerifyTest, RefusesAStoreOfAnotherType) {
  kernel.phases[1].stores[0].value = index(0);
  expect_broken("K7");
}
TEST_F(KernelVerifyTest, RefusesAddingOutsideScatter) {
  kernel.phases[1].stores[0].combine = Combine::kAdd;
  expect_broken("K8");
}
TEST_F(KernelVerifyTest, RefusesAScatterThatReadsTemporaries) {
  kernel.phases[1].scatter = true;
  expect_broken("K8");
}
TEST_F(KernelVerifyTest, RefusesAResultNobodyStores) {
  kernel.phases.pop_back();
  expect_broken("K9");
}

TEST(KernelVerify, EveryElementwiseKernelIsValid) {
  for (const OpDef* op : all_ops()) {
    if (op->scalar == nullptr or op->inputs.size() > 2) continue;
    const bool logic = op->name.starts_with("logical"), bits = op->name.starts_with("bit_") or op->name.starts_with("shift_");
    std::vector<Type> types(op->inputs.size(), {logic ? DType::kBool : bits ? DType::kI32 : DType::kF32, {kRows, 3}});
    if (*op == op::quantize) types[1].dtype = DType::kU8;  // the zero point
    EXPECT_NO_THROW(verify(kernel_for(*op, types, {kTo = DType::kF32}))) << op->name;
  }
}

}  // namespace
}  // namespace hone
