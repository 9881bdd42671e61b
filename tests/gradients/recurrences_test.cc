// Recurrent layers as one node where a target has a row for them: which of the operators' cases become one, and that layer and gradient are what the loop's are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "ir/ops/ops.h"
#include "ir/ops/products.h"
#include "ir/verify.h"
#include "passes/fuse_recurrences.h"
#include "passes/passes.h"
#include "tests/gradients/gradient_cases.h"
#include "tests/support/gradients/gradient_check.h"

namespace hone::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TakesLayers final : public Target {
 public:
  std::string_view name() const override { return "takes layers"; }
  RowChoice choose_row(const Graph&, NodeId) const override { return {"", "no row"}; }
  std::string why_no_recurrence(const RecurrentTypes& types) const override { return types.hidden.is_constant(8) ? "eight is too many" : ""; }
};

Recipe recipe_in(const char* precision) {
  Recipe recipe;
  recipe.train.precision = precision;
  return recipe;
}

/// The nodes that are whole layers.
std::vector<const Node*> layers_of(const Graph& graph) {
  std::vector<const Node*> layers;
  for (const Node& node : graph.nodes())
    if (*node.op == op::recurrent) layers.push_back(&node);
  return layers;
}

std::size_t loops_of(const Graph& graph) { return static_cast<std::size_t>(std::ranges::count_if(graph.nodes(), [](const Node& node) { return *node.op == op::scan; })); }

/// Cleaned of what nobody reads any more.
Graph fused(Graph graph, std::vector<std::string>* lines = nullptr, const Recipe& recipe = recipe_in("f32")) {
  std::vector<std::string> told = fuse_recurrences(graph, recipe, TakesLayers());
  if (lines != nullptr) *lines = std::move(told);
  (void)eliminate_dead_code(graph);
  verify(graph);
  return graph;
}

/// Not those whose step is another one: GRUs that reset before they multiply, lengths, clips, and what only some runtimes have.
std::size_t expected_layers(const GradientCase& one) {
  for (const char* pattern : {"*lengths*", "*clip*", "*peepholes*", "*coupled*", "GRU: activation*"})
    if (glob_match(pattern, one.name())) return 0;
  if (one.says.starts_with("activation")) return one.name() == "RNN: activation Tanh" ? 1 : 0;
  if (one.op == "GRU" and not one.says.starts_with("linear before reset")) return 0;
  return one.says == "both directions" or one.says == "the batch first" ? 2 : 1;
}

void expect_alike(const GraphResults& found, const GraphResults& wanted, const std::string& what) {
  ASSERT_EQ(found.outputs.size(), wanted.outputs.size()) << what;
  for (std::size_t i = 0; i < found.outputs.size(); ++i) {
    const std::vector<double> some = values_of(found.outputs[i].value), others = values_of(wanted.outputs[i].value);
    ASSERT_EQ(some.size(), others.size()) << what;
    for (std::size_t k = 0; k < some.size(); ++k) EXPECT_NEAR(some[k], others[k], 1e-12) << what << ", element " << k << " of " << found.outputs[i].name;
  }
}

TEST(Recurrences, AsOneNodeComputeWhatLoopsDo) {
  std::map<std::string, std::size_t> layers;
  for (const GradientCase& one : gradient_cases()) {
    if (one.op != "RNN" and one.op != "GRU" and one.op != "LSTM") continue;
    SCOPED_TRACE(one.name());
    Graph loops = model_of(one).import().graph, whole = fused(loops.clone());
    const std::size_t count = layers_of(whole).size();
    EXPECT_EQ(count, expected_layers(one));
    EXPECT_TRUE(count == 0 or loops_of(whole) == 0);
    layers[one.op] += count;
    if (count == 0) continue;
    Feeds feeds = feeds_of(one);
    Graph expanded = whole.clone();
    (void)expand(loops);
    (void)expand(expanded);
    const GraphResults wanted = interpret(loops, feeds, Precision::kDouble);
    expect_alike(interpret(expanded, feeds, Precision::kDouble), wanted, "one node");
    project(whole, one.varying_outputs, Projection::kLinear, feeds, wanted.bindings);
    expect_gradients_match(whole, feeds, wanted.bindings);
  }
  EXPECT_GE(layers["RNN"], 10U);
  EXPECT_GE(layers["LSTM"], 10U);
  EXPECT_EQ(layers["GRU"], 2U);
}

/// Gates lie where exporters put them: the weights are read as they are.
TEST(Recurrences, ReadWeightsAsTheyLie) {
  int seen = 0;
  for (const GradientCase& one : gradient_cases()) {
    if (one.name() != "LSTM: biases" and one.name() != "GRU: linear before reset") continue;
    Graph whole = fused(model_of(one).import().graph);
    for (int i = 0; i < 3; ++i) (void)simplify(whole), (void)eliminate_dead_code(whole);
    ASSERT_EQ(layers_of(whole).size(), 1U);
    const Node& layer = *layers_of(whole)[0];
    if (one.op == "LSTM") EXPECT_THAT(layer.attrs[kGates], ElementsAre(0, 2, 3, 1)) << "ONNX has input, output, forget, candidate";
    else EXPECT_THAT(layer.attrs[kGates], ElementsAre(1, 0, 2)) << "ONNX has update, reset, candidate";
    for (const std::size_t weight : {1, 2}) EXPECT_EQ(whole.producer(layer.operands[weight]).op->name, "reshape") << "of weight " << weight;
    ++seen;
  }
  EXPECT_EQ(seen, 2);
}

Graph small_lstm(std::int64_t hidden, const std::vector<std::string>& outputs) {
  TestModel model;
  model.input("x", {5, "N", 3});
  model.initializer("w", wavy({1, 4 * hidden, 3})).initializer("r", wavy({1, 4 * hidden, hidden}));
  model.node("LSTM", {"x", "w", "r"}, outputs).named("layer").set("hidden_size", hidden);
  for (const std::string& output : outputs)
    if (not output.empty()) model.output(output);
  return model.import().graph;
}

TEST(Recurrences, SayWhyTheyStayLoops) {
  std::vector<std::string> lines;
  (void)fused(small_lstm(4, {"y"}), &lines);
  EXPECT_THAT(lines, ElementsAre(HasSubstr("is one node (LSTM), and so is its gradient")));
  (void)fused(small_lstm(8, {"y"}), &lines);
  EXPECT_THAT(lines, ElementsAre(HasSubstr("stays a loop: eight is too many")));

  TestModel peeping;
  peeping.input("x", {5, "N", 3}).initializer("w", wavy({1, 16, 3})).initializer("r", wavy({1, 16, 4})).initializer("p", wavy({1, 12}));
  peeping.node("LSTM", {"x", "w", "r", "", "", "", "", "p"}, {"y"}).set("hidden_size", 4);
  peeping.output("y");
  (void)fused(peeping.import().graph, &lines);
  EXPECT_THAT(lines, ElementsAre(HasSubstr("stays a loop: its step is no cell that libraries have")));

  Graph adapted = small_lstm(4, {"y"});  // its products, and something beside them
  (void)Rewriter::rewrite(adapted, [](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (*node.op != op::matmul) return false;
    const Val product = op::matmul(rewriter.operand(node, 0), rewriter.operand(node, 1));
    rewriter.replace(node.results[0], product + op::tanh(product));
    return true;
  });
  (void)fused(std::move(adapted), &lines);
  EXPECT_THAT(lines, ElementsAre(HasSubstr("stays a loop: what its steps are given is not x W with a bias")));
}

TEST(Recurrences, MayMultiplyInTf32WhereTheRecipeAsksForLess) {
  for (const char* precision : {"tf32", "bf16", "f16"}) EXPECT_TRUE(layers_of(fused(small_lstm(4, {"y"}), nullptr, recipe_in(precision)))[0]->attrs[kTf32]) << precision;
  EXPECT_FALSE(layers_of(fused(small_lstm(4, {"y"})))[0]->attrs[kTf32]);
  Recipe recipe = recipe_in("bf16");
  recipe.train.keep_f32 = {"layer"};
  EXPECT_FALSE(layers_of(fused(small_lstm(4, {"y"}), nullptr, recipe))[0]->attrs[kTf32]);
}

}  // namespace
}  // namespace hone::test
