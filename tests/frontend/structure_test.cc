// Functions of the model, bodies inside of nodes, sequences and optionals: what becomes of them in one flat graph, and what is wrong with them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/frontend/test_model.h"

namespace hone::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A function of domain "f".
struct Function {
  onnx::FunctionProto& proto;
  Function(TestModel& model, const std::string& name, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs)
      : proto(*model.proto.add_functions()) {
    proto.set_name(name);
    proto.set_domain("f");
    for (const std::string& input : inputs) proto.add_input(input);
    for (const std::string& output : outputs) proto.add_output(output);
  }
  TestNode node(const std::string& op_type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, const std::string& domain = "") {
    return add_node(*proto.add_node(), op_type, inputs, outputs, domain);
  }
};

/// An attribute of `node` that takes the value of the function's attribute `of`.
void refer(TestNode node, const std::string& name, const std::string& of) {
  onnx::AttributeProto& attribute = *node.proto().add_attribute();
  attribute.set_name(name);
  attribute.set_ref_attr_name(of);
}

Tensor truth(bool value) { return Tensor::scalar(value); }
Tensor number(std::int64_t value) { return Tensor::scalar(value); }

TEST(Functions, AreWrittenWhereTheyAreCalled) {
  TestModel model;
  model.input("x", {2}).output("y");
  model.node("Twice", {"x"}, {"a"}).named("first").proto().set_domain("f");
  model.node("Twice", {"a"}, {"y"}).named("second").proto().set_domain("f");
  Function twice(model, "Twice", {"v"}, {"w"});
  twice.node("Add", {"v", "v"}, {"w"}).named("sum");
  EXPECT_THAT(values_of(model.y(f32({2}, {1, -2}))), ElementsAre(4, -8));
  const Graph graph = model.import().graph;
  EXPECT_EQ(ops_of(graph), "add add");
  EXPECT_EQ(graph.nodes()[0].loc.node, "first/sum");
  EXPECT_EQ(graph.nodes()[1].loc.node, "second/sum");
}

TEST(Functions, TakeAttributesFromTheCallOrTheirDefaults) {
  TestModel model;
  model.input("x", {1}).output("given").output("default").output("absent");
  model.node("Leaky", {"x"}, {"given"}).set("slope", 0.5).proto().set_domain("f");
  model.node("Leaky", {"x"}, {"default"}).proto().set_domain("f");
  model.node("Plain", {"x"}, {"absent"}).proto().set_domain("f");
  Function leaky(model, "Leaky", {"v"}, {"w"});
  refer(leaky.node("LeakyRelu", {"v"}, {"w"}), "alpha", "slope");
  onnx::AttributeProto& slope = *leaky.proto.add_attribute_proto();
  slope.set_name("slope");
  slope.set_type(onnx::AttributeProto::FLOAT);
  slope.set_f(0.25);
  Function plain(model, "Plain", {"v"}, {"w"});
  plain.proto.add_attribute("slope");
  refer(plain.node("LeakyRelu", {"v"}, {"w"}), "alpha", "slope");
  const GraphResults results = model.run({{"x", f32({1}, {-100})}});
  EXPECT_THAT(values_of(results["given"]), ElementsAre(-50));
  EXPECT_THAT(values_of(results["default"]), ElementsAre(-25));
  EXPECT_THAT(values_of(results["absent"]), ElementsAre(testing::DoubleNear(-1, 1e-5)));  // the operator's own default
}

TEST(Functions, CallFunctionsAndPassAttributesOn) {
  TestModel model;
  model.input("x", {1}).output("y");
  model.node("Outer", {"x"}, {"y"}).set("slope", 0.5).proto().set_domain("f");
  Function outer(model, "Outer", {"v"}, {"w"});
  refer(outer.node("Inner", {"v"}, {"w"}, "f"), "alpha", "slope");
  Function inner(model, "Inner", {"v"}, {"w"});
  refer(inner.node("LeakyRelu", {"v"}, {"w"}), "alpha", "alpha");
  EXPECT_THAT(values_of(model.y(f32({1}, {-4}))), ElementsAre(-2));
}

TEST(Functions, MayBeGivenFewerOperands) {
  TestModel model;
  model.input("x", {2}).output("y").initializer("high", f32({}, {3}));
  model.node("Limit", {"x", "", "high"}, {"y"}).proto().set_domain("f");
  Function limit(model, "Limit", {"v", "low", "top", "unused"}, {"w"});
  limit.node("Clip", {"v", "low", "top"}, {"w"});
  EXPECT_THAT(values_of(model.y(f32({2}, {-9, 9}))), ElementsAre(-9, 3));
}

TEST(Functions, HaveOpsetsOfTheirOwn) {
  TestModel model(18);
  model.input("x", {1, 2}).output("y");
  model.node("Old", {"x"}, {"y"}).proto().set_domain("f");
  Function old(model, "Old", {"v"}, {"w"});
  old.proto.add_opset_import()->set_version(11);
  old.node("Squeeze", {"v"}, {"w"}).set("axes", std::vector<std::int64_t>{0});  // an input since opset 13
  EXPECT_EQ(model.type(), "f32[2]");
}

TEST(Functions, OverrideOperators) {
  TestModel model = TestModel::of_node("Relu", {1});
  Function relu(model, "Relu", {"v"}, {"w"});
  relu.proto.set_domain("");
  relu.node("Neg", {"v"}, {"w"});
  EXPECT_THAT(values_of(model.y(f32({1}, {-4}))), ElementsAre(4));
}

TEST(Functions, AreChosenByOverload) {
  TestModel model;
  model.input("x", {1}).output("y");
  auto& call = model.node("F", {"x"}, {"y"}).proto();
  call.set_domain("f");
  call.set_overload("second");
  Function first(model, "F", {"v"}, {"w"}), second(model, "F", {"v"}, {"w"});
  second.proto.set_overload("second");
  first.node("Abs", {"v"}, {"w"});
  second.node("Neg", {"v"}, {"w"});
  EXPECT_THAT(values_of(model.y(f32({1}, {-4}))), ElementsAre(4));
  EXPECT_EQ(ops_of(model.import().graph), "neg");
}

TEST(Functions, ThatCallThemselvesAreRefused) {
  TestModel model = TestModel::of_node("A", {1});
  model.last().proto().set_domain("f");
  Function a(model, "A", {"v"}, {"w"}), b(model, "B", {"v"}, {"w"});
  a.node("B", {"v"}, {"w"}, "f");
  b.node("A", {"v"}, {"w"}, "f");
  EXPECT_THAT(problem_of(model, Code::kBadGraph), HasSubstr("the function f.A calls itself, directly or through others"));
}

TEST(Functions, ThatGrowExponentiallyAreRefused) {
  TestModel model = TestModel::of_node("F60", {1});
  model.last().proto().set_domain("f");
  for (int i = 0; i <= 60; ++i) {
    Function one(model, fmt::format("F{}", i), {"v"}, {"w"});
    const std::string inner = i == 0 ? "Relu" : fmt::format("F{}", i - 1), domain = i == 0 ? "" : "f";
    one.node(inner, {"v"}, {"half"}, domain);
    one.node(inner, {"half"}, {"w"}, domain);
  }
  EXPECT_THAT(problem_of(model, Code::kTooLarge), HasSubstr("grow exponentially"));
}

TEST(Functions, ThatCallEachOtherTooDeeplyAreRefused) {
  constexpr int kDepth = 5000;
  TestModel model = TestModel::of_node("F5000", {1});
  model.last().proto().set_domain("f");
  for (int i = 0; i <= kDepth; ++i) {
    Function one(model, fmt::format("F{}", i), {"v"}, {"w"});
    one.node(i == 0 ? "Relu" : fmt::format("F{}", i - 1), {"v"}, {"w"}, i == 0 ? "" : "f");
  }
  EXPECT_THAT(problem_of(model, Code::kTooLarge), HasSubstr("deep in each other"));
}

TEST(Functions, ProblemsAreReportedOnceAtTheFirstCall) {
  TestModel model;
  model.input("x", {2}).output("y");
  model.node("Bad", {"x"}, {"a"}).named("first").proto().set_domain("f");
  model.node("Bad", {"x"}, {"b"}).named("second").proto().set_domain("f");
  model.node("Add", {"a", "b"}, {"y"});
  Function bad(model, "Bad", {"v"}, {"w"});
  bad.node("Transpose", {"v"}, {"w"}).named("turn").set("perm", std::vector<std::int64_t>{0, 0});
  EXPECT_THAT(problem_of(model, Code::kBadAttribute), HasSubstr("\"first/turn\""));
}

TEST(Functions, ThatAreMissingAreNamed) {
  TestModel model = TestModel::of_node("Mine", {"N"});
  model.last().proto().set_domain("my.domain");
  EXPECT_THAT(problem_of(model, Code::kUnknownOp), HasSubstr("export the model with the operator as a function of the model"));
}

TEST(Functions, WithTooManyOperandsOrTwiceAreRefused) {
  TestModel model = TestModel::of_node("F", {1}, {f32({1}, {1})});
  model.last().proto().set_domain("f");
  Function f(model, "F", {"v"}, {"w"});
  f.node("Relu", {"v"}, {"w"});
  EXPECT_THAT(problem_of(model, Code::kBadGraph), HasSubstr("has 2 inputs, and the function f.F takes 1"));
  model.last().proto().mutable_input()->RemoveLast();
  Function again(model, "F", {"v"}, {"w"});
  EXPECT_THAT(problem_of(model, Code::kBadGraph), HasSubstr("there are two functions f.F"));
}

/// y = condition ? x + w : -x, with x and w read from outside.
TestModel if_model(bool condition) {
  TestModel model;
  model.input("x", {2}).initializer("w", f32({2}, {10, 20})).initializer("c", truth(condition)).output("y");
  onnx::NodeProto& node = model.node("If", {"c"}, {"y"}).named("choose").proto();
  BodyGraph then_branch(node, "then_branch"), else_branch(node, "else_branch");
  then_branch.output("sum").node("Add", {"x", "w"}, {"sum"});
  else_branch.output("minus").node("Neg", {"x"}, {"minus"});
  return model;
}

TEST(If, TakesTheBranchOfAKnownCondition) {
  EXPECT_THAT(values_of(if_model(true).y(f32({2}, {1, 2}))), ElementsAre(11, 22));
  EXPECT_THAT(values_of(if_model(false).y(f32({2}, {1, 2}))), ElementsAre(-1, -2));
  EXPECT_EQ(if_model(true).import().graph.nodes()[0].loc.node, "choose/then/sum");
}

TEST(If, ReadsWhatIsMadeBehindItInTheFile) {
  TestModel model = if_model(true);
  model.node("Exp", {"x"}, {"late"});
  model.proto.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_input(1, "late");
  EXPECT_EQ(ops_of(model.import().graph), "exp add");
}

TEST(If, ReportsNamesThatNothingMakes) {
  TestModel model = if_model(true);
  model.proto.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_input(1, "nowhere");
  EXPECT_THAT(problem_of(model, Code::kBadGraph), HasSubstr("If: what its body reads is \"nowhere\", which nothing produces"));
}

TEST(If, ChecksWhatItsBranchGives) {
  TestModel model = if_model(true);
  model.output("z").proto.mutable_graph()->mutable_node(0)->add_output("z");
  EXPECT_THAT(problem_of(model, Code::kBadGraph), HasSubstr("has 1 outputs, and must have at least 2"));
}

TEST(If, HasInitializersInItsBranches) {
  TestModel model = if_model(true);
  onnx::TensorProto& own = *model.proto.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g()->add_initializer();
  own.set_name("own");
  store_tensor(&own, f32({2}, {5, 6}));
  model.proto.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_input(1, "own");
  EXPECT_THAT(values_of(model.y(f32({2}, {1, 2}))), ElementsAre(6, 8));
  EXPECT_EQ(model.import().graph.find_input("own")->role, Role::kWeight);
}

TEST(If, InsideOfAFunctionSeesTheFunctionsNamesAndAttributes) {
  TestModel model;
  model.input("x", {1}).output("y").initializer("c", truth(true)).initializer("v", f32({1}, {1000}));
  model.node("F", {"x", "c"}, {"y"}).set("slope", 0.5).proto().set_domain("f");
  Function f(model, "F", {"v", "choice"}, {"w"});
  onnx::NodeProto& node = f.node("If", {"choice"}, {"w"}).proto();
  BodyGraph then_branch(node, "then_branch"), else_branch(node, "else_branch");
  refer(then_branch.output("a").node("LeakyRelu", {"v"}, {"a"}), "alpha", "slope");
  else_branch.output("b").node("Neg", {"v"}, {"b"});
  EXPECT_THAT(values_of(model.y(f32({1}, {-8}))), ElementsAre(-4));
}

TEST(If, NestedTooDeeplyIsRefused) {
  TestModel model;
  model.initializer("c", truth(true)).input("x", {1}).output("y");
  onnx::NodeProto* node = &model.node("If", {"c"}, {"y"}).proto();
  for (int depth = 0; depth < 3000; ++depth) {
    BodyGraph branch(*node, "then_branch");
    node = &branch.output("y").node("If", {"c"}, {"y"}).proto();
  }
  EXPECT_THAT(problem_of(model, Code::kTooLarge), HasSubstr("the limit is 64"));
}

/// y, all = loop of `trips`: v <- v + x, each v stacked.
TestModel loop_model(std::int64_t trips) {
  TestModel model;
  model.input("x", {2}).initializer("m", number(trips)).output("y").output("all");
  onnx::NodeProto& node = model.node("Loop", {"m", "", "x"}, {"y", "all"}).named("repeat").proto();
  BodyGraph body(node, "body");
  body.input("i").input("go").input("v").output("go_on").output("sum").output("each");
  body.node("Identity", {"go"}, {"go_on"});
  body.node("Add", {"v", "x"}, {"sum"});
  body.node("Neg", {"sum"}, {"each"});
  return model;
}

TEST(Loop, CarriesStatesAndStacksResults) {
  const GraphResults results = loop_model(3).run({{"x", f32({2}, {1, 2})}});
  EXPECT_THAT(values_of(results["y"]), ElementsAre(4, 8));
  EXPECT_THAT(values_of(results["all"]), ElementsAre(-2, -4, -3, -6, -4, -8));
}

TEST(Loop, WithoutIterationsGivesEmptyStacks) {
  EXPECT_EQ(loop_model(0).type("all"), "f32[0,2]");
  EXPECT_THAT(values_of(loop_model(0).run({{"x", f32({2}, {1, 2})}})["y"]), ElementsAre(1, 2));
}

TEST(Loop, EndsWhenItsConditionDoes) {
  TestModel model = loop_model(100);
  onnx::NodeProto& condition = *model.proto.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_node(0);
  condition.Clear();
  model.initializer("last", number(4));
  add_node(condition, "Less", {"i", "last"}, {"go_on"});
  EXPECT_EQ(model.type("all"), "f32[repeat.trips,2]");  // the loop itself tells, when running
  EXPECT_EQ(model.run({{"x", f32({2}, {1, 2})}})["all"].shape(), (std::vector<std::int64_t>{5, 2}));
}

TEST(Loop, ChecksItsBody) {
  TestModel model = loop_model(3);
  onnx::GraphProto& body = *model.proto.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
  body.add_input()->set_name("more");
  EXPECT_THAT(problem_of(model, Code::kBadGraph), HasSubstr("has 4 inputs, and must have 3"));
  body.mutable_input()->RemoveLast();
  body.mutable_output()->RemoveLast();
  EXPECT_THAT(problem_of(model, Code::kBadGraph), HasSubstr("has 2 outputs, and must have at least 3"));
}

TEST(Loop, CollectsSequencesAndReadsThemByPosition) {
  TestModel model;
  model.input("x", {2}).initializer("m", number(3)).output("y");
  model.node("SequenceEmpty", {}, {"none"});
  onnx::NodeProto& node = model.node("Loop", {"m", "", "none"}, {"sequence"}).proto();
  BodyGraph body(node, "body");
  body.input("i").input("go").input("s").output("go").output("more");
  body.node("Cast", {"i"}, {"number"}).set("to", 1);
  body.node("Mul", {"x", "number"}, {"product"});
  body.node("SequenceInsert", {"s", "product"}, {"more"});
  model.node("ConcatFromSequence", {"sequence"}, {"y"}).set("axis", 0).set("new_axis", 1);
  EXPECT_THAT(values_of(model.y(f32({2}, {1, 2}))), ElementsAre(0, 0, 1, 2, 2, 4));
}

TEST(Scan, GoesAlongAnyAxisInEitherDirection) {
  TestModel model;
  model.input("x", {2, 3}).initializer("zero", f32({2}, {0, 0})).output("last").output("sums");
  onnx::NodeProto& node = model.node("Scan", {"zero", "x"}, {"last", "sums"})
                              .set("num_scan_inputs", 1)
                              .set("scan_input_axes", std::vector<std::int64_t>{1})
                              .set("scan_input_directions", std::vector<std::int64_t>{1})
                              .set("scan_output_axes", std::vector<std::int64_t>{-1})
                              .proto();
  BodyGraph body(node, "body");
  body.input("total").input("slice").output("sum").output("copy");
  body.node("Add", {"total", "slice"}, {"sum"});
  body.node("Identity", {"sum"}, {"copy"});
  const GraphResults results = model.run({{"x", f32({2, 3}, {1, 2, 3, 10, 20, 30})}});
  EXPECT_THAT(values_of(results["last"]), ElementsAre(6, 60));
  EXPECT_THAT(values_of(results["sums"]), ElementsAre(3, 5, 6, 30, 50, 60));
}

/// y = first tensor of the sequence "s" that the model is given.
TestModel sequence_model() {
  TestModel model;
  onnx::ValueInfoProto& input = *model.proto.mutable_graph()->add_input();
  input.set_name("s");
  auto& tensor = *input.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type();
  tensor.set_elem_type(1);
  tensor.mutable_shape()->add_dim()->set_dim_param("N");
  model.initializer("at", number(-1)).output("y").node("SequenceAt", {"s", "at"}, {"y"});
  return model;
}

TEST(Sequences, FedOnesAreInputsEach) {
  const TestModel model = sequence_model();
  const Graph graph = model.import({.dims = {{"s", 3}}}).graph;
  EXPECT_EQ(to_string(graph.type(graph.find_input("s.2")->value)), "f32[s.2_dim0]");
  EXPECT_EQ(graph.outputs()[0].value, graph.find_input("s.2")->value);
  EXPECT_THAT(problem_of(model, Code::kDynamic), HasSubstr("say so with --dim s=N; the tensors become the inputs s.0, s.1, ..."));
}

TEST(Sequences, GivenOnesAreOutputsEach) {
  TestModel model;
  model.input("x", {5}).output("parts").initializer("sizes", ints({2, 3}));
  model.node("SplitToSequence", {"x", "sizes"}, {"parts"});
  EXPECT_EQ(model.type("parts.0"), "f32[2]");
  EXPECT_EQ(model.type("parts.1"), "f32[3]");
}

TEST(Sequences, PositionsMustLieInside) {
  TestModel model = sequence_model();
  EXPECT_THAT(problem_of(model, Code::kBadAttribute, {.dims = {{"s", 0}}}), HasSubstr("the sequence is empty"));
  model.proto.mutable_graph()->mutable_initializer(0)->Clear();
  model.proto.mutable_graph()->mutable_initializer(0)->set_name("at");
  store_tensor(model.proto.mutable_graph()->mutable_initializer(0), number(2));
  EXPECT_THAT(problem_of(model, Code::kBadAttribute, {.dims = {{"s", 2}}}), HasSubstr("position 2 of a sequence of 2 tensors"));
}

TEST(Sequences, AreNoTensors) {
  TestModel model;
  model.input("x", {5}).output("y");
  model.node("SequenceConstruct", {"x", "x"}, {"s"});
  model.node("Relu", {"s"}, {"y"});
  EXPECT_THAT(problem_of(model, Code::kType), HasSubstr("input 0 is a sequence of 2 tensors, and must be a tensor"));
}

TEST(Optionals, AreGivenUnlessSaidOtherwise) {
  TestModel model;
  onnx::ValueInfoProto& input = *model.proto.mutable_graph()->add_input();
  input.set_name("o");
  auto& tensor = *input.mutable_type()->mutable_optional_type()->mutable_elem_type()->mutable_tensor_type();
  tensor.set_elem_type(1);
  tensor.mutable_shape()->add_dim()->set_dim_value(1);
  model.output("y").node("OptionalHasElement", {"o"}, {"there"});
  onnx::NodeProto& node = model.node("If", {"there"}, {"y"}).proto();
  BodyGraph then_branch(node, "then_branch"), else_branch(node, "else_branch");
  then_branch.output("value").node("OptionalGetElement", {"o"}, {"value"});
  else_branch.output("zero").node("Constant", {}, {"zero"}).set("value", f32({1}, {0}));
  EXPECT_THAT(values_of(model.run({{"o", f32({1}, {7})}})["y"]), ElementsAre(7));
  const Graph absent = model.import({.dims = {{"o", 0}}}).graph;
  EXPECT_EQ(absent.find_input("o"), nullptr);
  EXPECT_THAT(ops_of(absent), IsEmpty());
}

TEST(Outputs, MayBeInputsOrInitializers) {
  TestModel model;
  model.input("x", {2}).initializer("w", f32({1}, {3})).output("x").output("w");
  const GraphResults results = model.run({{"x", f32({2}, {1, 2})}});
  EXPECT_THAT(values_of(results["x"]), ElementsAre(1, 2));
  EXPECT_THAT(values_of(results["w"]), ElementsAre(3));
}

TEST(Outputs, TwiceTheSameNameIsReported) {
  TestModel model = TestModel::of_node("Relu", {1});
  model.output("y");
  EXPECT_THAT(problem_of(model, Code::kBadGraph), HasSubstr("there are two outputs named \"y\""));
}

}  // namespace
}  // namespace hone::test
