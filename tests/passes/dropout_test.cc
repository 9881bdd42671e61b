// insert_dropout: where the recipe's dropout goes, by the names of the file's nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/ops/ops.h"
#include "ir/verify.h"
#include "passes/pipeline.h"
#include "tests/passes/pass_case.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Recipe dropout(std::vector<std::string> after, double rate = 0.25) {
  Recipe recipe;
  recipe.model.dropout_after = std::move(after);
  recipe.model.dropout_rate = rate;
  return recipe;
}

/// A layer of two nodes, an activation, an output.
Graph layers() {
  return small_graph("input %x: f32[N,2], weight %w: f32[2,2] = [1, 2, 3, 4], weight %b: f32[2] = [0, 0]",
                     "%a = matmul(%x, %w)  // at \"encoder/dense\"\n%h = add(%a, %b)  // at \"encoder/dense\"\n%y = neg(%h)  // at \"head\"");
}

TEST(InsertDropout, StandsBehindWhatTheNodeGives) {
  Graph graph = layers();
  EXPECT_THAT(insert_dropout(graph, dropout({"encoder/*"})), ElementsAre("encoder/dense"));
  verify(graph);
  EXPECT_EQ(expression(graph), "neg(dropout(add(matmul(x, w), b), 0.25){stream=1})") << "not between the two nodes that the layer became";
  const Node& node = *std::find_if(graph.nodes().begin(), graph.nodes().end(), [](const Node& n) { return *n.op == op::dropout; });
  EXPECT_EQ(node.loc.node, "encoder/dense");
  EXPECT_EQ(node.loc.derived, "dropout");
}

TEST(InsertDropout, EveryPlaceHasAStreamOfItsOwn) {
  Graph graph = small_graph("input %x: f32[N]", "%a = exp(%x)  // at \"a\"\n%u = random_uniform() {shape=[N], stream=6, to=f32}  // at \"u\"\n%y = mul(%a, %u)  // at \"y\"");
  EXPECT_THAT(insert_dropout(graph, dropout({"a", "y"}, 0.5)), ElementsAre("a", "y"));
  verify(graph);
  EXPECT_EQ(expression(graph), "dropout(mul(dropout(exp(x), 0.5){stream=7}, random_uniform(){shape=[N], stream=6, to=f32}), 0.5){stream=8}");
}

TEST(InsertDropout, WholeNumbersAreLeftAlone) {
  Graph graph = small_graph("input %x: f32[N]", "%i = cast(%x) {to=i64}  // at \"position\"\n%y = cast(%i) {to=f32}  // at \"back\"");
  EXPECT_THAT(insert_dropout(graph, dropout({"*"})), ElementsAre("back"));
  Graph again = small_graph("input %x: f32[N]", "%i = cast(%x) {to=i64}  // at \"position\"\n%y = cast(%i) {to=f32}  // at \"back\"");
  expect_error(Code::kRecipeModel, "\"position\" matches no node", [&] { (void)insert_dropout(again, dropout({"position"})); });
}

TEST(InsertDropout, WeightsAreLeftAlone) {
  Graph graph = small_graph("input %x: f32[N,2], weight %w: f32[2,2] = [1, 2, 3, 4]",
                            "%t = transpose(%w) {perm=[1,0]}  // at \"layer/Transpose\"\n%y = matmul(%x, %t)  // at \"layer/MatMul\"");
  EXPECT_THAT(insert_dropout(graph, dropout({"layer*"})), ElementsAre("layer/MatMul"));
  EXPECT_EQ(expression(graph), "dropout(matmul(x, transpose(w){perm=[1,0]}), 0.25){stream=1}");
}

TEST(InsertDropout, ARateOfZeroChangesNothing) {
  Graph graph = layers();
  EXPECT_THAT(insert_dropout(graph, dropout({"head"}, 0)), IsEmpty());
  EXPECT_EQ(expression(graph), expression(layers()));
  EXPECT_THAT(insert_dropout(graph, dropout({}, 0)), IsEmpty());
}

TEST(InsertDropout, APatternWithoutANodeNamesTheNearest) {
  Graph graph = layers();
  expect_error(Code::kRecipeModel, "model.dropout.after: \"encoder/dens\" matches no node", [&] { (void)insert_dropout(graph, dropout({"head", "encoder/dens"})); });
  expect_error(Code::kRecipeModel, "did you mean \"encoder/dense\"?", [&] { (void)insert_dropout(graph, dropout({"encoder/dens"})); });
  expect_error(Code::kRecipeModel, "\"encoder/dense\", \"head\"", [&] { (void)insert_dropout(graph, dropout({"decoder*"}, 0)); });
}

/// The cell of a recurrent layer has the layer's name, and is its own affair; the body of a loop of the file has nodes of the file.
TEST(InsertDropout, GoesIntoTheBodiesOfTheFile) {
  constexpr std::string_view kLoop = R"(%f, %s, %all = scan(%x) {states=1, stream=1, trips=[3]} {  // at "loop"
  graph iteration(input %i: i64[], input %s: f32[N]) {
    %h = exp(%s)  // at "loop/exp"
    %t = tanh(%h)  // at "loop"
    output s %t
    output t %t
  }
}
%y = neg(%f)  // at "y")";
  Graph graph = small_graph("input %x: f32[N]", kLoop);
  EXPECT_THAT(insert_dropout(graph, dropout({"loop*"})), ElementsAre("loop", "loop/exp"));
  verify(graph);
  const Node& loop = *std::find_if(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) { return *node.op == op::scan; });
  EXPECT_EQ(expression(*loop.bodies[0], loop.bodies[0]->outputs()[0].value), "tanh(dropout(exp(s), 0.25){stream=1})");
  EXPECT_THAT(expression(graph), HasSubstr("neg(dropout(scan(x)"));
}

TEST(DropoutWarnings, SayWhereTheModelDropsItself) {
  const Graph graph = small_graph("input %x: f32[N], constant %rate: f32[] = 0.5", "%a = exp(%x)  // at \"a\"\n%b, %kept = dropout(%a, %rate) {stream=1}  // at \"drop\"\n%y = neg(%b)  // at \"y\"");
  const std::vector<Diag> after_a = dropout_warnings(graph, dropout({"a"}));
  ASSERT_EQ(after_a.size(), 1U);
  EXPECT_THAT(to_string(after_a[0]), testing::AllOf(HasSubstr("after \"a\""), HasSubstr("Dropout of its own"), HasSubstr("\"drop\"")));
  EXPECT_EQ(dropout_warnings(graph, dropout({"drop"})).size(), 1U);
  EXPECT_THAT(dropout_warnings(graph, dropout({"y"})), IsEmpty());
  EXPECT_THAT(dropout_warnings(graph, dropout({"a"}, 0)), IsEmpty());
}

TEST(RemoveDropout, KeepsEverythingInBodiesToo) {
  Graph graph = small_graph("input %x: f32[N]", R"(%f, %s, %all = scan(%x) {states=1, stream=1, trips=[3]} {
  graph iteration(input %i: i64[], input %s: f32[N], constant %rate: f32[] = 0.5) {
    %h, %kept = dropout(%s, %rate) {stream=1}
    %t = tanh(%h)
    output s %t
    output t %t
  }
}
%y = neg(%f))");
  ASSERT_EQ(remove_dropout(graph), Changed::kYes);
  verify(graph);
  const Node& loop = *std::find_if(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) { return *node.op == op::scan; });
  EXPECT_EQ(expression(*loop.bodies[0], loop.bodies[0]->outputs()[0].value), "tanh(s)");
}

/// Training alone drops: the other entries are those of a recipe without dropout.
TEST(BuildEntries, DropoutIsThereInTrainingOnly) {
  Recipe recipe = dropout({"encoder/dense"});
  recipe.loss.kind = "mse";
  recipe.optimizer.kind = "sgd";
  TrainingReport report;
  const std::vector<EntryGraph> entries = build_entries(layers(), recipe, report);
  EXPECT_THAT(report.dropped_after, ElementsAre("encoder/dense"));
  for (const EntryGraph& entry : entries) {
    const bool drops = std::any_of(entry.graph.nodes().begin(), entry.graph.nodes().end(), [](const Node& node) { return *node.op == op::random_uniform; });
    EXPECT_EQ(drops, entry.name.starts_with("train_step") or entry.name.starts_with("idle_step")) << entry.name;
    EXPECT_EQ(entry.graph.find_input("first_sample") != nullptr, drops) << entry.name;
    verify(entry.graph);
  }
}

}  // namespace
}  // namespace hone::test
