// expand, fold, cse, dce.
#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "tests/passes/pass_case.h"

namespace hone::test {
namespace {

TEST(Expand, LowersUntilNoneIsLeft) {
  const PassCase cases[] = {
      {"the mean", "input %x: f32[2,4]", "%y = reduce_mean(%x) {axes=[1]}", "div(reduce_sum(x){axes=[1]}, 4)"},
      {"a loss that lowers to ops that are lowered", "input %x: f32[3], input %t: f32[3]", "%y, %n = mse(%x, %t)",
       "reduce_sum(mul(sub(x, t), sub(x, t))){axes=[0]}"},
      {"ordinary ops stay", "input %x: f32[3]", "%y = tanh(%x)"},
      {"an update", "input %w: f32[2], input %g: f32[2], input %r: f64[], input %s: f64[]", "%y = sgd(%w, %g, %r, %s)", "sub(w, mul(g, cast(r){to=f32}))"},
  };
  for (const PassCase& c : cases) expect_pass(expand, c);
}

TEST(Expand, KeepsNamesPartsAndSaysWhatNodesArePartOf) {
  Graph graph = small_graph("input %x: f32[2,4]", "%y = softmax(%x) {axis=1} // at \"head/Softmax\"");
  EXPECT_EQ(expand(graph), Changed::kYes);
  verify(graph);
  EXPECT_EQ(graph.value(graph.find_output("y")->value).name, "y");
  for (const Node& node : graph.nodes()) {
    EXPECT_EQ(node.op->lower, nullptr) << node.op->name;
    EXPECT_EQ(node.loc.node, "head/Softmax");
    EXPECT_EQ(node.loc.derived.substr(0, 15), "part of softmax");
  }
}

TEST(Fold, FoldsConstantsAndKnownIntegersOnly) {
  const PassCase cases[] = {
      {"arithmetic", "constant %a: f32[] = 2, constant %b: f32[] = 3", "%y = mul(%a, %b)", "6"},
      {"a chain", "constant %a: f32[] = 2", "%b = add(%a, %a); %y = mul(%b, %b)", "16"},
      {"a vector", "constant %a: f32[2] = [1, 2]", "%y = transpose(%a) {perm=[0]}", "constant"},
      {"known sizes", "input %x: f32[2]", "%y = sizes() {sizes=[7]}", "7"},
      {"an operand that is no constant", "input %x: f32[2], constant %a: f32[] = 2", "%y = mul(%x, %a)"},
      {"weights are no constants", "weight %w: f32[] = 2", "%y = mul(%w, %w)"},
      {"a symbolic shape", "constant %a: f32[] = 2", "%y = broadcast_to(%a) {shape=[N]}"},
      {"symbolic sizes", "input %x: f32[N]", "%y = sizes() {sizes=[N]}"},
      {"where the largest is", "constant %a: i64[3] = [3, 0, 2]", "%y = argmax(%a) {axis=0}", "0"},
      {"where one element is", "constant %a: i64[1] = [7]", "%y = argmax(%a) {axis=0}", "0"},
      {"what is too large", "constant %a: f32[] = 2", "%y = broadcast_to(%a) {shape=[1048577]}"},
  };
  for (const PassCase& c : cases) expect_pass(fold_constants, c);
}

std::size_t nodes_after(Pass pass, std::string_view inputs, std::string_view statements) {
  Graph graph = small_graph(inputs, statements);
  (void)pass(graph);
  verify(graph);
  return graph.node_count();
}

TEST(CommonSubexpressions, MergesEqualNodesOnly) {
  const auto left = [](std::string_view statements) {
    return nodes_after(eliminate_common_subexpressions, "input %x: f32[2,2], input %z: f32[2,2]", statements);
  };
  EXPECT_EQ(left("%a = tanh(%x); %b = tanh(%x); %y = add(%a, %b)"), 2u) << "twice the same";
  EXPECT_EQ(left("%a = tanh(%x); %b = tanh(%x); %c = neg(%a); %d = neg(%b); %y = add(%c, %d)"), 3u) << "chains";
  EXPECT_EQ(left("%a = tanh(%x); %b = tanh(%z); %y = add(%a, %b)"), 3u) << "other operands";
  EXPECT_EQ(left("%a = sub(%x, %z); %b = sub(%z, %x); %y = add(%a, %b)"), 3u) << "operands the other way round";
  EXPECT_EQ(left("%a = reduce_sum(%x) {axes=[0]}; %b = reduce_sum(%x) {axes=[1]}; %y = add(%a, %b)"), 3u) << "other attributes";
  EXPECT_EQ(left("%a = all_reduce(%x); %b = all_reduce(%x); %y = add(%a, %b)"), 3u) << "collectives are not merged";
  expect_pass(eliminate_common_subexpressions, {"nothing equal", "input %x: f32[2]", "%a = tanh(%x); %y = neg(%a)"});
}

TEST(DeadCode, DropsWhatNobodyReads) {
  const auto left = [](std::string_view inputs, std::string_view statements) { return nodes_after(eliminate_dead_code, inputs, statements); };
  EXPECT_EQ(left("input %x: f32[2]", "%a = tanh(%x); %b = neg(%a); %y = exp(%x)"), 1u);
  EXPECT_EQ(left("input %x: f32[2], state %s: f32[2] = [0, 0]", "%y = exp(%x); %a = tanh(%x); alias %s <- %a"), 2u) << "an alias reads";
  expect_pass(eliminate_dead_code, {"all is read", "input %x: f32[2]", "%a = tanh(%x); %y = neg(%a)"});
}

TEST(DeadCode, DropsUnreadWeightsAndKeepsWhatIsFed) {
  Graph graph = small_graph("input %x: f32[2], input %unread: f32[2], weight %w: f32[] = 1, constant %c: f32[] = 2, state %s: f32[] = 3", "%y = exp(%x)");
  EXPECT_EQ(eliminate_dead_code(graph), Changed::kYes);
  EXPECT_NE(graph.find_input("unread"), nullptr);
  EXPECT_EQ(graph.find_input("w"), nullptr);
  EXPECT_EQ(graph.find_input("s"), nullptr);
  EXPECT_EQ(graph.inputs().size(), 2u);
}

/// A step without samples has lost all that its equations are of.
TEST(DeadCode, ReadsSizesForEquationsWhereSomethingHasSuchASize) {
  const auto left = [](std::string_view result) {
    return nodes_after(eliminate_dead_code, "input %n: i64[1], input %x: f32[N], weight %w: f32[1] = [1]", "%t = read_sizes(%n) {sizes=[T]}; equation N = T; %y = " + std::string(result));
  };
  EXPECT_EQ(left("neg(%w)"), 1u);
  EXPECT_EQ(left("neg(%x)"), 2u) << "N must be what %n holds";
  EXPECT_EQ(left("broadcast_to(%w) {shape=[T]}"), 2u);
}

}  // namespace
}  // namespace hone::test
