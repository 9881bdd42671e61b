// Operators whose import does more than name another op: symbolic sizes, old versions, optional operands. Plain values are left to ONNX's own cases.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/backend_cases/backend_case.h"
#include "tests/frontend/test_model.h"

namespace hone::test {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

using Floats = std::vector<float>;
const Tensor kLeftOut;

/// Both give the same, shape and all.
void expect_same(const Tensor& actual, const Tensor& expected) { EXPECT_EQ(difference(actual, expected, 1e-5, 1e-6), ""); }

// --- Matrix products ---

TEST(ImportOps, GemmNeedsNoNodesForFactorsOfOne) {
  TestModel model = TestModel::of_node("Gemm", {"N", 4}, {wavy({3, 4}), wavy({3})});
  model.last().set("transB", 1);
  EXPECT_EQ(ops_of(model.import().graph), "matmul add");
  EXPECT_EQ(model.type(), "f32[N,3]");
}

TEST(ImportOps, GemmScales) {
  TestModel model = TestModel::of_node("Gemm", {2, 2}, {f32({2, 2}, {1, 0, 0, 1}), f32({2}, {10, 20})});
  model.last().set("alpha", 2.0).set("beta", 0.5).set("transA", 1);
  EXPECT_THAT(values_of(model.y(f32({2, 2}, {1, 2, 3, 4}))), ElementsAre(7, 16, 9, 18));
}

TEST(ImportOps, GemmWithoutC) {
  EXPECT_EQ(ops_of(TestModel::of_node("Gemm", {"N", 4}, {wavy({4, 3})}).import().graph), "matmul");
  TestModel zero = TestModel::of_node("Gemm", {"N", 4}, {wavy({4, 3}), wavy({3})});
  zero.last().set("beta", 0.0);
  EXPECT_EQ(ops_of(zero.import().graph), "matmul");
}

TEST(ImportOps, MatMulTakesVectors) {
  EXPECT_EQ(TestModel::of_node("MatMul", {"K"}, {wavy({4, 3})}).type(), "f32[3]");
  EXPECT_EQ(TestModel::of_node("MatMul", {"N", 4}, {wavy({4})}).type(), "f32[N]");
  EXPECT_EQ(TestModel::of_node("MatMul", {4}, {wavy({5, 4, 3})}).type(), "f32[5,3]");
  TestModel dot = TestModel::of_node("MatMul", {3}, {f32({3}, {4, 5, 6})});
  EXPECT_EQ(dot.type(), "f32[]");
  EXPECT_THAT(values_of(dot.y(f32({3}, {1, 2, 3}))), ElementsAre(32));
}

// --- Elementwise ---

TEST(ImportOps, PowTakesAnExponentOfAnotherType) {
  TestModel model = TestModel::of_node("Pow", {3}, {i64({}, {2})});
  EXPECT_THAT(values_of(model.y(f32({3}, {1, 2, -3}))), ElementsAre(1, 4, 9));
}

TEST(ImportOps, ClipLeavesOutBounds) {
  const Tensor x = f32({3}, {-5, 0.5, 5});
  EXPECT_THAT(values_of(TestModel::of_node("Clip", {3}, {f32({}, {-1}), f32({}, {1})}).y(x)), ElementsAre(-1, 0.5, 1));
  EXPECT_THAT(values_of(TestModel::of_node("Clip", {3}, {f32({}, {-1})}).y(x)), ElementsAre(-1, 0.5, 5));
  EXPECT_THAT(values_of(TestModel::of_node("Clip", {3}, {kLeftOut, f32({1}, {1})}).y(x)), ElementsAre(-5, 0.5, 1));
  EXPECT_EQ(ops_of(TestModel::of_node("Clip", {3}).import().graph), "");
}

TEST(ImportOps, ClipOfOldVersionsHasAttributes) {
  TestModel model = TestModel::of_node("Clip", {3}, {}, 7);
  model.last().set("min", -1.0).set("max", 1.0);
  EXPECT_THAT(values_of(model.y(f32({3}, {-5, 0.5, 5}))), ElementsAre(-1, 0.5, 1));
}

TEST(ImportOps, DropoutIsTheIdentity) {
  TestModel model = TestModel::of_node("Dropout", {"N", 3});
  EXPECT_EQ(ops_of(model.import().graph), "");
  TestModel masked;
  masked.input("x", {"N"}).output("y").output("mask");
  masked.node("Dropout", {"x"}, {"y", "mask"});
  EXPECT_EQ(masked.type("mask"), "bool[N]");
  EXPECT_THAT(values_of(masked.run({{"x", wavy({2})}})["mask"]), ElementsAre(1, 1));
}

// --- Convolution and pooling ---

TestModel conv(std::vector<Extent> x, const Tensor& weight, const Tensor& bias = kLeftOut) { return TestModel::of_node("Conv", std::move(x), {weight, bias}); }

TEST(ImportOps, ConvInOneAndThreeDimensions) {
  TestModel one = conv({"N", 2, "L"}, wavy({3, 2, 5}), f32({3}, {1, 2, 3}));
  one.last().set("strides", std::vector<std::int64_t>{2}).set("pads", std::vector<std::int64_t>{1, 2}).set("dilations", std::vector<std::int64_t>{2});
  EXPECT_EQ(one.type(), "f32[N,3,(L floordiv 2) - 2]");
  EXPECT_EQ(ops_of(one.import().graph), "conv reshape add");
  TestModel three = conv({"N", 4, 8, 8, 8}, wavy({6, 2, 3, 3, 3}));
  three.last().set("group", 2);
  EXPECT_EQ(three.type(), "f32[N,6,6,6,6]");
}

/// The same weight and node, with the pads spelled out.
void expect_auto_pad(const char* mode, std::int64_t extent, std::int64_t stride, std::int64_t before, std::int64_t behind) {
  const Tensor weight = wavy({1, 1, 4}), x = wavy({1, 1, extent});
  TestModel automatic = conv({1, 1, "L"}, weight), stated = conv({1, 1, extent}, weight);
  automatic.last().set("auto_pad", mode).set("strides", std::vector<std::int64_t>{stride});
  stated.last().set("pads", std::vector<std::int64_t>{before, behind}).set("strides", std::vector<std::int64_t>{stride});
  expect_same(automatic.y(x), stated.y(x));
}

TEST(ImportOps, ConvPadsSymbolicExtentsAsAutoPadSays) {
  expect_auto_pad("SAME_UPPER", 9, 1, 1, 2);
  expect_auto_pad("SAME_LOWER", 9, 1, 2, 1);
  expect_auto_pad("SAME_UPPER", 9, 2, 1, 2);
  expect_auto_pad("SAME_UPPER", 10, 2, 1, 1);
  expect_auto_pad("SAME_LOWER", 10, 3, 2, 1);
  expect_auto_pad("VALID", 9, 2, 0, 0);
  TestModel same = conv({"N", 1, "L"}, wavy({1, 1, 3}));
  same.last().set("auto_pad", "SAME_UPPER");
  EXPECT_EQ(same.type(), "f32[N,1,L]");
}

/// The definition, in one dimension: every input adds the kernel, scaled, at its place.
std::vector<double> transposed_conv(const Floats& x, const Floats& kernel, std::size_t stride, std::size_t dilation, std::size_t before, std::size_t extent) {
  std::vector<double> padded(extent + before + 64);
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t k = 0; k < kernel.size(); ++k) padded[i * stride + k * dilation] += static_cast<double>(x[i] * kernel[k]);
  return {padded.begin() + static_cast<std::ptrdiff_t>(before), padded.begin() + static_cast<std::ptrdiff_t>(before + extent)};
}

TEST(ImportOps, ConvTransposeInAllItsForms) {
  const Floats x = {1, -2, 3, 4}, kernel = {1, 2, -1};
  const auto run = [&](auto&& attributes) {
    TestModel model = TestModel::of_node("ConvTranspose", {1, 1, 4}, {f32({1, 1, 3}, kernel)});
    attributes(model.last());
    return values_of(model.y(f32({1, 1, 4}, x)));
  };
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(run([](TestNode) {}), transposed_conv(x, kernel, 1, 1, 0, 6));
  EXPECT_EQ(run([](TestNode node) {
              node.set("strides", List{2}).set("pads", List{1, 1}).set("output_padding", List{1});
            }),
            transposed_conv(x, kernel, 2, 1, 1, 8));
  EXPECT_EQ(run([](TestNode node) { node.set("strides", List{2}).set("dilations", List{3}).set("output_padding", List{2}); }),
            transposed_conv(x, kernel, 2, 3, 0, 15))
      << "output_padding beyond the stride";
  EXPECT_EQ(run([](TestNode node) { node.set("strides", List{2}).set("auto_pad", "SAME_UPPER"); }), transposed_conv(x, kernel, 2, 1, 0, 8));
  EXPECT_EQ(run([](TestNode node) { node.set("strides", List{2}).set("auto_pad", "SAME_LOWER"); }), transposed_conv(x, kernel, 2, 1, 1, 8));
  EXPECT_EQ(run([](TestNode node) { node.set("strides", List{2}).set("output_shape", List{7}); }), transposed_conv(x, kernel, 2, 1, 1, 7));
  EXPECT_EQ(run([](TestNode node) { node.set("strides", List{2}).set("output_shape", List{12}); }), transposed_conv(x, kernel, 2, 1, 0, 12));
}

TEST(ImportOps, ConvTransposeWithGroupsBiasAndSymbolicExtents) {
  TestModel model = TestModel::of_node("ConvTranspose", {"N", 4, "H", "W"}, {wavy({4, 3, 2, 2}), wavy({6})});
  model.last().set("group", 2).set("strides", std::vector<std::int64_t>{2, 2});
  EXPECT_EQ(model.type(), "f32[N,6,2*H,2*W]");
}

TestModel pool(const char* op_type, std::vector<std::int64_t> kernel, std::vector<std::int64_t> strides, bool round_up, std::vector<std::int64_t> pads,
               const char* extent) {
  TestModel model = TestModel::of_node(op_type, {"N", "C", extent});
  model.last().set("kernel_shape", kernel).set("strides", strides).set("pads", pads).set("ceil_mode", round_up ? 1 : 0);
  return model;
}

TEST(ImportOps, PoolingRoundsSymbolicExtents) {
  EXPECT_EQ(pool("MaxPool", {2}, {2}, false, {0, 0}, "L").type(), "f32[N,C,L floordiv 2]");
  EXPECT_EQ(pool("MaxPool", {2}, {2}, true, {0, 0}, "L").type(), "f32[N,C,(L + 1) floordiv 2]");
  // a window that would begin in the trailing pad is none
  for (std::int64_t extent = 2; extent < 9; ++extent) {
    const std::int64_t rounded_up = (extent + 2 - 2 + 2) / 3 + 1, count = (rounded_up - 1) * 3 >= extent + 1 ? rounded_up - 1 : rounded_up;
    EXPECT_EQ(pool("MaxPool", {2}, {3}, true, {1, 1}, "L").y(wavy({1, 1, extent})).shape().back(), count) << extent;
  }
}

TEST(ImportOps, AveragePoolCountsPadsOnRequest) {
  const Tensor x = f32({1, 1, 3}, {3, 6, 9});
  TestModel without = pool("AveragePool", {3}, {1}, false, {1, 1}, "L"), with = without;
  with.last().set("count_include_pad", 1);
  EXPECT_THAT(values_of(without.y(x)), ElementsAre(4.5, 6, 7.5));
  EXPECT_THAT(values_of(with.y(x)), ElementsAre(3, 6, 5));
}

TEST(ImportOps, GlobalPoolingTakesAnyExtents) {
  EXPECT_EQ(TestModel::of_node("GlobalAveragePool", {"N", 3, "H", "W"}).type(), "f32[N,3,1,1]");
  EXPECT_THAT(values_of(TestModel::of_node("GlobalMaxPool", {"N", 1, "L"}).y(f32({1, 1, 3}, {1, 7, 2}))), ElementsAre(7));
}

// --- Normalization ---

TEST(ImportOps, BatchNormalizationMeansWhatItsTrainingModeSays) {
  for (const bool training : {false, true}) {
    TestModel model(15);
    model.input("x", {"N", 2, "L"}).output("y");
    for (const char* name : {"scale", "bias", "mean", "variance"}) model.initializer(name, f32({2}, {1, 2}));
    TestNode node = model.node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"},
                               training ? std::vector<std::string>{"y", "new_mean", "new_variance"} : std::vector<std::string>{"y"});
    node.set("epsilon", 0.25).set("momentum", 0.8);
    if (training) node.set("training_mode", 1);
    const Graph graph = model.import().graph;
    ASSERT_EQ(ops_of(graph), training ? "batch_norm_train" : "batch_norm");
    EXPECT_DOUBLE_EQ(graph.nodes()[0].attrs[kEpsilon], 0.25);
    EXPECT_FLOAT_EQ(static_cast<float>(graph.nodes()[0].attrs[kMomentum]), 0.8F);
  }
}

TEST(ImportOps, SoftmaxOfOldVersionsTakesAllAxesBehind) {
  const Tensor x = wavy({2, 2, 3});
  TestModel old = TestModel::of_node("Softmax", {"N", 2, 3}, {}, 11);
  const Tensor actual = old.y(x);
  for (int row = 0; row < 2; ++row) {
    double sum = 0;
    for (int i = 0; i < 6; ++i) sum += actual.at(row * 6 + i);
    EXPECT_NEAR(sum, 1, 1e-6) << "over 2 * 3 elements";
  }
  TestModel last = TestModel::of_node("Softmax", {"N", 2, 3}, {}, 11);
  last.last().set("axis", 2);
  EXPECT_EQ(ops_of(last.import().graph), "softmax");
  expect_same(last.y(x), TestModel::of_node("Softmax", {"N", 2, 3}, {}, 13).y(x));
}

// --- Shapes ---

TEST(ImportOps, ReshapeCopiesAndInfersSymbolicExtents) {
  EXPECT_EQ(TestModel::of_node("Reshape", {"N", 28, 28}, {ints({-1, 784})}).type(), "f32[N,784]");
  EXPECT_EQ(TestModel::of_node("Reshape", {"N", "T", 12}, {ints({0, 0, 3, -1})}).type(), "f32[N,T,3,4]");
  EXPECT_EQ(TestModel::of_node("Reshape", {"N", "T", 12}, {ints({-1})}).type(), "f32[12*N*T]");
  EXPECT_EQ(TestModel::of_node("Reshape", {"N", "T", 12}, {ints({-1, 6})}).type(), "f32[2*N*T,6]");
  EXPECT_EQ(TestModel::of_node("Reshape", {1}, {i64({0}, {})}).type(), "f32[]");
  TestModel empty = TestModel::of_node("Reshape", {0, 3}, {ints({3, 0})}, 14);
  empty.last().set("allowzero", 1);
  EXPECT_EQ(empty.type(), "f32[3,0]");
}

TEST(ImportOps, FlattenAtAnyAxis) {
  const auto type = [](std::int64_t axis) {
    TestModel model = TestModel::of_node("Flatten", {"N", 2, 3});
    model.last().set("axis", axis);
    return model.type();
  };
  EXPECT_EQ(type(0), "f32[1,6*N]");
  EXPECT_EQ(type(1), "f32[N,6]");
  EXPECT_EQ(type(3), "f32[6*N,1]");
  EXPECT_EQ(type(-1), "f32[2*N,3]");
}

TEST(ImportOps, SqueezeAndUnsqueezeOfBothForms) {
  EXPECT_EQ(TestModel::of_node("Squeeze", {1, "N", 1}).type(), "f32[N]");
  EXPECT_EQ(TestModel::of_node("Squeeze", {1, "N", 1}, {ints({-1})}).type(), "f32[1,N]");
  EXPECT_EQ(TestModel::of_node("Squeeze", {"N", "M"}, {ints({1})}).type(), "f32[N]") << "what is squeezed is 1";
  EXPECT_EQ(TestModel::of_node("Unsqueeze", {"N"}, {ints({-1, 0})}).type(), "f32[1,N,1]");
  TestModel squeeze = TestModel::of_node("Squeeze", {1, "N"}, {}, 11), unsqueeze = TestModel::of_node("Unsqueeze", {"N"}, {}, 11);
  squeeze.last().set("axes", std::vector<std::int64_t>{0});
  unsqueeze.last().set("axes", std::vector<std::int64_t>{1});
  EXPECT_EQ(squeeze.type(), "f32[N]");
  EXPECT_EQ(unsqueeze.type(), "f32[N,1]");
}

TEST(ImportOps, ShapeAndSizeOfSymbolicExtents) {
  TestModel model = TestModel::of_node("Shape", {"N", 3, "T"}, {}, 15);
  model.last().set("start", -2);
  EXPECT_THAT(values_of(model.y(wavy({5, 3, 7}))), ElementsAre(3, 7));
  EXPECT_THAT(values_of(TestModel::of_node("Size", {"N", 3}).y(wavy({5, 3}))), ElementsAre(15));
}

TEST(ImportOps, ExpandAndTileToSymbolicExtents) {
  EXPECT_EQ(TestModel::of_node("Expand", {"N", 1}, {ints({1, 4})}).type(), "f32[N,4]");
  EXPECT_EQ(TestModel::of_node("Expand", {"N", 1}, {ints({2, 1, 1})}).type(), "f32[2,N,1]");
  TestModel tile = TestModel::of_node("Tile", {"N", 2}, {ints({2, 3})});
  EXPECT_EQ(tile.type(), "f32[2*N,6]");
  EXPECT_THAT(values_of(tile.y(f32({1, 2}, {1, 2}))), ElementsAre(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2));
}

TEST(ImportOps, RangeOfComputedNumbers) {
  TestModel model;
  model.output("y").initializer("start", f32({}, {1})).initializer("half", f32({}, {0.5})).initializer("two", f32({}, {2}));
  model.node("Mul", {"two", "two"}, {"limit"});
  model.node("Range", {"start", "limit", "half"}, {"y"});
  EXPECT_THAT(values_of(model.run({})["y"]), ElementsAre(1, 1.5, 2, 2.5, 3, 3.5));
}

TEST(ImportOps, RangeUpToASymbolicSize) {
  TestModel model;
  model.input("x", {"T", 2}).output("y").initializer("one", i64({}, {1})).initializer("two", i64({}, {2}));
  model.node("Size", {"x"}, {"length"});
  model.node("Range", {"one", "length", "two"}, {"y"});
  EXPECT_THAT(values_of(model.y(wavy({4, 2}))), ElementsAre(1, 3, 5, 7));
}

TEST(ImportOps, RangeOfFloatsUpToASymbolicSize) {
  TestModel model;
  model.input("x", {"T"}).output("y").initializer("zero", f32({}, {0})).initializer("one", f32({}, {1}));
  model.node("Size", {"x"}, {"length"});
  model.node("Cast", {"length"}, {"limit"}).set("to", 1);
  model.node("Range", {"zero", "limit", "one"}, {"y"});
  EXPECT_EQ(model.type(), "f32[T]");
  EXPECT_THAT(values_of(model.y(wavy({3}))), ElementsAre(0, 1, 2));
}

TEST(ImportOps, RangeFromASizeOnHasKnownContents) {
  TestModel model;
  model.input("x", {"T"}).output("y").initializer("one", i64({}, {1})).initializer("two", i64({}, {2}));
  model.node("Size", {"x"}, {"length"});
  model.node("Add", {"length", "two"}, {"limit"});
  model.node("Range", {"length", "limit", "one"}, {"extents"});
  model.node("ConstantOfShape", {"extents"}, {"y"});
  EXPECT_EQ(model.type(), "f32[T,T + 1]");
}

TEST(ImportOps, TrianglesOfSymbolicExtents) {
  TestModel model = TestModel::of_node("Trilu", {"N", "M"}, {i64({}, {1})});
  EXPECT_EQ(model.type(), "f32[N,M]");
  EXPECT_THAT(values_of(model.y(f32({2, 3}, {1, 2, 3, 4, 5, 6}))), ElementsAre(0, 2, 3, 0, 0, 6));
}

TEST(ImportOps, RandomNumbersAreTheSameInEveryRunAndOthersInEveryNode) {
  TestModel model;
  model.output("a").output("b").output("c");
  for (const char* name : {"a", "b"}) model.node("RandomUniform", {}, {name}).set("shape", std::vector<std::int64_t>{1000}).set("low", 2.0).set("high", 4.0);
  model.node("RandomNormal", {}, {"c"}).set("shape", std::vector<std::int64_t>{1000}).set("seed", 5.0).set("mean", 1.0).set("scale", 2.0);
  const GraphResults results = model.run({});
  expect_same(model.run({})["a"], results["a"]);
  EXPECT_NE(values_of(results["a"]), values_of(results["b"]));
  const auto mean = [](const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()); };
  EXPECT_NEAR(mean(values_of(results["a"])), 3, 0.06);
  EXPECT_NEAR(mean(values_of(results["c"])), 1, 0.2);
  for (const double value : values_of(results["a"])) EXPECT_TRUE(value >= 2 and value < 4) << value;
}

TEST(ImportOps, MultinomialDrawsByTheOdds) {
  TestModel model = TestModel::of_node("Multinomial", {"N", 3});
  model.last().set("sample_size", 2000);
  EXPECT_EQ(model.type(), "i32[N,2000]");
  const std::vector<double> drawn = values_of(model.y(f32({1, 3}, {std::log(0.5F), std::log(0.2F), std::log(0.3F)})));
  const auto share = [&](double number) { return static_cast<double>(std::count(drawn.begin(), drawn.end(), number)) / 2000; };
  EXPECT_NEAR(share(0), 0.5, 0.05);
  EXPECT_NEAR(share(1), 0.2, 0.05);
  EXPECT_NEAR(share(2), 0.3, 0.05);
}

TEST(ImportOps, DropoutInTrainingDropsItsShare) {
  TestModel model;
  model.input("x", {"N"}).output("y").output("kept").initializer("rate", f32({}, {0.25}));
  model.initializer("training", i64({}, {1}).cast(DType::kBool));
  model.node("Dropout", {"x", "rate", "training"}, {"y", "kept"});
  const GraphResults results = model.run({{"x", f32({1000}, std::vector<float>(1000, 3))}});
  const std::vector<double> y = values_of(results["y"]), kept = values_of(results["kept"]);
  EXPECT_NEAR(static_cast<double>(std::count(y.begin(), y.end(), 0.0)) / 1000, 0.25, 0.05);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], kept[i] != 0 ? 4 : 0);
}

TEST(ImportOps, DropoutWhoseModeIsFed) {
  TestModel model;
  model.input("x", {"N"}).input("training", {}, DType::kBool).output("y").initializer("rate", f32({}, {0.5}));
  model.node("Dropout", {"x", "rate", "training"}, {"y"});
  const Tensor x = f32({100}, std::vector<float>(100, 1));
  expect_same(model.run({{"x", x}, {"training", i64({}, {0}).cast(DType::kBool)}})["y"], x);
  const std::vector<double> y = values_of(model.run({{"x", x}, {"training", i64({}, {1}).cast(DType::kBool)}})["y"]);
  EXPECT_GT(std::count(y.begin(), y.end(), 0.0), 20);
}

TEST(ImportOps, HardmaxOfAnOldModelRunsOverAllAxes) {
  TestModel model = TestModel::of_node("Hardmax", {2, 2, 2}, {}, 11);
  EXPECT_THAT(values_of(model.y(f32({2, 2, 2}, {1, 2, 4, 3, 9, 8, 7, 9}))), ElementsAre(0, 0, 1, 0, 1, 0, 0, 0));
}

TEST(ImportOps, EinsumMultipliesMatricesWhereItCan) {
  TestModel product = TestModel::of_node("Einsum", {"N", 3}, {wavy({3, 4})});
  product.last().set("equation", "ij,jk->ik");
  EXPECT_EQ(ops_of(product.import().graph), "matmul");
  EXPECT_EQ(product.type(), "f32[N,4]");
  TestModel total = TestModel::of_node("Einsum", {"N", 3});
  total.last().set("equation", "ij -> j");
  EXPECT_EQ(ops_of(total.import().graph), "reduce_sum");
}

TEST(ImportOps, ConstantOfShapeWithSymbolicExtents) {
  TestModel model;
  model.input("x", {"N", 3}).output("y");
  model.node("Shape", {"x"}, {"shape"});
  model.node("ConstantOfShape", {"shape"}, {"y"}).set("value", i64({1}, {7}));
  EXPECT_EQ(model.type(), "i64[N,3]");
  EXPECT_THAT(values_of(model.y(wavy({1, 3}))), ElementsAre(7, 7, 7));
}

// --- Parts ---

/// numpy's x[start:end:step] of extent 0, 1, 2, ...
std::vector<double> numpy_slice(std::int64_t extent, std::int64_t start, std::int64_t end, std::int64_t step) {
  const auto clamped = [&](std::int64_t at) {
    if (at < 0) at = at < -extent ? -1 : at + extent, at = at < 0 and step > 0 ? 0 : at;
    return step > 0 ? std::min(at, extent) : std::min(at, extent - 1);
  };
  std::vector<double> values;
  for (std::int64_t i = clamped(start); step > 0 ? i < clamped(end) : i > clamped(end); i += step) values.push_back(static_cast<double>(i));
  return values;
}

TEST(ImportOps, SliceOfASymbolicExtentIsNumpysForEveryExtent) {
  const std::int64_t positions[] = {INT64_MIN, -9, -3, -1, 0, 1, 2, 5, 9, INT64_MAX};
  for (const std::int64_t step : {1, 2, -1, -3}) {
    for (const std::int64_t start : positions) {
      for (const std::int64_t end : positions) {
        const TestModel model = TestModel::of_node("Slice", {"N"}, {ints({start}), ints({end}), ints({0}), ints({step})});
        for (std::int64_t extent = 0; extent < 7; ++extent) {
          Floats x;
          for (std::int64_t i = 0; i < extent; ++i) x.push_back(static_cast<float>(i));
          EXPECT_EQ(values_of(model.y(f32({extent}, x))), numpy_slice(extent, start, end, step)) << fmt::format("x[{}:{}:{}] of {}", start, end, step, extent);
        }
      }
    }
  }
}

TEST(ImportOps, SliceKeepsSizesReadable) {
  const auto type = [](std::int64_t start, std::int64_t end) { return TestModel::of_node("Slice", {"N", 8}, {ints({start}), ints({end}), ints({0})}).type(); };
  EXPECT_EQ(type(0, INT64_MAX), "f32[N,8]");
  EXPECT_EQ(type(1, INT64_MAX), "f32[max(0, N - 1),8]");
  EXPECT_EQ(type(0, -1), "f32[max(0, N - 1),8]");
  EXPECT_EQ(type(-1, INT64_MAX), "f32[min(1, N),8]");
  EXPECT_EQ(TestModel::of_node("Slice", {"N", 8}, {ints({2}), ints({-1}), ints({1})}).type(), "f32[N,5]");
  for (const std::int64_t far : {1'000'000'000L, std::int64_t{INT32_MAX}, INT64_MAX}) EXPECT_EQ(type(0, far), "f32[N,8]") << "the whole of it, as exporters write that";
  const auto backwards = [](std::int64_t end) { return TestModel::of_node("Slice", {"N", 8}, {ints({-1}), ints({end}), ints({0}), ints({-1})}).type(); };
  for (const std::int64_t far : {-1'000'000'000L, std::int64_t{-INT32_MAX}, INT64_MIN}) EXPECT_EQ(backwards(far), "f32[N,8]");
}

TEST(ImportOps, ASlicedRowBroadcasts) {
  TestModel model;  // x + x[:1], however many rows there are
  model.input("x", {"N", 2}).initializer("zero", ints({0})).initializer("one", ints({1})).output("y");
  model.node("Slice", {"x", "zero", "one"}, {"first"});
  model.node("Add", {"x", "first"}, {"y"});
  EXPECT_EQ(model.type(), "f32[N,2]");
  EXPECT_EQ(values_of(model.y(f32({3, 2}, {1, 2, 3, 4, 5, 6}))), (std::vector<double>{2, 4, 4, 6, 6, 8}));
  EXPECT_EQ(values_of(model.y(f32({1, 2}, {1, 2}))), (std::vector<double>{2, 4}));
  TestModel expanded;  // x, expanded to the shape of x[:1]: the longer one counts
  expanded.input("x", {"N", 2}).initializer("zero", ints({0})).initializer("one", ints({1})).output("y");
  expanded.node("Slice", {"x", "zero", "one"}, {"first"});
  expanded.node("Shape", {"first"}, {"shape"});
  expanded.node("Expand", {"x", "shape"}, {"y"});
  EXPECT_EQ(expanded.type(), "f32[N,2]");
  EXPECT_EQ(values_of(expanded.y(f32({2, 2}, {1, 2, 3, 4}))), (std::vector<double>{1, 2, 3, 4}));
}

TEST(ImportOps, SliceUpToASymbolicSize) {
  TestModel model;  // a table cut to the sequence, then added: the sequence may not be longer than the table
  model.input("x", {"N", "T", 4}).initializer("table", wavy({16, 4})).output("y");
  model.initializer("one", ints({1})).initializer("zero", ints({0}));
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "one"}, {"length"});
  model.node("Slice", {"table", "zero", "length"}, {"positions"});
  model.node("Add", {"x", "positions"}, {"y"});
  EXPECT_EQ(model.type(), "f32[N,T,4]");
  EXPECT_EQ(model.y(wavy({2, 5, 4})).shape(), (std::vector<std::int64_t>{2, 5, 4}));
  EXPECT_THROW(model.y(wavy({2, 17, 4})), Error);
}

TEST(ImportOps, SliceOfOldVersionsHasAttributes) {
  TestModel model = TestModel::of_node("Slice", {"N", 8}, {}, 9);
  model.last().set("starts", std::vector<std::int64_t>{2}).set("ends", std::vector<std::int64_t>{-1}).set("axes", std::vector<std::int64_t>{1});
  EXPECT_EQ(model.type(), "f32[N,5]");
}

TestModel split(std::vector<Extent> x, int outputs, std::int64_t opset, const Tensor& sizes = kLeftOut) {
  TestModel model(opset);
  model.input("x", std::move(x));
  std::vector<std::string> names;
  for (int i = 0; i < outputs; ++i) model.output(names.emplace_back(fmt::format("y{}", i)));
  std::vector<std::string> operands = {"x"};
  if (sizes.dtype() == DType::kI64) model.initializer("sizes", sizes), operands.emplace_back("sizes");
  model.node("Split", operands, names).set("axis", -1);
  return model;
}

TEST(ImportOps, SplitEvenlyUnevenlyAndAsTold) {
  EXPECT_EQ(split({"N", 6}, 3, 13).type("y2"), "f32[N,2]");
  EXPECT_EQ(split({"N", 6}, 2, 13, ints({5, 1})).type("y1"), "f32[N,1]");
  EXPECT_EQ(split({"N"}, 2, 13).type("y1"), "f32[N floordiv 2]");
  TestModel uneven = split({"N", 7}, 3, 18);
  uneven.last().set("num_outputs", 3);
  EXPECT_EQ(uneven.type("y0"), "f32[N,3]");
  EXPECT_EQ(uneven.type("y2"), "f32[N,1]");
  EXPECT_THAT(values_of(split({1, 3}, 2, 13, ints({1, 2})).run({{"x", f32({1, 3}, {1, 2, 3})}})["y1"]), ElementsAre(2, 3));
}

TEST(ImportOps, PadWithAConstant) {
  const Tensor x = f32({1, 2}, {1, 2});
  EXPECT_THAT(values_of(TestModel::of_node("Pad", {"N", 2}, {ints({0, 1, 0, 2})}).y(x)), ElementsAre(0, 1, 2, 0, 0));
  EXPECT_THAT(values_of(TestModel::of_node("Pad", {"N", 2}, {ints({0, 1, 0, 0}), f32({}, {9})}).y(x)), ElementsAre(9, 1, 2));
  EXPECT_THAT(values_of(TestModel::of_node("Pad", {"N", 2}, {ints({0, -1, 0, 0})}).y(x)), ElementsAre(2));
  TestModel old = TestModel::of_node("Pad", {"N", 2}, {}, 10);
  old.last().set("pads", std::vector<std::int64_t>{0, 1, 0, 0}).set("value", 5.0);
  EXPECT_THAT(values_of(old.y(x)), ElementsAre(5, 1, 2));
}

// --- Reductions ---

TEST(ImportOps, ReductionsOverAxesOfBothForms) {
  TestModel attribute = TestModel::of_node("ReduceSum", {"N", 2, 3}, {}, 11);
  attribute.last().set("axes", std::vector<std::int64_t>{-1}).set("keepdims", 0);
  TestModel input = TestModel::of_node("ReduceSum", {"N", 2, 3}, {ints({2})}, 13);
  input.last().set("keepdims", 0);
  EXPECT_EQ(attribute.type(), "f32[N,2]");
  expect_same(attribute.y(wavy({2, 2, 3})), input.y(wavy({2, 2, 3})));
  EXPECT_EQ(TestModel::of_node("ReduceMean", {"N", 2}).type(), "f32[1,1]");
  TestModel nothing = TestModel::of_node("ReduceSum", {"N", 2}, {i64({0}, {})});
  nothing.last().set("noop_with_empty_axes", 1);
  EXPECT_EQ(nothing.type(), "f32[N,2]");
}

TEST(ImportOps, LogSumExpDoesNotOverflow) {
  TestModel model = TestModel::of_node("ReduceLogSumExp", {"N", 2}, {ints({1})}, 18);
  model.last().set("keepdims", 0);
  EXPECT_THAT(values_of(model.y(f32({2, 2}, {1000, 1000, -INFINITY, -INFINITY}))), ElementsAre(DoubleNear(1000 + std::log(2.0), 1e-3), -INFINITY));
}

TEST(ImportOps, ArgMaxTakesTheLastOnRequest) {
  const Tensor x = f32({1, 4}, {1, 5, 5, 2});
  TestModel first = TestModel::of_node("ArgMax", {"N", 4}), last = first;
  first.last().set("axis", 1);
  last.last().set("axis", 1).set("select_last_index", 1).set("keepdims", 0);
  EXPECT_EQ(first.type(), "i64[N,1]");
  EXPECT_EQ(last.type(), "i64[N]");
  EXPECT_THAT(values_of(first.y(x)), ElementsAre(1));
  EXPECT_THAT(values_of(last.y(x)), ElementsAre(2));
}

}  // namespace
}  // namespace hone::test
