// ai.onnx.preview.training.Gradient, wherever ONNX allows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/frontend/test_model.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;

using Names = std::vector<std::string>;

TestNode add_gradient(onnx::NodeProto& proto, const Names& at, const Names& results, const std::string& y, const Names& xs, const Names& zs = {}) {
  TestNode node(proto);
  proto.set_op_type("Gradient");
  proto.set_domain("ai.onnx.preview.training");
  for (const std::string& name : at) proto.add_input(name);
  for (const std::string& name : results) proto.add_output(name);
  node.set("y", y.c_str());
  for (const auto& [key, names] : {std::pair("xs", xs), std::pair("zs", zs)}) {
    if (names.empty()) continue;
    onnx::AttributeProto& attribute = *proto.add_attribute();
    attribute.set_name(key);
    attribute.set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& name : names) attribute.add_strings(name);
  }
  return node;
}

TestNode gradient(TestModel& model, const Names& at, const Names& results, const std::string& y, const Names& xs, const Names& zs = {}) {
  return add_gradient(*model.proto.mutable_graph()->add_node(), at, results, y, xs, zs);
}

double number(const Tensor& tensor) {
  EXPECT_EQ(tensor.element_count(), 1);
  return tensor.at(0);
}

/// The standard's own case test_gradient_of_add.
TEST(Gradient, OfAdd) {
  TestModel model;
  model.input("a", {}).input("b", {}).output("c").output("dc_da").output("dc_db");
  model.node("Add", {"a", "b"}, {"c"});
  gradient(model, {"a", "b"}, {"dc_da", "dc_db"}, "c", {"a", "b"});
  const GraphResults results = model.run({{"a", f32({}, {1})}, {"b", f32({}, {2})}});
  EXPECT_EQ(number(results["c"]), 3);
  EXPECT_EQ(number(results["dc_da"]), 1);
  EXPECT_EQ(number(results["dc_db"]), 1);
}

/// test_gradient_of_add_and_mul: d = (a + b) a.
TEST(Gradient, OfAddAndMul) {
  TestModel model;
  model.input("a", {}).input("b", {}).output("d").output("dd_da").output("dd_db");
  model.node("Add", {"a", "b"}, {"c"});
  model.node("Mul", {"c", "a"}, {"d"});
  gradient(model, {"a", "b"}, {"dd_da", "dd_db"}, "d", {"a", "b"});
  const GraphResults results = model.run({{"a", f32({}, {1})}, {"b", f32({}, {2})}});
  EXPECT_EQ(number(results["d"]), 3);
  EXPECT_EQ(number(results["dd_da"]), 4) << "2 a + b";
  EXPECT_EQ(number(results["dd_db"]), 1) << "a";
}

/// The file may have the node before those that make its y.
TEST(Gradient, StandsAnywhereInTheFile) {
  TestModel model;
  model.input("x", {2}).output("dx");
  gradient(model, {"x"}, {"dx"}, "y", {"x"});
  model.node("Exp", {"x"}, {"y"});
  EXPECT_EQ(values_of(model.run({{"x", f32({2}, {0, 0})}})["dx"]), (std::vector<double>{1, 1})) << "of the sum of y's elements";
}

/// y = sum x^3: dy/dx = 3 x^2, and the derivative of that 6 x.
TEST(Gradient, OfAGradient) {
  TestModel model;
  model.input("x", {3}).output("d").output("dd").output("ddd");
  model.initializer("three", f32({}, {3})).node("Pow", {"x", "three"}, {"y"});
  gradient(model, {"x"}, {"d"}, "y", {"x"});
  gradient(model, {"x"}, {"dd"}, "d", {"x"});
  gradient(model, {"x"}, {"ddd"}, "dd", {"x"});
  const GraphResults results = model.run({{"x", f32({3}, {1, 2, -1})}});
  EXPECT_EQ(values_of(results["d"]), (std::vector<double>{3, 12, 3}));
  EXPECT_EQ(values_of(results["dd"]), (std::vector<double>{6, 12, -6}));
  EXPECT_EQ(values_of(results["ddd"]), (std::vector<double>{6, 6, 6}));
}

/// Of softmax, which has a gradient of its own, twice: y0 = softmax(x)[0] of two, p (1 - p) (1 - 2p) for x0, with p = 1 / (1 + e^-1).
TEST(Gradient, OfLayersTwice) {
  TestModel model;
  model.input("x", {1, 2}).output("dd").initializer("first", f32({1, 2}, {1, 0}));
  model.node("Softmax", {"x"}, {"p"}).set("axis", 1);
  model.node("Mul", {"p", "first"}, {"y"});
  gradient(model, {"x"}, {"d"}, "y", {"x"});
  model.node("Mul", {"d", "first"}, {"d0"});
  gradient(model, {"x"}, {"dd"}, "d0", {"x"});
  const double p = 1 / (1 + std::exp(-1.0));
  EXPECT_NEAR(model.run({{"x", f32({1, 2}, {1, 0})}})["dd"].at(0), p * (1 - p) * (1 - 2 * p), 1e-6);
}

TEST(Gradient, WithRespectToWhatIsComputed) {
  TestModel model;
  model.input("x", {2}).output("dh");
  model.node("Exp", {"x"}, {"h"});
  model.node("Mul", {"h", "h"}, {"y"});
  gradient(model, {"h"}, {"dh"}, "y", {"h"});
  EXPECT_EQ(values_of(model.run({{"x", f32({2}, {0, 0})}})["dh"]), (std::vector<double>{2, 2}));
}

/// y = h z with h = x x, taken at h = 5 and z = x: the nodes between are written once more.
TEST(Gradient, AtOtherValuesThanTheNamed) {
  TestModel model;
  model.input("x", {}).input("z", {}).output("dh").output("dz").output("y").initializer("five", f32({}, {5}));
  model.node("Mul", {"x", "x"}, {"h"});
  model.node("Mul", {"h", "z"}, {"hz"});
  model.node("Mul", {"hz", "h"}, {"y"});  // h^2 z
  gradient(model, {"five", "x"}, {"dh", "dz"}, "y", {"h", "z"});
  const GraphResults results = model.run({{"x", f32({}, {3})}, {"z", f32({}, {2})}});
  EXPECT_EQ(number(results["y"]), 162);
  EXPECT_EQ(number(results["dh"]), 2 * 5 * 3);
  EXPECT_EQ(number(results["dz"]), 25);
}

TEST(Gradient, IsZeroWhereNothingDepends) {
  TestModel model;
  model.input("x", {2}).input("u", {3}).output("du");
  model.node("Exp", {"x"}, {"y"});
  gradient(model, {"u", "x"}, {"du"}, "y", {"u"}, {"x"});
  EXPECT_EQ(values_of(model.run({{"x", f32({2}, {1, 2})}, {"u", f32({3}, {1, 2, 3})}})["du"]), (std::vector<double>{0, 0, 0}));
}

/// Equal constants are one in our graphs: only that which is named counts.
TEST(Gradient, OfAnInitializerThatLooksLikeAnotherConstant) {
  TestModel model;
  model.input("x", {}).output("dw").initializer("w", f32({}, {2})).initializer("other", f32({}, {2}));
  model.node("Mul", {"x", "w"}, {"xw"});
  model.node("Mul", {"xw", "other"}, {"y"});
  gradient(model, {"w"}, {"dw"}, "y", {"w"}, {});
  EXPECT_EQ(number(model.run({{"x", f32({}, {3})}})["dw"]), 6);
}

TEST(Gradient, LeavesOutResults) {
  TestModel model;
  model.input("a", {}).input("b", {}).output("db");
  model.node("Mul", {"a", "b"}, {"y"});
  gradient(model, {"a", "b"}, {"", "db"}, "y", {"a", "b"});
  EXPECT_EQ(number(model.run({{"a", f32({}, {7})}, {"b", f32({}, {2})}})["db"]), 7);
}

/// A function of the model: its names, not the caller's.
TEST(Gradient, InAFunction) {
  TestModel model;
  onnx::FunctionProto& function = *model.proto.add_functions();
  function.set_domain("own");
  function.set_name("Slope");
  function.add_input("u");
  function.add_output("du");
  onnx::NodeProto& square = *function.add_node();
  square.set_op_type("Mul");
  square.add_input("u");
  square.add_input("u");
  square.add_output("y");
  add_gradient(*function.add_node(), {"u"}, {"du"}, "y", {"u"});
  model.proto.add_opset_import()->set_domain("own");
  model.input("y", {}).output("slope").node("Slope", {"y"}, {"slope"}).proto().set_domain("own");
  EXPECT_EQ(number(model.run({{"y", f32({}, {4})}})["slope"]), 8);
}

/// A model whose branch for `positive` is `then_graph`, else -x. Around it, y = x x.
TestModel with_branch(const TestModel& then_graph) {
  TestModel model, else_graph;
  model.input("x", {}).input("positive", {}, DType::kBool).output("d");
  model.node("Mul", {"x", "x"}, {"y"});
  else_graph.output("minus").node("Neg", {"x"}, {"minus"});
  TestNode branch = model.node("If", {"positive"}, {"d"});
  for (const auto& [name, graph] : {std::pair("then_branch", &then_graph), std::pair<const char*, const TestModel*>("else_branch", &else_graph)}) {
    onnx::AttributeProto& attribute = *branch.proto().add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    *attribute.mutable_g() = graph->proto.graph();
  }
  return model;
}

/// Inside of a branch that stays one: y is the outer graph's, or the branch's own.
TEST(Gradient, InABranch) {
  for (const bool own : {false, true}) {
    SCOPED_TRACE(own);
    TestModel then_graph;
    if (own) then_graph.node("Exp", {"x"}, {"e"});
    gradient(then_graph, {"x"}, {"dx"}, own ? "e" : "y", {"x"});
    then_graph.output("dx");
    const TestModel model = with_branch(then_graph);
    EXPECT_NEAR(number(model.run({{"x", f32({}, {3})}, {"positive", Tensor::scalar(true)}})["d"]), own ? std::exp(3.0) : 6, 1e-5);
    EXPECT_EQ(number(model.run({{"x", f32({}, {3})}, {"positive", Tensor::scalar(false)}})["d"]), -3);
  }
}

/// cube = y x, with y = x x around the branch: half of the way is not seen from inside.
TEST(GradientErrors, AWayAroundTheBody) {
  TestModel then_graph;
  then_graph.node("Mul", {"y", "x"}, {"cube"});
  gradient(then_graph, {"x"}, {"dx"}, "cube", {"x"});
  then_graph.output("dx");
  EXPECT_THAT(to_string(problems_of(with_branch(then_graph))[0]), HasSubstr("depends on \"x\" inside of a body and around it, too"));
}

// --- What is wrong ---

std::string problem(const std::function<void(TestModel&)>& finish) {
  TestModel model;
  model.input("a", {2}).input("b", {2}).input("i", {2}, DType::kI64).output("d");
  model.node("Mul", {"a", "b"}, {"h"});
  model.node("Mul", {"h", "a"}, {"y"});
  finish(model);
  std::string text;
  for (const Diag& diag : problems_of(model)) text += to_string(diag) + "\n";
  return text;
}

TEST(GradientErrors, WhatIsMissing) {
  EXPECT_THAT(problem([](TestModel& m) { gradient(m, {"a"}, {"d"}, "yy", {"a"}); }), HasSubstr("what its attributes name is \"yy\", which nothing produces"));
  EXPECT_THAT(problem([](TestModel& m) { gradient(m, {"a"}, {"d"}, "y", {"aa"}); }), HasSubstr("\"aa\", which nothing produces"));
  EXPECT_THAT(problem([](TestModel& m) { gradient(m, {"a"}, {"d"}, "y", {}); }), HasSubstr("needs y and xs"));
  EXPECT_THAT(problem([](TestModel& m) { gradient(m, {"a"}, {"d"}, "", {"a"}); }), HasSubstr("needs y and xs"));
}

TEST(GradientErrors, WhatDoesNotFit) {
  EXPECT_THAT(problem([](TestModel& m) { gradient(m, {"a"}, {"d"}, "y", {"a", "b"}); }), HasSubstr("has 1 inputs and 1 outputs"));
  EXPECT_THAT(problem([](TestModel& m) { gradient(m, {"a"}, {"d", "e"}, "y", {"a"}); }), HasSubstr("xs alone 1"));
  EXPECT_THAT(problem([](TestModel& m) { gradient(m, {"a", "a"}, {"d"}, "y", {"a"}, {"a"}); }), HasSubstr("names \"a\" twice"));
  EXPECT_THAT(problem([](TestModel& m) { gradient(m, {"i"}, {"d"}, "y", {"i"}); }), HasSubstr("its x \"i\" is i64[2], and must be floats"));
  EXPECT_THAT(problem([](TestModel& m) { gradient(m, {"a"}, {"d"}, "i", {"a"}); }), HasSubstr("its y \"i\" is i64[2], and must be a tensor of floats"));
}

TEST(GradientErrors, ValuesThatDependOnEachOther) {
  EXPECT_THAT(problem([](TestModel& m) { gradient(m, {"a", "h"}, {"d"}, "y", {"a", "h"}); }), HasSubstr("\"h\" among its xs and zs is computed from others of its xs"));
  EXPECT_THAT(problem([](TestModel& m) { gradient(m, {"a", "h"}, {"d"}, "y", {"a"}, {"h"}); }), HasSubstr("\"h\" among its xs and zs"));
}

TEST(GradientErrors, ItsOwnResult) {
  EXPECT_THAT(problem([](TestModel& m) {
                gradient(m, {"a"}, {"d"}, "z", {"a"});
                m.node("Mul", {"d", "a"}, {"z"});
              }),
              HasSubstr("nodes depend on themselves"));
}

TEST(GradientErrors, AConstantNode) {
  EXPECT_THAT(problem([](TestModel& m) {
                m.node("Constant", {}, {"c"}).set("value", f32({}, {2}));
                m.node("Mul", {"y", "c"}, {"z"});
                gradient(m, {"c"}, {"d"}, "z", {"c"});
              }),
              HasSubstr("its x \"c\" is the value of a Constant node"));
}

/// Thousands of backward passes are refused before they are made.
TEST(GradientErrors, TooMany) {
  TestModel model;
  model.input("x", {2}).output("y0");
  for (int i = 0; i < 3000; ++i) model.node("Exp", {i == 0 ? "x" : "y" + std::to_string(i)}, {i == 2999 ? "last" : "y" + std::to_string(i + 1)});
  std::string sum = "last";
  for (int i = 0; i < 200; ++i) {
    const std::string d = "d" + std::to_string(i), next = i == 199 ? "y0" : "s" + std::to_string(i);
    gradient(model, {"x"}, {d}, "last", {"x"});
    model.node("Add", {sum, d}, {next});
    sum = next;
  }
  EXPECT_THAT(to_string(problems_of(model)[0]), HasSubstr("become more than"));
}

}  // namespace
}  // namespace hone::test
