// What tf2onnx makes of Keras's models: operators of TensorFlow that stay in the file, recurrent layers with a bias too many, biases that are missing.
#include <gmock/gmock.h>

#include <cmath>

#include "ir/builder.h"
#include "passes/passes.h"
#include "tests/frontend/test_model.h"

namespace hone::test {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string warnings_of(const TestModel& model, const onnx::ImportOptions& options = {}) {
  std::string text;
  for (const Diag& warning : model.import(options).warnings) text += to_string(warning) + "\n";
  return text;
}

// --- Operators that TensorFlow has and ONNX has not ---

void expect_function(const std::string& name, double (*truth)(double), std::int64_t opset = 17) {
  const TestModel model = TestModel::of_node(name, {4}, {}, opset);
  const Tensor x = f32({4}, {0.25F, -0.5F, 1.5F, 3});
  const Tensor y = model.y(x);
  for (std::int64_t i = 0; i < 4; ++i)
    if (const double wanted = truth(x.at(i)); std::isnan(wanted)) EXPECT_TRUE(std::isnan(y.at(i)));
    else EXPECT_NEAR(y.at(i), wanted, 1e-6 * (1 + std::abs(wanted))) << name << " of " << x.at(i);
}

TEST(Leftovers, AreComputedAsTensorFlowDoes) {
  expect_function("Erfc", [](double x) { return std::erfc(x); });
  expect_function("Expm1", [](double x) { return std::expm1(x); });
  expect_function("Log1p", [](double x) { return std::log1p(x); });
  expect_function("Inv", [](double x) { return 1 / x; });
  expect_function("Erfc", [](double x) { return std::erfc(x); }, 13);
}

TEST(Leftovers, GoBackIntoTheFileAsOperatorsOfOnnx) {
  TestModel model = TestModel::of_node("Erfc", {"N", 3});
  model.last().named("dense/Gelu/Erfc");
  const onnx::Imported imported = model.import();
  std::vector<std::string> types;
  for (const auto& node : imported.model.graph().node()) types.push_back(node.op_type());
  EXPECT_THAT(types, ElementsAre("Erf", "Constant", "CastLike", "Sub"));
  EXPECT_EQ(imported.model.graph().node(3).name(), "dense/Gelu/Erfc");
  EXPECT_EQ(imported.model.graph().node(3).output(0), "y");
  EXPECT_THAT(warnings_of(model), HasSubstr("operators of TensorFlow in the file, which ONNX does not have: Erfc (1 node)"));
}

TEST(Leftovers, OfOtherFloatTypesKeepTheirType) {
  TestModel model;
  model.input("x", {2}, DType::kF64).output("y");
  model.node("Expm1", {"x"}, {"y"});
  EXPECT_EQ(model.type(), "f64[2]");
}

TEST(Leftovers, TakeNamesThatTheFileHasNot) {
  TestModel model;
  model.input("x", {2}).input("y/Erf", {2}).output("y").output("z");
  model.node("Erfc", {"x"}, {"y"});
  model.node("Neg", {"y/Erf"}, {"y/one"});
  model.node("Add", {"y", "y/one"}, {"z"});
  const GraphResults results = model.run({{"x", f32({2}, {0, 0})}, {"y/Erf", f32({2}, {3, 4})}});
  EXPECT_THAT(values_of(results["y"]), ElementsAre(1, 1));
  EXPECT_THAT(values_of(results["z"]), ElementsAre(-2, -3));
}

TEST(Leftovers, AreFoundInBodies) {
  TestModel model;
  model.input("x", {2}).initializer("trips", i64({}, {2})).output("y");
  BodyGraph body(model.node("Loop", {"trips", "", "x"}, {"y"}).proto(), "body");
  body.input("i").input("going").input("v").output("still").output("w");
  body.node("Identity", {"going"}, {"still"});
  body.node("Expm1", {"v"}, {"w"});
  EXPECT_NEAR(model.y(f32({2}, {0.5F, -1})).at(0), std::expm1(std::expm1(0.5)), 1e-6);
}

TEST(Leftovers, OfOtherDomainsStayUnknown) {
  TestModel model = TestModel::of_node("Erfc", {2});
  model.last().proto().set_domain("mine");
  EXPECT_THAT(problem_of(model, Code::kUnknownOp), HasSubstr("operator Erfc of domain \"mine\" is not supported"));
}

// --- Recurrent layers ---

/// A layer of 2 units over x [steps, batch, 3], whose second bias is `of_recurrence` throughout.
TestModel recurrent(const std::string& type, std::int64_t gates, float of_recurrence, const std::string& producer = "tf2onnx") {
  TestModel model;
  model.proto.set_producer_name(producer);
  std::vector<float> bias(static_cast<std::size_t>(4 * gates), of_recurrence);
  for (std::int64_t i = 0; i < 2 * gates; ++i) bias[static_cast<std::size_t>(i)] = 0.1F * static_cast<float>(i + 1);
  model.input("x", {4, "N", 3}).initializer("W", wavy({1, 2 * gates, 3})).initializer("R", wavy({1, 2 * gates, 2})).initializer("B", f32({1, 4 * gates}, bias)).output("y");
  model.node(type, {"x", "W", "R", "B"}, {"y"}).set("hidden_size", 2);
  return model;
}

/// The gradients of B's two halves.
std::pair<std::vector<double>, std::vector<double>> bias_gradients(const TestModel& model, const onnx::ImportOptions& options = {}) {
  Graph graph = model.import(options).graph;
  (void)expand_for_gradients(graph);
  const ValueId bias = graph.find_input("B")->value;
  const ValueId gradient = differentiate(graph, graph.find_output("y")->value, {&bias, 1})[0];
  Builder builder(graph);
  builder.output("gradient", Val(builder, gradient));
  (void)expand(graph);
  const std::vector<double> all = values_of(interpret(graph, {{"x", wavy({4, 1, 3})}})["gradient"]);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  return {{all.begin(), middle}, {middle, all.end()}};
}

TEST(KerasRecurrent, HasOneBiasThatLearns) {
  for (const auto& [type, gates] : {std::pair("LSTM", 4), std::pair("RNN", 1), std::pair("GRU", 3)}) {
    const TestModel model = recurrent(type, gates, 0);
    const auto [first, second] = bias_gradients(model);
    EXPECT_THAT(first, Contains(testing::Ne(0.0))) << type;
    EXPECT_THAT(second, Each(0.0)) << type;
    EXPECT_EQ(first, bias_gradients(recurrent(type, gates, 0, "pytorch")).first) << type;
    EXPECT_THAT(warnings_of(model), HasSubstr("recurrent layers of Keras have one bias, and ONNX's have two: the second half of \"B\" stays as it is, zero"));
  }
}

/// Keras begins an LSTM's with ones, so zero is what tf2onnx writes where there is none.
TEST(KerasRecurrent, ZeroIsNoBiasOfAnLstm) {
  const auto all_zero = [](const std::string& type, std::int64_t gates, const std::string& producer = "tf2onnx") {
    TestModel model = recurrent(type, gates, 0, producer);
    for (auto& tensor : *model.proto.mutable_graph()->mutable_initializer())
      if (tensor.name() == "B") tensor.set_raw_data(std::string(static_cast<std::size_t>(4 * gates) * sizeof(float), '\0'));
    return model;
  };
  const auto role_of_bias = [](const TestModel& model, const onnx::ImportOptions& options = {}) { return model.import(options).graph.find_input("B")->role; };
  EXPECT_EQ(role_of_bias(all_zero("LSTM", 4)), Role::kConstant);
  EXPECT_THAT(warnings_of(all_zero("LSTM", 4)), HasSubstr("zero is taken for no bias in \"B\""));
  EXPECT_EQ(role_of_bias(all_zero("LSTM", 4), {.mend = {.train_only = {"B"}}}), Role::kWeight);
  EXPECT_EQ(role_of_bias(all_zero("RNN", 1)), Role::kWeight) << "whose biases begin with zeros";
  EXPECT_EQ(role_of_bias(all_zero("LSTM", 4, "pytorch")), Role::kWeight);
}

TEST(KerasRecurrent, LearnsBothBiasesWhereItHasThem) {
  EXPECT_THAT(bias_gradients(recurrent("LSTM", 4, 0, "pytorch")).second, Contains(testing::Ne(0.0))) << "of another exporter";
  EXPECT_THAT(bias_gradients(recurrent("LSTM", 4, 0.25F)).second, Contains(testing::Ne(0.0))) << "values that are there";
  EXPECT_THAT(bias_gradients(recurrent("LSTM", 4, 0), {.mend = {.train_only = {"B"}}}).second, Contains(testing::Ne(0.0))) << "named by the recipe";
  TestModel reset_after = recurrent("GRU", 3, 0);
  reset_after.last().set("linear_before_reset", 1);
  EXPECT_THAT(bias_gradients(reset_after).second, Contains(testing::Ne(0.0))) << "Keras's GRU with reset_after";
}

TEST(KerasRecurrent, ComputesWithWeightsThatComeLater) {
  EXPECT_THAT(ops_of(recurrent("RNN", 1, 0).import().graph), HasSubstr("stop_gradient")) << "the second half is read, not replaced by zeros";
}

/// Two layers that the exporter gave one bias.
TestModel sharing_bias(const char* second_weight) {
  TestModel model;
  model.proto.set_producer_name("tf2onnx");
  model.input("x", {4, "N", 2}).initializer("W", wavy({1, 2, 2})).initializer("W2", wavy({1, 2, 2})).initializer("R", wavy({1, 2, 2})).initializer("B", f32({1, 4}, {1, 0, 0, 0})).output("y");
  model.node("RNN", {"x", "W", "R", "B"}, {"", "h"}).named("rnn_1").set("hidden_size", 2);
  model.node("RNN", {"x", second_weight, "R", "B", "", "h"}, {"y"}).named("rnn_2").set("hidden_size", 2);
  return model;
}

TEST(KerasRecurrent, DoesNotShareItsBias) {
  EXPECT_THAT(weights_of(sharing_bias("W2").import()), ElementsAre("W", "W2", "R", "B", "B@rnn_2"));
  EXPECT_THAT(warnings_of(sharing_bias("W2")), HasSubstr("the weight \"B\" is a bias and is read by 2 layers: it is trained apart for each, as \"B@rnn_2\" too"));
  EXPECT_THAT(weights_of(sharing_bias("W").import()), ElementsAre("W", "W2", "R", "B")) << "one layer, called twice";
  EXPECT_THAT(weights_of(sharing_bias("W2").import({.mend = {.tie = {"B"}}})), ElementsAre("W", "W2", "R", "B"));
}

/// A layer for batches of four, with the state that it begins with in the file.
TestModel beginning_with(const Tensor& state) {
  TestModel model;
  model.input("x", {3, 4, 2}).initializer("W", wavy({1, 2, 2})).initializer("R", wavy({1, 2, 2})).initializer("h0", state).output("y");
  model.node("RNN", {"x", "W", "R", "", "", "h0"}, {"y"}).set("hidden_size", 2);
  return model;
}

TEST(RecurrentFirstState, OfZerosIsNoWeight) {
  const TestModel zeros = beginning_with(f32({1, 4, 2}, std::vector<float>(8)));
  EXPECT_THAT(weights_of(zeros.import()), ElementsAre("W", "R"));
  EXPECT_THAT(warnings_of(zeros), HasSubstr("recurrent layers begin with \"h0\", which is zero; not trained"));
  EXPECT_THAT(weights_of(zeros.import({.mend = {.train_only = {"h0"}}})), ElementsAre("W", "R", "h0")) << "named by the recipe";
  EXPECT_THAT(weights_of(beginning_with(wavy({1, 4, 2})).import()), ElementsAre("W", "R", "h0")) << "somebody has learned it";
}

TEST(RecurrentFirstState, ThatOthersReadIsAWeight) {
  TestModel model = beginning_with(f32({1, 4, 2}, std::vector<float>(8)));
  model.node("Identity", {"h0"}, {"copy"});
  model.output("copy");
  EXPECT_THAT(weights_of(model.import()), Contains("h0"));
}

// --- Variables of one number, and batches ---

TEST(KerasScalars, AreTrainedWhereTheyAreVariables) {
  TestModel model;
  model.proto.set_producer_name("tf2onnx");
  model.input("x", {"N", 3}).initializer("net/mul/ReadVariableOp:0", f32({}, {2})).initializer("net/add/y:0", f32({}, {1e-6F})).output("y");
  model.node("Mul", {"x", "net/mul/ReadVariableOp:0"}, {"h"});
  model.node("Add", {"h", "net/add/y:0"}, {"y"});
  EXPECT_THAT(weights_of(model.import()), ElementsAre("net/mul/ReadVariableOp:0"));
  EXPECT_THAT(warnings_of(model), HasSubstr("taken for a parameter of one number, as Keras keeps temperatures and gates, and trained: \"net/mul/ReadVariableOp:0\""));
  model.proto.set_producer_name("somebody");
  EXPECT_THAT(weights_of(model.import()), IsEmpty());
}

TestModel two_inputs(const std::string& first_batch, const std::string& second_batch) {
  TestModel model;
  model.proto.set_producer_name("tf2onnx");
  model.input("a", {first_batch, 3}).input("b", {second_batch, "unk__9", 3}).output("y").output("z");
  model.node("Neg", {"a"}, {"y"});
  model.node("Neg", {"b"}, {"z"});
  return model;
}

TEST(KerasBatch, IsOneForAllInputs) {
  EXPECT_EQ(two_inputs("unk__7", "unk__8").type("z"), "f32[unk__7,unk__9,3]");
  EXPECT_EQ(two_inputs("unk__7", "images").type("z"), "f32[images,unk__9,3]") << "a name that somebody gave";
  TestModel other = two_inputs("unk__7", "unk__8");
  other.proto.set_producer_name("pytorch");
  EXPECT_EQ(other.type("z"), "f32[unk__8,unk__9,3]");
}

TEST(KerasBatch, MayBeFixedApart) {
  const Graph graph = two_inputs("unk__7", "unk__8").import({.dims = {{"unk__7", 2}, {"unk__8", 5}}}).graph;
  EXPECT_EQ(to_string(graph.type(graph.find_output("z")->value)), "f32[5,unk__9,3]");
}

// --- Biases of zero ---

/// x W, and behind it what `add` says.
TestModel dense(bool has_bias, const std::string& producer = "tf2onnx") {
  TestModel model;
  model.proto.set_producer_name(producer);
  model.input("x", {"N", 3}).initializer("kernel", wavy({3, 2})).initializer("kernel2", wavy({2, 2})).initializer("bias", f32({2}, {1, 2})).output("y");
  model.node("MatMul", {"x", "kernel"}, {"h"}).named("dense/MatMul");
  model.node("MatMul", {"h", "kernel2"}, {has_bias ? "p" : "y"}).named("dense_1/MatMul");
  if (has_bias) model.node("Add", {"p", "bias"}, {"y"}).named("dense_1/BiasAdd");
  return model;
}

TEST(KerasBiases, AreMissedWhereNoLayerHasOne) {
  EXPECT_THAT(warnings_of(dense(false)), HasSubstr("no layer has a bias, \"dense/MatMul\", \"dense_1/MatMul\" neither: tf2onnx leaves out what is zero"));
  EXPECT_THAT(warnings_of(dense(true)), Not(HasSubstr("no layer has a bias")));
  EXPECT_THAT(warnings_of(dense(false, "pytorch")), IsEmpty());
}

TEST(KerasBiases, BehindAReshapeCount) {
  TestModel model;
  model.proto.set_producer_name("tf2onnx");
  model.input("x", {"N", 3}).initializer("kernel", wavy({3, 4})).initializer("shape", ints({-1, 2, 2})).initializer("bias", wavy({2, 2})).output("y");
  model.node("MatMul", {"x", "kernel"}, {"h"});
  model.node("Reshape", {"h", "shape"}, {"r"});
  model.node("Add", {"r", "bias"}, {"y"});
  EXPECT_THAT(warnings_of(model), IsEmpty());
}

TEST(KerasBiases, OfConvolutionsBeforeBatchNormalizationAreNotMissed) {
  TestModel model;
  model.proto.set_producer_name("tf2onnx");
  model.input("x", {"N", 3, 5, 5}).initializer("kernel", wavy({2, 3, 3, 3})).initializer("gamma", wavy({1, 2, 1, 1})).output("y");
  model.node("Conv", {"x", "kernel"}, {"h"});
  model.node("Mul", {"h", "gamma"}, {"y"});
  EXPECT_THAT(warnings_of(model), Not(HasSubstr("no layer has a bias")));
}

// --- Biases that the recipe restores ---

onnx::ImportOptions with_biases(std::vector<std::string> patterns) { return {.mend = {.add_bias = std::move(patterns)}}; }

std::vector<std::string> types_of(const onnx::Imported& imported) {
  std::vector<std::string> types;
  for (const auto& node : imported.model.graph().node()) types.push_back(node.op_type());
  return types;
}

TEST(AddBias, OfZerosIsTrainedAndGoesIntoTheFile) {
  const TestModel model = dense(false);
  const onnx::Imported imported = model.import(with_biases({"*"}));
  EXPECT_THAT(types_of(imported), ElementsAre("MatMul", "Add", "MatMul", "Add"));  // in an order in which other programs can run it
  EXPECT_EQ(imported.model.graph().output(0).name(), "y");
  EXPECT_EQ(imported.model.graph().node(3).output(0), "y");
  for (const char* name : {"dense/bias", "dense_1/bias"}) {
    const Input* bias = imported.graph.find_input(name);
    ASSERT_NE(bias, nullptr) << name;
    EXPECT_EQ(bias->role, Role::kWeight);
    EXPECT_EQ(to_string(imported.graph.type(bias->value)), "f32[2]");
    EXPECT_THAT(values_of(*bias->data), Each(0));
  }
  const Feeds feeds = {{"x", wavy({2, 3})}};
  EXPECT_EQ(values_of(interpret(imported.graph, feeds)["y"]), values_of(model.y(wavy({2, 3}))));
  EXPECT_THAT(warnings_of(model, with_biases({"*"})), HasSubstr("2 biases of zeros, as model.add_bias asks for: \"dense/bias\", \"dense_1/bias\""));
}

TEST(AddBias, TakesLayersThatAPatternNamesAndLeavesThoseThatHaveOne) {
  EXPECT_THAT(types_of(dense(false).import(with_biases({"dense_1*"}))), ElementsAre("MatMul", "MatMul", "Add"));
  EXPECT_THAT(types_of(dense(false).import(with_biases({"kernel"}))), ElementsAre("MatMul", "Add", "MatMul"));
  EXPECT_THAT(types_of(dense(true).import(with_biases({"*"}))), ElementsAre("MatMul", "Add", "MatMul", "Add"));
}

TEST(AddBias, OfConvolutionsAndGemmsIsTheirOperand) {
  TestModel model;
  model.input("x", {"N", 2, 5, 5}).initializer("a.weight", wavy({4, 1, 3, 3})).initializer("b.weight", wavy({4, 3, 2, 2})).initializer("fc.weight", wavy({5, 96})).output("y");
  model.node("Conv", {"x", "a.weight"}, {"a"}).set("group", 2);
  model.node("ConvTranspose", {"a", "b.weight"}, {"b"}).set("group", 2);
  model.node("Flatten", {"b"}, {"f"});
  model.node("Gemm", {"f", "fc.weight", ""}, {"y"}).set("transB", 1);
  const onnx::Imported imported = model.import(with_biases({"*"}));
  EXPECT_THAT(types_of(imported), ElementsAre("Conv", "ConvTranspose", "Flatten", "Gemm"));
  const auto type = [&](const char* name) { return to_string(imported.graph.type(imported.graph.find_input(name)->value)); };
  EXPECT_EQ(type("a.bias"), "f32[4]");
  EXPECT_EQ(type("b.bias"), "f32[6]");
  EXPECT_EQ(type("fc.bias"), "f32[5]");
  EXPECT_EQ(imported.model.graph().node(3).input_size(), 3);
}

TEST(AddBias, IsOneForAllCallsOfALayer) {
  TestModel model;
  model.input("x", {"N", 3}).input("z", {"N", 3}).initializer("twin.weight", wavy({3, 2})).output("y");
  model.node("MatMul", {"x", "twin.weight"}, {"a"}).named("/twin/MatMul");
  model.node("MatMul", {"z", "twin.weight"}, {"b"}).named("/twin_1/MatMul");
  model.node("Sub", {"a", "b"}, {"y"});
  const onnx::Imported imported = model.import(with_biases({"twin*"}));
  EXPECT_THAT(types_of(imported), ElementsAre("MatMul", "Add", "MatMul", "Add", "Sub"));
  EXPECT_EQ(imported.model.graph().node(1).input(1), "twin.bias");
  EXPECT_EQ(imported.model.graph().node(3).input(1), "twin.bias");
}

TEST(AddBias, OfOneUnitIsAWeightAndKeepsTheTypeOfItsLayer) {
  TestModel model;
  model.input("x", {"N", 3}, DType::kF16).initializer("kernel", wavy({3, 1}).cast(DType::kF16)).initializer("bias", f32({1}, {1})).output("y");
  model.node("MatMul", {"x", "kernel"}, {"y"});
  const onnx::Imported imported = model.import(with_biases({"*"}));
  const Input* bias = imported.graph.find_input("y/bias");
  ASSERT_NE(bias, nullptr);
  EXPECT_EQ(bias->role, Role::kWeight);
  EXPECT_EQ(to_string(imported.graph.type(bias->value)), "f16[1]");
}

TEST(AddBias, RefusesAPatternThatMatchesNoLayerWithoutOne) {
  const auto refusal = [](const TestModel& model, const char* pattern) { return problem_of(model, Code::kRecipeModel, with_biases({pattern})); };
  EXPECT_THAT(refusal(dense(false), "dens/MatMul"), testing::AllOf(HasSubstr("model.add_bias: \"dens/MatMul\" matches no MatMul, Gemm or convolution by a weight that has no bias"),
                                                                  HasSubstr("did you mean \"dense/MatMul\"?")));
  EXPECT_THAT(refusal(dense(true), "dense_1*"), HasSubstr("layers without a bias, and their weights: \"kernel\", \"dense/MatMul\""));
}

// --- Constants that look like weights ---

/// relu6(conv(x) + shift) as Keras's hard sigmoid has it, where the shift is 3.
TestModel shifted(float shift, float most = 6) {
  TestModel model;
  model.proto.set_producer_name("tf2onnx");
  model.input("x", {"N", 1, 4, 4}).initializer("kernel", f32({1, 1, 1, 1}, {0.5F})).initializer("const_fold_opt__1", f32({1, 1, 1, 1}, {shift})).output("y");
  model.initializer("low", f32({}, {0})).initializer("high", f32({}, {most}));
  model.node("Conv", {"x", "kernel"}, {"h"});
  model.node("Add", {"h", "const_fold_opt__1"}, {"s"});
  model.node("Clip", {"s", "low", "high"}, {"y"});
  return model;
}

std::vector<std::string> trained_of(const TestModel& model, const onnx::ImportOptions& options = {}) {
  std::vector<std::string> names;
  const onnx::Imported imported = model.import(options);
  for (const Input& input : imported.graph.inputs())
    if (input.role == Role::kWeight) names.push_back(input.name);
  return names;
}

TEST(KerasConstants, TheShiftOfAHardSigmoidIsNoBias) {
  EXPECT_THAT(trained_of(shifted(3)), ElementsAre("kernel"));
  EXPECT_THAT(warnings_of(shifted(3)), HasSubstr("\"const_fold_opt__1\" is the 3 of a hard sigmoid or hard swish; not trained"));
  EXPECT_THAT(trained_of(shifted(2.5F)), Contains("const_fold_opt__1")) << "the bias of a convolution of one channel";
  EXPECT_THAT(trained_of(shifted(3, 5)), Contains("const_fold_opt__1"));
  EXPECT_THAT(trained_of(shifted(3), {.mend = {.train_only = {"const_fold_opt__1"}}}), Contains("const_fold_opt__1"));
}

TEST(KerasConstants, ReciprocalsOfConstantsAreNotTrained) {
  const std::string name = "ConstantFolding/functional_1/normalization_1/truediv_recip:0";
  TestModel model;
  model.proto.set_producer_name("tf2onnx");
  model.input("x", {"N", 3}).initializer(name, f32({1, 3}, {1, 2, 3})).initializer("kernel", f32({3, 1}, {1, 2, 3})).output("y");
  model.node("Mul", {"x", name}, {"h"});
  model.node("MatMul", {"h", "kernel"}, {"y"});
  EXPECT_THAT(trained_of(model), ElementsAre("kernel"));
  model.proto.set_producer_name("somebody");
  EXPECT_THAT(trained_of(model), Contains(name));
}

/// What tf2onnx makes an input of, the mean of a Normalization layer for example, is a constant that --bind gives.
TEST(KerasConstants, WhatTheCodeWritesDownIsNotTrained) {
  const auto scaled_by = [](const std::string& name, const std::string& producer = "tf2onnx") {
    TestModel model;
    model.proto.set_producer_name(producer);
    model.input("x", {"N", 3}).initializer(name, f32({3}, {1, 2, 3})).initializer("dense/MatMul/ReadVariableOp:0", f32({3, 1}, {1, 2, 3})).output("y");
    model.node("Mul", {"x", name}, {"h"});
    model.node("MatMul", {"h", "dense/MatMul/ReadVariableOp:0"}, {"y"});
    return model;
  };
  for (const std::string name : {"sequential_1/rescaling_1/Cast/x:0", "lambda/mul/y:0", "lambda/Const_2:0", "lambda/range:0", "lambda/MatrixBandPart:0"}) {
    EXPECT_THAT(trained_of(scaled_by(name)), ElementsAre("dense/MatMul/ReadVariableOp:0")) << name;
    EXPECT_THAT(warnings_of(scaled_by(name)), HasSubstr("is a constant by the name that TensorFlow gave it, no variable; not trained"));
    EXPECT_THAT(trained_of(scaled_by(name, "somebody")), Contains(name));
  }
  for (const std::string name : {"scale/Mul/ReadVariableOp:0", "scale/Reshape:0", "x:0", "scale/xy:0"}) EXPECT_THAT(trained_of(scaled_by(name)), Contains(name));
}

TEST(KerasConstants, WhatIsBoundIsNotTrained) {
  TestModel model;
  model.input("x", {"N", 3}).input("mean", {1, 3}).initializer("kernel", f32({3, 1}, {1, 2, 3})).output("y");
  model.node("Sub", {"x", "mean"}, {"h"});
  model.node("MatMul", {"h", "kernel"}, {"y"});
  EXPECT_THAT(trained_of(model, {.bind = {{"mean", f32({1, 3}, {1, 2, 3})}}}), ElementsAre("kernel"));
}

}  // namespace
}  // namespace hone::test
