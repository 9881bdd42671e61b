// Wrong models: each problem is named, with its place and a way out, and all of them at once.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/onnx/versions.h"
#include "tests/frontend/test_model.h"

namespace hone::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(ImportErrors, ListsAllUnknownOperators) {
  TestModel model;
  model.input("x", {"N"}).output("y");
  model.node("RegexFullMatch", {"x", "x"}, {"a"}).named("layer/first");
  model.node("RegexFullMatch", {"a", "a"}, {"b"}).named("layer/second");
  model.node("Sotfmax", {"b"}, {"c"});
  model.node("FusedThing", {"c"}, {"y"}).proto().set_domain("com.microsoft");
  const std::vector<Diag> diags = problems_of(model);
  ASSERT_THAT(diags, SizeIs(3));
  for (const Diag& diag : diags) EXPECT_EQ(diag.code, Code::kUnknownOp);
  EXPECT_EQ(diags[0].message, "operator RegexFullMatch is not supported (2 nodes)");
  EXPECT_EQ(diags[0].loc.node, "layer/first");
  EXPECT_THAT(diags[0].notes, ElementsAre("also at \"layer/second\"", HasSubstr("no strings")));
  EXPECT_THAT(diags[1].notes, ElementsAre("ONNX has no such operator; did you mean \"Softmax\"?"));
  EXPECT_EQ(diags[2].message, "operator FusedThing of domain \"com.microsoft\" is not supported (1 node)");
}

TEST(ImportErrors, TenProblemsGiveTenMessages) {
  TestModel model;
  for (int i = 0; i < 10; ++i) {
    const std::string n = std::to_string(i);
    model.input("x" + n, {"N", 2}).output("y" + n).initializer("w" + n, wavy({3, 1}));
    model.node("MatMul", {"x" + n, "w" + n}, {"product" + n}).named("wrong" + n);
    model.node("Relu", {"product" + n}, {"y" + n});  // depends on what failed: nothing to say about it
  }
  const std::vector<Diag> diags = problems_of(model);
  ASSERT_THAT(diags, SizeIs(10));
  for (std::size_t i = 0; i < diags.size(); ++i) {
    EXPECT_EQ(diags[i].code, Code::kShape);
    EXPECT_EQ(diags[i].loc.node, "wrong" + std::to_string(i));
  }
  EXPECT_THAT(to_string(diags[0]), HasSubstr("inner dimensions differ: 2 and 3"));
  EXPECT_THAT(to_string(diags[0]), HasSubstr("in test.onnx"));
}

TEST(ImportErrors, DifferentProblemsComeTogether) {
  TestModel model;
  model.input("x", {"N", 2}).output("a").output("b").output("c").output("d");
  model.node("Relu", {"nowhere"}, {"a"});
  model.node("NoSuchOperator", {"x"}, {"b"});
  model.node("Transpose", {"x"}, {"c"}).set("perm", std::vector<std::int64_t>{0, 0});
  std::vector<Code> codes;
  for (const Diag& diag : problems_of(model)) codes.push_back(diag.code);
  EXPECT_THAT(codes, testing::UnorderedElementsAre(Code::kBadGraph, Code::kBadGraph, Code::kUnknownOp, Code::kBadAttribute));
}

TEST(ImportErrors, MissingValueWithTheNearestName) {
  TestModel model;
  model.input("image", {"N"}).output("y");
  model.node("Relu", {"imgae"}, {"y"});
  const std::string problem = problem_of(model, Code::kBadGraph);
  EXPECT_THAT(problem, HasSubstr("Relu: input 0 is \"imgae\", which nothing produces"));
  EXPECT_THAT(problem, HasSubstr("did you mean \"image\"?"));
}

TEST(ImportErrors, OutputThatNothingProduces) {
  TestModel model = TestModel::of_node("Relu", {"N"});
  model.output("z");
  EXPECT_THAT(problem_of(model, Code::kBadGraph), HasSubstr("an output of the model is \"z\""));
}

TEST(ImportErrors, NoOutputs) {
  TestModel model = TestModel::of_node("Relu", {"N"});
  model.proto.mutable_graph()->clear_output();
  EXPECT_THAT(problem_of(model, Code::kBadGraph), HasSubstr("no outputs"));
}

TEST(ImportErrors, CyclesAreNamedNodeByNode) {
  TestModel model;
  model.input("x", {"N"}).output("y");
  model.node("Add", {"x", "c"}, {"a"}).named("first");
  model.node("Relu", {"a"}, {"b"}).named("second");
  model.node("Exp", {"b"}, {"c"}).named("third");
  model.node("Neg", {"b"}, {"y"}).named("behind");
  EXPECT_THAT(problem_of(model, Code::kBadGraph), HasSubstr("\"first\" reads \"third\" reads \"second\" reads \"first\""));
}

TEST(ImportErrors, NodeThatReadsItself) {
  TestModel model;
  model.input("x", {"N"}).output("y");
  model.node("Add", {"x", "y"}, {"y"}).named("loop");
  EXPECT_THAT(problem_of(model, Code::kBadGraph), HasSubstr("\"loop\" reads \"loop\""));
}

TEST(ImportErrors, ValueMadeTwice) {
  TestModel model;
  model.input("x", {"N"}).output("y");
  model.node("Relu", {"x"}, {"y"}).named("one");
  model.node("Exp", {"x"}, {"y"}).named("two");
  const std::string problem = problem_of(model, Code::kBadGraph);
  EXPECT_THAT(problem, HasSubstr("the value \"y\" is made twice"));
  EXPECT_THAT(problem, HasSubstr("\"one\""));
}

TEST(ImportErrors, InitializersOfOneName) {
  TestModel model = TestModel::of_node("Add", {"N"}, {wavy({1})});
  model.initializer("b", wavy({1}));
  EXPECT_THAT(problem_of(model, Code::kBadGraph), HasSubstr("two initializers named \"b\""));
}

TEST(ImportErrors, OpsetsOutOfRange) {
  EXPECT_THAT(problem_of(TestModel::of_node("Relu", {"N"}, {}, 0), Code::kOpset), HasSubstr("opset 0 is too old: 1 to"));
  EXPECT_THAT(problem_of(TestModel::of_node("Relu", {"N"}, {}, onnx::kNewestOpset + 1), Code::kOpset), HasSubstr("is newer than"));
  TestModel none = TestModel::of_node("Relu", {"N"});
  none.proto.clear_opset_import();
  EXPECT_THAT(problem_of(none, Code::kOpset), HasSubstr("does not say which version"));
}

TEST(ImportErrors, WeightThatDoesNotFit) {
  const std::string problem = problem_of(TestModel::of_node("Conv", {"N", 3, 8, 8}, {wavy({4, 2, 3, 3})}), Code::kShape);
  EXPECT_THAT(problem, HasSubstr("channels"));
  EXPECT_THAT(problem, HasSubstr("\"b\" is a weight of the model"));
  EXPECT_THAT(problem_of(TestModel::of_node("Conv", {"N", 2, 8}, {wavy({4, 2, 3}), wavy({3})}), Code::kShape),
              HasSubstr("the bias has 3 elements for 4 channels"));
}

TEST(ImportErrors, WeightWithDataOfAnotherLength) {
  TestModel model = TestModel::of_node("Add", {"N", 3}, {wavy({3})});
  model.proto.mutable_graph()->mutable_initializer(0)->set_dims(0, 5);
  EXPECT_THAT(problem_of(model, Code::kBadWeight), HasSubstr("\"b\""));
}

TEST(ImportErrors, WeightDeclaredWithAnotherShape) {
  TestModel model = TestModel::of_node("Add", {"N", 3}, {wavy({3})});
  model.input("b", {4});
  EXPECT_THAT(problem_of(model, Code::kBadWeight), HasSubstr("initializer \"b\" is f32[3], and is declared as f32[4]"));
}

TEST(ImportErrors, AxesThatAreAnInput) {
  TestModel model;
  model.input("x", {"N", 4}).input("axes", {"K"}, DType::kI64).output("y");
  model.node("Unsqueeze", {"x", "axes"}, {"y"}).named("view");
  const std::string problem = problem_of(model, Code::kDynamic);
  EXPECT_THAT(problem, HasSubstr("Unsqueeze: the contents of input 1 (axes) must be known when compiling"));
  EXPECT_THAT(problem, HasSubstr("at node \"view\""));
  EXPECT_THAT(problem, HasSubstr("\"axes\" is an input of the model"));
  EXPECT_THAT(problem, HasSubstr("--bind"));
}

TEST(ImportErrors, RangeInStepsOfASymbolicSize) {
  TestModel model;
  model.input("x", {"T"}).output("y").initializer("zero", i64({}, {0})).initializer("ten", i64({}, {10}));
  model.node("Size", {"x"}, {"step"});
  model.node("Range", {"zero", "ten", "step"}, {"y"});
  EXPECT_THAT(problem_of(model, Code::kDynamic), HasSubstr("delta must be a number, and is T"));
  const Graph fixed = model.import({.dims = {{"T", 3}}}).graph;
  EXPECT_EQ(to_string(fixed.type(fixed.outputs()[0].value)), "i64[4]");
}

TEST(ImportErrors, SizesToFixThatAreNotThere) {
  const TestModel model = TestModel::of_node("Relu", {"batch", "length"});
  const std::string problem = problem_of(model, Code::kUsage, {.dims = {{"lenght", 3}}});
  EXPECT_THAT(problem, HasSubstr("the model has no size \"lenght\" to fix"));
  EXPECT_THAT(problem, HasSubstr("did you mean \"length\"?"));
  EXPECT_THAT(problem_of(model, Code::kUsage, {.dims = {{"batch", -3}}}), HasSubstr("cannot be -3"));
}

TEST(ImportErrors, SizesThatAreAnotherOne) {
  TestModel model;
  model.input("x", {"N"}).input("y", {"M"}).input("z", {"K"}).output("both");
  model.node("Concat", {"x", "y", "z"}, {"both"}).set("axis", 0);
  const auto shown = [&](const onnx::ImportOptions& options) { const Graph graph = model.import(options).graph; return to_string(graph.type(graph.outputs()[0].value)); };
  EXPECT_EQ(shown({.equal_dims = {{"M", "N"}, {"K", "M"}}}), "f32[3*N]");
  EXPECT_EQ(shown({.dims = {{"N", 2}}, .equal_dims = {{"M", "N"}}}), "f32[K + 4]");
  EXPECT_THAT(problem_of(model, Code::kUsage, {.equal_dims = {{"N", "N"}}}), HasSubstr("the size \"N\" is to be \"N\", and the other way round"));
  EXPECT_THAT(problem_of(model, Code::kUsage, {.equal_dims = {{"L", "N"}}}), HasSubstr("the model has no size \"L\" to be another one"));
}

TEST(ImportErrors, InputsThatAreNoTensors) {
  TestModel sequence = TestModel::of_node("Relu", {"N"});
  sequence.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type();
  EXPECT_THAT(problem_of(sequence, Code::kType), HasSubstr("input \"x\" is no tensor"));
  TestModel text = TestModel::of_node("Relu", {"N"});
  text.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::STRING);
  EXPECT_THAT(problem_of(text, Code::kType), HasSubstr("STRING"));
  TestModel shapeless = TestModel::of_node("Relu", {"N"});
  shapeless.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  EXPECT_THAT(problem_of(shapeless, Code::kDynamic), HasSubstr("the number of its axes"));
}

TEST(ImportErrors, WrongAttributes) {
  const auto conv = [](auto&& set) {
    TestModel model = TestModel::of_node("Conv", {"N", 1, 8}, {wavy({1, 1, 3})});
    set(model.last());
    return problem_of(model, Code::kBadAttribute);
  };
  using List = std::vector<std::int64_t>;
  EXPECT_THAT(conv([](TestNode node) { node.set("strides", List{0}); }), HasSubstr("strides of 0"));
  EXPECT_THAT(conv([](TestNode node) { node.set("strides", List{1, 1}); }), HasSubstr("strides has 2 entries for 1 spatial axes"));
  EXPECT_THAT(conv([](TestNode node) { node.set("pads", List{-1, 0}); }), HasSubstr("pads of -1"));
  EXPECT_THAT(conv([](TestNode node) { node.set("auto_pad", "SAME"); }), HasSubstr("auto_pad = \"SAME\""));
  EXPECT_THAT(conv([](TestNode node) { node.set("group", 0); }), HasSubstr("group = 0"));
  EXPECT_THAT(conv([](TestNode node) { node.set("strides", "2"); }), HasSubstr("attribute strides must be a list of whole numbers"));
  TestModel softmax = TestModel::of_node("Softmax", {"N", 3});
  softmax.last().set("axis", 2);
  EXPECT_THAT(problem_of(softmax, Code::kBadAttribute), HasSubstr("axis 2 of a tensor of 2 axes"));
  TestModel cast = TestModel::of_node("Cast", {"N"});
  cast.last().set("to", 8);
  EXPECT_THAT(problem_of(cast, Code::kType), HasSubstr("STRING"));
}

TEST(ImportErrors, WrongOperandCounts) {
  TestModel few, many;
  few.input("x", {"N"}).output("y");
  many.input("x", {"N"}).output("y");
  few.node("Add", {"x"}, {"y"});
  many.node("Relu", {"x", "x"}, {"y"});
  EXPECT_THAT(problem_of(few, Code::kBadGraph), HasSubstr("Add: has 1 inputs, and needs 2"));
  EXPECT_THAT(problem_of(many, Code::kBadGraph), HasSubstr("Relu: has 2 inputs, and needs 1"));
  TestModel missing;
  missing.input("x", {"N", 2}).output("y");
  missing.node("Gemm", {"x"}, {"y"});
  EXPECT_THAT(problem_of(missing, Code::kBadGraph), HasSubstr("input 1 is missing"));
}

TEST(ImportErrors, HostileSizes) {
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_THAT(problem_of(TestModel::of_node("Relu", {huge, huge}), Code::kTooLarge), HasSubstr("limit"));
  TestModel filled;
  filled.output("y").initializer("shape", ints({1 << 30, 1 << 30}));
  filled.node("ConstantOfShape", {"shape"}, {"y"});
  EXPECT_THAT(problem_of(filled, Code::kTooLarge), HasSubstr("2^40"));
  TestModel range;
  range.output("y").initializer("a", i64({}, {0})).initializer("b", i64({}, {huge})).initializer("c", i64({}, {1}));
  range.node("Range", {"a", "b", "c"}, {"y"});
  EXPECT_THAT(problem_of(range, Code::kTooLarge), HasSubstr("elements"));
  EXPECT_THAT(problem_of(TestModel::of_node("Unsqueeze", {"N"}, {ints({0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                                                       16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31})}),
                         Code::kTooLarge),
              HasSubstr("33 axes"));
  EXPECT_THAT(problem_of(TestModel::of_node("Slice", {"N"}, {ints({0}), ints({5}), ints({0}), ints({0})}), Code::kBadAttribute), HasSubstr("a step of 0"));
}

TEST(ImportErrors, DeepChainsDoNotOverflowTheStack) {
  TestModel model;
  model.input("x", {"N"}).output("y");
  constexpr int kDepth = 50'000;
  for (int i = kDepth; i-- > 0;) model.node("Neg", {i == 0 ? "x" : fmt::format("v{}", i - 1)}, {i + 1 == kDepth ? "y" : fmt::format("v{}", i)});
  EXPECT_EQ(model.import().graph.node_count(), static_cast<std::size_t>(kDepth));
}

// --- Outputs that nobody asks for ---

/// Logits and, from the layer before, an output that another operator makes.
TestModel with_strange_output(const std::string& domain = "boxes.of.mine") {
  TestModel model;
  model.input("x", {"N", 3}).initializer("w", wavy({3, 4})).initializer("v", wavy({4, 2})).output("logits").output("strange");
  model.node("MatMul", {"x", "w"}, {"h"});
  model.node("MatMul", {"h", "v"}, {"logits"});
  model.node("Sparkle", {"h"}, {"s"}).named("sparkle");
  model.last().proto().set_domain(domain);
  model.node("Relu", {"s"}, {"strange"});
  return model;
}

TEST(ImportErrors, LeavesOutWhatLeadsToOutputsThatNobodyAsksFor) {
  const onnx::Imported imported = with_strange_output().import({.output = "logits"});
  ASSERT_EQ(imported.graph.outputs().size(), 1U);
  EXPECT_EQ(imported.graph.outputs()[0].name, "logits");
  ASSERT_EQ(imported.warnings.size(), 1U);
  EXPECT_THAT(to_string(imported.warnings[0]), ::testing::AllOf(HasSubstr("the output \"strange\" is left out: \"logits\", which is asked for, needs nothing of what cannot be imported"),
                                                              HasSubstr("at node \"sparkle\": operator Sparkle of domain \"boxes.of.mine\" is not supported")));
  EXPECT_EQ(imported.model.graph().node_size(), 4);  // the trained file has all of it
}

TEST(ImportErrors, RefusesWhatTheOutputThatIsAskedForNeeds) {
  EXPECT_THAT(problem_of(with_strange_output(), Code::kUnknownOp, {.output = "strange"}), HasSubstr("operator Sparkle of domain"));
}

TEST(ImportErrors, NamesTheOutputsThatAreLeftWhereAllAreWanted) {
  EXPECT_THAT(problem_of(with_strange_output(), Code::kUnknownOp), HasSubstr("of the model's outputs \"logits\" can be imported: [model] output = \"logits\" leaves the rest out"));
}

TEST(ImportErrors, LeavesOutNodesThatAreWronglyUsedToo) {
  TestModel model;
  model.input("x", {"N", 3}).initializer("w", wavy({3, 4})).initializer("v", wavy({5, 2})).output("y").output("z");
  model.node("MatMul", {"x", "w"}, {"y"});
  model.node("MatMul", {"y", "v"}, {"z"}).named("misfit");
  const onnx::Imported imported = model.import({.output = "y"});
  ASSERT_EQ(imported.graph.outputs().size(), 1U);
  EXPECT_THAT(to_string(imported.warnings.at(0)), HasSubstr("at node \"misfit\": MatMul: inner dimensions differ"));
}

TEST(ImportErrors, LeavesOutInputsThatNothingElseReads) {
  TestModel model;
  model.input("x", {"N", 3}).input("words", {"M"}).initializer("w", wavy({3, 4})).output("y").output("lower");
  model.proto.mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::STRING);
  model.node("MatMul", {"x", "w"}, {"y"});
  model.node("StringNormalizer", {"words"}, {"lower"});
  EXPECT_THAT(problems_of(model), SizeIs(2));
  const onnx::Imported imported = model.import({.output = "y"});
  EXPECT_EQ(imported.graph.find_input("words"), nullptr);
  EXPECT_THAT(to_string(imported.warnings.at(0)), HasSubstr("the output \"lower\" is left out"));
}

TEST(ImportErrors, TakesAValueBetweenTheNodesForTheOutputThatIsAskedFor) {
  TestModel model;
  model.input("x", {"N", 3}).initializer("w", wavy({3, 4})).output("classes");
  model.node("MatMul", {"x", "w"}, {"logits"});
  model.node("ArgMax", {"logits"}, {"classes"}).set("axis", 1);
  const onnx::Imported imported = model.import({.output = "logits"});
  ASSERT_NE(imported.graph.find_output("logits"), nullptr);
  EXPECT_NE(imported.graph.find_output("classes"), nullptr);
  EXPECT_EQ(imported.model.graph().output_size(), 1) << "the file's outputs are its own";
  EXPECT_EQ(model.import({.output = "nothing"}).graph.outputs().size(), 1U);
}

TEST(ImportErrors, SaysWhyALoopMustBeCounted) {
  TestModel model;
  model.input("x", {"N", 3}).input("n", {}, DType::kI64).output("y");
  model.node("SequenceEmpty", {}, {"none"});
  model.node("Loop", {"n", "", "x", "none"}, {"last", "all"});
  BodyGraph body(model.last().proto(), "body");
  body.input("i").input("c").input("h").input("s").output("c2").output("h2").output("s2");
  body.node("Identity", {"c"}, {"c2"});
  body.node("Relu", {"h"}, {"h2"});
  body.node("SequenceInsert", {"s", "h2"}, {"s2"});
  model.node("ConcatFromSequence", {"all"}, {"y"}).set("axis", 0);
  EXPECT_THAT(problem_of(model, Code::kDynamic), ::testing::AllOf(HasSubstr("how many iterations it takes must be known when compiling"), HasSubstr("instead of a sequence the body may have an output that is stacked"),
                                                                 HasSubstr("--bind NAME=FILE fixes the input")));
}

}  // namespace
}  // namespace hone::test
