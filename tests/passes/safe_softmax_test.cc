// Which softmax is safe from NaNs as a whole.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/kernel/interpret.h"
#include "passes/passes.h"
#include "tests/passes/pass_case.h"

namespace hone::test {
namespace {

constexpr std::string_view kScores = "input %x: f32[N,4], input %c: bool[N,4], constant %zero: f32[] = 0, constant %one: f32[] = 1";

TEST(SafeSoftmax, IsASoftmaxWhoseNansAreZeros) {
  const PassCase cases[] = {
      {"as PyTorch's exporters write it", kScores, "%1 = softmax(%x) {axis=1}; %2 = equal(%1, %1); %3 = logical_not(%2); %y = where(%3, %zero, %1)", "safe_softmax(x){axis=1}"},
      {"read on", kScores, "%1 = softmax(%x) {axis=0}; %2 = equal(%1, %1); %3 = logical_not(%2); %4 = where(%3, %zero, %1); %y = mul(%4, %4)", "mul(safe_softmax(x), safe_softmax(x))"},
  };
  for (const PassCase& c : cases) expect_pass(find_safe_softmaxes, c);
}

TEST(SafeSoftmax, IsNothingElse) {
  const PassCase cases[] = {
      {"a plain softmax", kScores, "%y = softmax(%x) {axis=1}", ""},
      {"another number than zero", kScores, "%1 = softmax(%x) {axis=1}; %2 = equal(%1, %1); %3 = logical_not(%2); %y = where(%3, %one, %1)", ""},
      {"another condition", kScores, "%1 = softmax(%x) {axis=1}; %y = where(%c, %zero, %1)", ""},
      {"the numbers instead of the NaNs", kScores, "%1 = softmax(%x) {axis=1}; %2 = equal(%1, %1); %y = where(%2, %zero, %1)", ""},
      {"what is compared with something else", kScores, "%1 = softmax(%x) {axis=1}; %2 = equal(%1, %x); %3 = logical_not(%2); %y = where(%3, %zero, %1)", ""},
      {"a softmax with another reader", kScores, "%1 = softmax(%x) {axis=1}; %2 = equal(%1, %1); %3 = logical_not(%2); %4 = where(%3, %zero, %1); %y = add(%4, %1)", ""},
      {"no softmax", kScores, "%1 = exp(%x); %2 = equal(%1, %1); %3 = logical_not(%2); %y = where(%3, %zero, %1)", ""},
  };
  for (const PassCase& c : cases) expect_pass(find_safe_softmaxes, c);
}

/// d(sum of y * y) / dw of y = the guarded softmax of w + mask.
std::vector<double> gradient_behind_mask(bool as_one_op) {
  Graph graph = small_graph("weight %w: f32[2] = [0.5, -1], input %mask: f32[2,2], constant %zero: f32[] = 0",
                            "%x = add(%mask, %w); %1 = softmax(%x) {axis=1}; %2 = equal(%1, %1); %3 = logical_not(%2); %4 = where(%3, %zero, %1); %5 = mul(%4, %4); %y = reduce_sum(%5) {axes=[0,1]}");
  if (as_one_op) EXPECT_EQ(find_safe_softmaxes(graph), Changed::kYes);
  (void)expand_for_gradients(graph);
  const ValueId w = graph.find_input("w")->value;
  const std::vector<ValueId> gradients = differentiate(graph, graph.find_output("y")->value, std::vector<ValueId>{w});
  Builder builder(graph);
  builder.output("dw", builder.val(gradients[0]));
  (void)expand(graph);
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  GraphResults results = interpret(graph, {{"mask", Tensor::of<double>({2, 2}, std::vector<double>{kNever, kNever, 0, 0})}}, Precision::kDouble);
  return {results["dw"].at(0), results["dw"].at(1)};
}

TEST(SafeSoftmax, LetsNoNanBackThroughRowsThatAreMaskedAsAWhole) {
  EXPECT_TRUE(std::isnan(gradient_behind_mask(false)[0])) << "which is why there is the pass";
  const double p = 1 / (1 + std::exp(-1.5)), slope = 2 * p * (1 - p) * (2 * p - 1);  // of p^2 + (1-p)^2
  const std::vector<double> dw = gradient_behind_mask(true);
  EXPECT_NEAR(dw[0], slope, 1e-6);
  EXPECT_NEAR(dw[1], -slope, 1e-6);
}

}  // namespace
}  // namespace hone::test
