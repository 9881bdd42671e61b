// Random numbers inside of Loop and If: as ONNX has it, every iteration draws anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ir/op.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "tests/frontend/test_model.h"

namespace hone::test {
namespace {

struct Inner {
  onnx::GraphProto& graph;
  Inner(TestNode node, const std::string& attribute, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) : graph(*add(node, attribute).mutable_g()) {
    for (const std::string& name : inputs) graph.add_input()->set_name(name);
    for (const std::string& name : outputs) graph.add_output()->set_name(name);
  }
  void node(const std::string& op_type, const std::vector<std::string>& inputs, const std::string& output) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(op_type);
    for (const std::string& name : inputs) node.add_input(name);
    node.add_output(output);
  }

 private:
  static onnx::AttributeProto& add(TestNode& node, const std::string& name) {
    onnx::AttributeProto& attribute = *node.proto().add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    return attribute;
  }
};

GraphResults predicted(const TestModel& model, const Feeds& feeds) {
  Graph graph = model.import().graph;
  (void)remove_dropout(graph);
  (void)key_iterations(graph);
  (void)expand(graph);
  verify(graph);
  return interpret(graph, feeds);
}

/// A loop over "x" with count "m" and condition "on", of which each iteration draws "u" like x; all that was drawn is output `all`.
void add_loop(TestModel& model, const std::string& all, const std::string& count, const std::string& goes_on) {
  Inner body(model.node("Loop", {count, "on", "x"}, {all + "_last", all}).named(all), "body", {"i", "c", "s"}, {goes_on, "u", "shown"});
  body.node("RandomUniformLike", {"s"}, "u");
  body.node("Identity", {"u"}, "shown");
  body.node("Identity", {"c"}, "always");
  body.node("ReduceMax", {"u"}, "largest");
  body.node("Less", {"largest", "limit"}, "below");
  model.output(all);
}

TestModel drawing_model() {
  TestModel model;
  model.input("x", {"N"}).initializer("m", ints({4})).initializer("on", Tensor::scalar(true)).initializer("limit", f32({}, {0.8F}));
  return model;
}

TEST(RandomBodies, IterationsAndLoopsDrawOtherNumbers) {
  TestModel model = drawing_model();
  add_loop(model, "first", "m", "always");
  add_loop(model, "second", "m", "always");
  const GraphResults results = predicted(model, {{"x", wavy({6})}});
  std::set<std::vector<double>> rows;
  for (const char* name : {"first", "second"}) {
    const std::vector<double> all = values_of(results[name]);
    ASSERT_EQ(all.size(), 24U);
    for (std::size_t i = 0; i < 4; ++i) rows.emplace(all.begin() + static_cast<std::ptrdiff_t>(6 * i), all.begin() + static_cast<std::ptrdiff_t>(6 * i + 6));
  }
  EXPECT_EQ(rows.size(), 8U);
}

/// The count of iterations follows from what they draw: the count and the loop must draw the same.
TEST(RandomBodies, ALoopEndsByWhatItDraws) {
  TestModel model = drawing_model();
  add_loop(model, "first", "", "below");
  add_loop(model, "second", "", "below");
  const GraphResults results = predicted(model, {{"x", wavy({1})}});
  for (const char* name : {"first", "second"}) {
    const std::vector<double> all = values_of(results[name]);
    ASSERT_FALSE(all.empty());
    EXPECT_GE(all.back(), 0.8);
    for (std::size_t i = 0; i + 1 < all.size(); ++i) EXPECT_LT(all[i], 0.8);
  }
  EXPECT_NE(values_of(results["first"]), values_of(results["second"]));
}

TEST(RandomBodies, WhatIsDrawnDecidesNothingWhenCompiling) {
  TestModel model;
  model.input("x", {2}).initializer("half", f32({}, {0.5F})).output("y");
  model.node("RandomUniform", {}, {"u"}).set("shape", std::vector<std::int64_t>{1});
  model.node("Less", {"u", "half"}, {"c"});
  const TestNode node = model.node("If", {"c"}, {"y"});
  Inner(node, "then_branch", {}, {"a"}).node("Neg", {"x"}, "a");
  Inner(node, "else_branch", {}, {"b"}).node("Exp", {"x"}, "b");
  EXPECT_THAT(ops_of(model.import().graph), testing::HasSubstr("branch"));
}

/// A Dropout of the file in training mode, in a loop: training draws, the other entries keep all.
TEST(RandomBodies, DropoutOfALoopIsGoneFromPredictions) {
  TestModel model = drawing_model();
  model.initializer("rate", f32({}, {0.5F})).output("final");
  Inner body(model.node("Loop", {"m", "on", "x"}, {"final"}), "body", {"i", "c", "s"}, {"always", "dropped"});
  body.node("Identity", {"c"}, "always");
  body.node("Dropout", {"s", "rate", "on"}, "dropped");
  const Tensor x = wavy({50});
  EXPECT_EQ(values_of(predicted(model, {{"x", x}})["final"]), values_of(x));
  Graph training = model.import().graph;
  EXPECT_EQ(key_random(training, 1, Dim::symbol("N")), Changed::kYes);
  (void)expand(training);
  verify(training);
  const std::vector<double> kept = values_of(interpret(training, {{"x", x}, {"first_sample", Tensor::scalar(std::int64_t{0})}})["final"]);
  const auto zeros = std::count(kept.begin(), kept.end(), 0.0);
  EXPECT_GT(zeros, 38) << "one of sixteen outlives four iterations that draw independently";
  EXPECT_LT(zeros, 50);
}

}  // namespace
}  // namespace hone::test
