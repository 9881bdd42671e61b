// A fresh last layer for other classes: found behind what stands between it and the output, and refused where there is none.
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "tests/frontend/test_model.h"

namespace hone::test {
namespace {

using testing::HasSubstr;

onnx::ImportOptions five(std::uint64_t seed = 0) { return {.mend = {.new_head = {.classes = 5, .seed = seed}}}; }

/// x[N,4] -> hidden -> a head of 3 classes behind "fc.weight" and "fc.bias", made by `op`.
TestModel with_head(const std::string& op, bool transposed = false) {
  TestModel model;
  model.input("x", {"N", 4}).initializer("hidden", wavy({4, 6})).output("y");
  model.initializer("fc.weight", transposed ? wavy({3, 6}) : wavy({6, 3})).initializer("fc.bias", wavy({3}));
  model.node("MatMul", {"x", "hidden"}, {"h"});
  if (op == "Gemm") {
    model.node("Gemm", {"h", "fc.weight", "fc.bias"}, {"z"}).set("transB", transposed ? 1 : 0);
  } else {
    model.node("MatMul", {"h", "fc.weight"}, {"product"});
    model.node("Add", {"product", "fc.bias"}, {"z"});
  }
  model.node("Softmax", {"z"}, {"y"});
  return model;
}

const onnx::TensorProto& initializer(const onnx::Imported& imported, const std::string& name) {
  for (const auto& tensor : imported.model.graph().initializer())
    if (tensor.name() == name) return tensor;
  throw std::runtime_error("no " + name);
}

TEST(NewHead, IsDrawnForGemmAndMatMul) {
  for (const auto& [op, transposed] : {std::pair("Gemm", false), std::pair("Gemm", true), std::pair("MatMul", false)}) {
    SCOPED_TRACE(std::string(op) + (transposed ? " transposed" : ""));
    const onnx::Imported imported = with_head(op, transposed).import(five());
    EXPECT_EQ(to_string(imported.graph.type(imported.graph.outputs()[0].value)), "f32[N,5]");
    const Tensor weight = tensor_of(initializer(imported, "fc.weight"), "", {}), bias = tensor_of(initializer(imported, "fc.bias"), "", {});
    EXPECT_EQ(weight.shape(), transposed ? (std::vector<std::int64_t>{5, 6}) : (std::vector<std::int64_t>{6, 5}));
    std::set<double> values;
    for (std::int64_t i = 0; i < weight.element_count(); ++i) {
      values.insert(weight.at(i));
      EXPECT_LE(std::abs(weight.at(i)), std::sqrt(6.0 / 11));
    }
    EXPECT_EQ(values.size(), 30u) << "drawn, not repeated";
    EXPECT_EQ(bias.shape(), (std::vector<std::int64_t>{5}));
    for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(bias.at(i), 0);
    EXPECT_THAT(to_string(imported.warnings.at(0)), HasSubstr("the head \"fc.weight\" of 3 classes is replaced by a fresh one of 5"));
  }
}

TEST(NewHead, FollowsTheSeed) {
  const auto bytes = [](std::uint64_t seed) { return initializer(with_head("Gemm").import(five(seed)), "fc.weight").SerializeAsString(); };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
}

void expect_refused(TestModel& model, const std::string& why, onnx::ImportOptions options = five()) {
  try {
    (void)model.import(options);
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.diags().front().code, Code::kRecipeModel);
    EXPECT_THAT(error.what(), HasSubstr(why));
  }
}

std::string result_type(const onnx::Imported& imported) { return to_string(imported.graph.type(imported.graph.outputs()[0].value)); }

/// x[N,2,4,4] -> a convolution to 3 classes.
TestModel with_convolution() {
  TestModel model;
  model.input("x", {"N", 2, 4, 4}).initializer("conv.weight", wavy({3, 2, 3, 3})).output("y");
  model.node("Conv", {"x", "conv.weight"}, {"c"}).set("kernel_shape", std::vector<std::int64_t>{3, 3}).set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  return model;
}

TEST(NewHead, IsDrawnForAConvolution) {
  TestModel segments = with_convolution();
  segments.initializer("bias", wavy({3, 1, 1}));
  segments.node("Add", {"c", "bias"}, {"y"});
  const onnx::Imported imported = segments.import(five());
  EXPECT_EQ(result_type(imported), "f32[N,5,4,4]");
  const Tensor weight = tensor_of(initializer(imported, "conv.weight"), "", {});
  EXPECT_EQ(weight.shape(), (std::vector<std::int64_t>{5, 2, 3, 3}));
  for (std::int64_t i = 0; i < weight.element_count(); ++i) EXPECT_LE(std::abs(weight.at(i)), std::sqrt(6.0 / (9 * 7)));
  EXPECT_EQ(tensor_of(initializer(imported, "bias"), "", {}).shape(), (std::vector<std::int64_t>{5, 1, 1}));
}

TEST(NewHead, SizesBehindItFollow) {
  TestModel pooled = with_convolution();  // as SqueezeNet and Keras's MobileNet end
  pooled.initializer("shape", ints({-1, 3})).output("shared");
  pooled.node("Relu", {"c"}, {"r"});
  pooled.node("GlobalAveragePool", {"r"}, {"g"});
  pooled.node("Reshape", {"g", "shape"}, {"flat"});
  pooled.node("Softmax", {"flat"}, {"y"});
  pooled.node("Reshape", {"x", "shape"}, {"shared"});  // reads the same sizes, which are not of classes here
  onnx::ImportOptions options = five();
  options.mend.new_head.output = "y";
  const onnx::Imported imported = pooled.import(options);
  EXPECT_EQ(result_type(imported), "f32[N,5]");
  EXPECT_EQ(tensor_of(initializer(imported, "shape"), "", {}).at(1), 3);

  TestModel transposed = with_convolution();  // as tf2onnx leaves channels last
  transposed.node("Transpose", {"c"}, {"y"}).set("perm", std::vector<std::int64_t>{0, 2, 3, 1});
  EXPECT_EQ(result_type(transposed.import(five())), "f32[N,4,4,5]");

  TestModel ambiguous = with_convolution();
  ambiguous.initializer("shape", ints({3, 3, -1}));
  ambiguous.node("Reshape", {"c", "shape"}, {"y"});
  expect_refused(ambiguous, "is made by a Reshape to [3,3,-1], of which one extent is the number of classes");
}

/// By PyTorch's newer exporter weights are declared, too. Another output that follows from the head keeps its rank.
TEST(NewHead, IsDeclaredWithItsShapes) {
  TestModel model = with_head("Gemm");
  model.node("Sigmoid", {"z"}, {"scores"});
  const auto declare = [](auto* values, const std::string& name, std::vector<std::int64_t> extents) {
    auto& value = *values->Add();
    value.set_name(name);
    value.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t extent : extents) value.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(extent);
  };
  auto* infos = model.proto.mutable_graph()->mutable_value_info();
  declare(infos, "fc.weight", {6, 3});
  declare(infos, "fc.bias", {3});
  declare(infos, "scores", {1, 3});
  onnx::ImportOptions options = five();
  options.mend.new_head.output = "y";
  const onnx::Imported imported = model.import(options);
  std::map<std::string, std::string> shapes;
  for (const auto& value : imported.model.graph().value_info())
    for (const auto& extent : value.type().tensor_type().shape().dim()) shapes[value.name()] += extent.has_dim_value() ? std::to_string(extent.dim_value()) + " " : "? ";
  EXPECT_THAT(shapes, testing::UnorderedElementsAre(testing::Pair("fc.weight", "6 5 "), testing::Pair("fc.bias", "5 "), testing::Pair("scores", "? ? ")));
}

TEST(NewHead, IsNoSumOfTwoLayers) {
  for (const bool turned : {false, true}) {
    TestModel model;
    model.input("x", {"N", 4}).initializer("a", wavy({4, 3})).initializer("b", wavy({4, 1})).output("y");
    model.node("MatMul", {"x", "a"}, {"advantage"});
    model.node("MatMul", {"x", "b"}, {"value"});
    model.node("Add", turned ? std::vector<std::string>{"value", "advantage"} : std::vector<std::string>{"advantage", "value"}, {"y"});
    expect_refused(model, "comes from \"Add\", which is no layer with a weight of its own");
  }
}

TEST(NewHead, NeedsALayerWithAWeight) {
  TestModel model;
  model.input("x", {"N", 4}).output("y");
  model.node("Exp", {"x"}, {"y"});
  expect_refused(model, "comes from \"Exp\", which is no layer with a weight of its own");
}

TEST(NewHead, LeavesSharedWeightsAlone) {
  TestModel model;
  model.input("x", {"N", 4}).initializer("w", wavy({4, 4})).output("y");
  model.node("MatMul", {"x", "w"}, {"h"});
  model.node("MatMul", {"h", "w"}, {"y"});
  expect_refused(model, "has a head whose weight \"w\" other layers use, too");
}

TEST(NewHead, AsksWhichOutputItIsBehind) {
  TestModel model = with_head("Gemm");
  model.output("z");
  expect_refused(model, "the model has 2 outputs");
  onnx::ImportOptions options = five();
  options.mend.new_head.output = "z";
  EXPECT_EQ(to_string(model.import(options).graph.type(model.import(options).graph.outputs()[0].value)), "f32[N,5]");
  options.mend.new_head.output = "none";
  expect_refused(model, "\"none\" is made by no layer that could be replaced", options);
}

}  // namespace
}  // namespace hone::test
