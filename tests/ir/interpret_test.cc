// The interpreter: kernels, nodes and graphs over real elements, with symbolic sizes, empty extents, ties, NaN, scatter and double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/bind_symbols.h"
#include "base/check.h"
#include "ir/kernel/interpret.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "tests/support/tensor_values.h"

namespace hone {
namespace {

using test::elements;
using testing::ElementsAre;
using testing::HasSubstr;

const Dim kN = Dim::symbol("N"), kM = Dim::symbol("M");

Tensor floats(std::vector<std::int64_t> shape, std::vector<float> values) { return Tensor::of<float>(std::move(shape), values); }
Tensor longs(std::vector<std::int64_t> shape, std::vector<std::int64_t> values) { return Tensor::of<std::int64_t>(std::move(shape), values); }

template <typename Make>
std::string error_of(Make&& make) {
  try {
    make();
  } catch (const std::exception& error) { return error.what(); }
  return "no error";
}

/// A graph of one op over inputs x0, x1, ... and its first result as output "y".
struct OneOp {
  OneOp(const OpDef& op, const std::vector<Type>& types, Attrs attrs = {}) {
    Builder b(graph);
    std::vector<Val> operands;
    for (const Type& type : types) operands.push_back(b.input(Role::kInput, "x" + std::to_string(operands.size()), type));
    b.output("y", op.build(operands, std::move(attrs)));
  }
  Tensor operator()(const std::vector<Tensor>& operands, Precision precision = Precision::kFloat) const {
    Feeds feeds;
    for (const Tensor& operand : operands) feeds.emplace("x" + std::to_string(feeds.size()), operand);
    return interpret(graph, feeds, precision)["y"];
  }
  Graph graph;
};

TEST(Interpret, MatmulWithSymbolicSizes) {
  const OneOp matmul(op::matmul, {{DType::kF32, {kN, 2}}, {DType::kF32, {2, kM}}});
  const Tensor y = matmul({floats({1, 2}, {2, 3}), floats({2, 3}, {1, 2, 3, 10, 20, 30})});
  EXPECT_THAT(y.shape(), ElementsAre(1, 3));
  EXPECT_THAT(elements(y), ElementsAre(32, 64, 96));
}

TEST(Interpret, BroadcastsElementwise) {
  const OneOp add(op::add, {{DType::kF32, {kN, 1}}, {DType::kF32, {3}}});
  EXPECT_THAT(elements(add({floats({2, 1}, {10, 20}), floats({3}, {1, 2, 3})})), ElementsAre(11, 12, 13, 21, 22, 23));
}

TEST(Interpret, EmptyExtents) {
  const OneOp sum(op::reduce_sum, {{DType::kF32, {kN, kM}}}, {kAxes = Ints{1}});
  EXPECT_THAT(elements(sum({floats({2, 0}, {})})), ElementsAre(0, 0));
  EXPECT_THAT(sum({floats({0, 2}, {})}).shape(), ElementsAre(0));
  const OneOp largest(op::reduce_max, {{DType::kF32, {kN}}}, {kAxes = Ints{0}});
  EXPECT_THAT(elements(largest({floats({0}, {})})), ElementsAre(-INFINITY));
}

TEST(Interpret, ArgmaxTakesTheFirstOfTiesAndTheFirstNan) {
  const OneOp argmax(op::argmax, {{DType::kF32, {kN}}}, {kAxis = 0});
  EXPECT_THAT(elements(argmax({floats({4}, {1, 5, 5, 2})})), ElementsAre(1));
  EXPECT_THAT(elements(argmax({floats({4}, {1, NAN, 9, NAN})})), ElementsAre(1));
  EXPECT_THAT(elements(argmax({floats({2}, {-INFINITY, -INFINITY})})), ElementsAre(0));
}

TEST(Interpret, MaxIsNanIfAnyElementIs) {
  const OneOp largest(op::reduce_max, {{DType::kF32, {kN}}}, {kAxes = Ints{0}});
  EXPECT_TRUE(std::isnan(largest({floats({3}, {1, NAN, 3})}).at(0)));
}

TEST(Interpret, GatherAndScatterAdd) {
  const OneOp gather(op::gather, {{DType::kF32, {3, 2}}, {DType::kI64, {kN}}}, {kAxis = 0});
  EXPECT_THAT(elements(gather({floats({3, 2}, {1, 2, 3, 4, 5, 6}), longs({2}, {2, -3})})), ElementsAre(5, 6, 1, 2));
  const OneOp scatter(op::scatter_add, {{DType::kF32, {kN, 2}}, {DType::kI64, {kN}}}, {kAxis = 0, kShape = Shape{3, 2}});
  EXPECT_THAT(elements(scatter({floats({3, 2}, {1, 2, 3, 4, 5, 6}), longs({3}, {2, 0, 2})})), ElementsAre(3, 4, 0, 0, 6, 8));
}

TEST(Interpret, ScatterOfARangeOwnsItsRowsOnly) {
  const OneOp scatter(op::scatter_add, {{DType::kF32, {4}}, {DType::kI64, {4}}}, {kAxis = 0, kShape = Shape{3}});
  const KernelProgram program(kernel_of(scatter.graph, NodeId(0)), Precision::kFloat);
  float x[] = {1, 2, 4, 8}, y[] = {-1, -1, -1};
  std::int64_t at[] = {0, 1, 2, 1};
  void* buffers[] = {x, at, y};
  program.run(buffers, {}, 1, 3);
  EXPECT_THAT(y, ElementsAre(-1, 10, 4));
}

TEST(Interpret, FloatRoundsAndDoubleDoesNot) {
  const OneOp add(op::add, {{DType::kF32, {}}, {DType::kF32, {}}});
  const Tensor big = floats({}, {16777216}), one = floats({}, {1});
  EXPECT_EQ(add({big, one}).at(0), 16777216);
  const Tensor exact = add({big, one}, Precision::kDouble);
  EXPECT_EQ(exact.dtype(), DType::kF64);
  EXPECT_EQ(exact.at(0), 16777217);
}

TEST(Interpret, CentralDifferencesAreExactInDouble) {
  const OneOp tanh(op::tanh, {{DType::kF32, {}}});
  const double x = 0.3, step = 1e-5;
  const auto at = [&](double value) { return tanh({Tensor::scalar(value)}, Precision::kDouble).at(0); };
  const double slope = (at(x + step) - at(x - step)) / (2 * step);
  EXPECT_NEAR(slope, 1 - std::tanh(x) * std::tanh(x), 1e-9);
}

TEST(Interpret, HalfPrecisionIsStorage) {
  const OneOp add(op::add, {{DType::kBF16, {1}}, {DType::kBF16, {1}}});
  const Tensor a = floats({1}, {1}).cast(DType::kBF16), b = floats({1}, {0.001F}).cast(DType::kBF16);
  const Tensor y = add({a, b});
  EXPECT_EQ(y.dtype(), DType::kBF16);
  EXPECT_EQ(y.at(0), 1);
}

TEST(Interpret, StatesAndWeights) {
  Graph graph;
  Builder b(graph);
  const Val x = b.input(Role::kInput, "x", {DType::kF32, {kN}});
  const Val w = b.input(Role::kWeight, "w", {DType::kF32, {}}, floats({}, {3}));
  const Val y = x * w;
  b.output("y", y);
  b.alias(w, w + 1.0);
  const GraphResults results = interpret(graph, {{"x", floats({2}, {1, 2})}});
  EXPECT_THAT(elements(results["y"]), ElementsAre(3, 6));
  EXPECT_EQ(results["w"].at(0), 4);
  EXPECT_EQ(results.bindings.at("N"), 2);
  EXPECT_THAT(elements(interpret(graph, {{"x", floats({1}, {1})}, {"w", floats({}, {5})}})["y"]), ElementsAre(5));
}

TEST(Interpret, WrongFeedsAreExplained) {
  const OneOp add(op::add, {{DType::kF32, {kN, 3}}, {DType::kF32, {kN, 3}}});
  const Tensor fits = floats({1, 3}, {1, 2, 3});
  const auto run = [&](Feeds feeds) { return error_of([&] { interpret(add.graph, feeds); }); };
  EXPECT_THAT(run({{"x0", fits}}), HasSubstr("input \"x1\" is not fed"));
  EXPECT_THAT(run({{"x0", fits}, {"x1", fits}, {"x2", fits}}), HasSubstr("there is no input \"x2\""));
  EXPECT_THAT(run({{"x0", fits}, {"x1", longs({1, 3}, {1, 2, 3})}}), HasSubstr("element type i64, expected f32"));
  EXPECT_THAT(run({{"x0", fits}, {"x1", floats({2, 3}, {1, 2, 3, 4, 5, 6})}}), HasSubstr("axis 0 must be 1, as N is 1"));
  EXPECT_THAT(run({{"x0", floats({3}, {1, 2, 3})}, {"x1", fits}}), HasSubstr("1 axes instead of 2"));
}

TEST(Interpret, ReadingOutsideABufferIsAnError) {
  Kernel kernel;
  kernel.name = "bad";
  kernel.buffers = {{"x", DType::kF32, {2}, Access::kRead}, {"y", DType::kF32, {3}, Access::kWrite}};
  kernel.axes = {{"n", 3}};
  kernel.outer_count = 1;
  Expr n;
  n.op = ScalarOp::kIndex;
  n.dtype = DType::kI64;
  const ExprId at = kernel.exprs.add(n);
  Expr load;
  load.op = ScalarOp::kLoad;
  load.dtype = DType::kF32;
  load.index = {at};
  const ExprId x = kernel.exprs.add(load);
  Phase phase;
  phase.stores.push_back({1, {at}, x, {}});
  kernel.phases.push_back(phase);
  float in[2] = {}, out[3] = {};
  void* buffers[] = {in, out};
  EXPECT_THAT(error_of([&] { interpret(kernel, buffers, {}, 0, 3); }), HasSubstr("bad: index 2 is outside axis 0 of x, whose extent is 2"));
  EXPECT_NO_THROW(interpret(kernel, buffers, {}, 0, 2));
}

TEST(BindSymbols, SolvesLinearForms) {
  DimBindings bindings;
  const std::int64_t actual[] = {9, 3};
  EXPECT_TRUE(bind_symbols({kN * 4 + 1, kM}, actual, bindings, "x"));
  EXPECT_EQ(bindings.at("N"), 2);
  EXPECT_EQ(bindings.at("M"), 3);
}

TEST(BindSymbols, LeavesWhatItCannotSolve) {
  DimBindings bindings;
  const std::int64_t two[] = {5};
  EXPECT_FALSE(bind_symbols({kN + kM}, two, bindings, "x"));
  EXPECT_FALSE(bind_symbols({floordiv(kN + 1, 2)}, two, bindings, "x"));
  EXPECT_TRUE(bindings.empty());
  bindings["M"] = 2;
  EXPECT_TRUE(bind_symbols({kN + kM}, two, bindings, "x"));
  EXPECT_EQ(bindings.at("N"), 3);
  EXPECT_THAT(error_of([&] { bind_symbols({floordiv(kN + 1, 2)}, two, bindings, "x"); }), HasSubstr("axis 0 must be 2, as N is 3"));
}

TEST(BindSymbols, NoSolutionIsAnError) {
  DimBindings bindings;
  const std::int64_t actual[] = {8};
  EXPECT_THAT(error_of([&] { bind_symbols({kN * 4 + 1}, actual, bindings, "x"); }), HasSubstr("no N of at least 0 makes axis 0, 4*N + 1, be 8"));
  const std::int64_t none[] = {0};
  EXPECT_THAT(error_of([&] { bind_symbols({kN + 1}, none, bindings, "x"); }), HasSubstr("no N of at least 0"));
}

}  // namespace
}  // namespace hone
