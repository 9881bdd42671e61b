// Which gradients become a product with one derivative.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/kernel/interpret.h"
#include "ir/ops/ops.h"
#include "passes/passes.h"
#include "tests/passes/pass_case.h"

namespace hone::test {
namespace {

constexpr std::string_view kWeightAndFactors = "weight %x: f32[2,2] = [0.5, -1, 2, -0.25], constant %w: f32[2,3] = [1, 2, -1, 0.5, -2, 1], constant %v: f32[2,3] = [1, 1, 2, -1, 0.5, 3], constant %half: f32[] = 0.5, constant %one: f32[] = 1";

/// The graph of `statements`, where "y" is the gradient of sum(y * y) with respect to x.
Graph gradient_of(std::string_view statements) {
  Graph graph = small_graph(kWeightAndFactors, std::string(statements) + "; %s = mul(%z, %z); %y = reduce_sum(%s) {axes=[0,1]}");
  (void)expand_for_gradients(graph);
  const std::vector<ValueId> gradients = differentiate(graph, graph.find_output("y")->value, std::vector<ValueId>{graph.find_input("x")->value});
  Builder builder(graph);
  builder.clear_outputs();
  builder.output("y", builder.val(gradients[0]));
  (void)expand(graph);
  (void)simplify(graph);
  (void)eliminate_common_subexpressions(graph);
  (void)eliminate_dead_code(graph);
  return graph;
}

std::vector<double> numbers_of(const Graph& graph) {
  GraphResults results = interpret(graph, {}, Precision::kDouble);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < results["y"].element_count(); ++i) numbers.push_back(results["y"].at(i));
  return numbers;
}

struct Activation {
  std::string_view name, statements;
  std::string_view derivative;  ///< what the gradient of its result is multiplied by
};

TEST(FactorGradients, AnActivationHasOneDerivative) {
  const Activation cases[] = {
      {"silu", "%1 = sigmoid(%x); %2 = mul(%x, %1); %z = matmul(%2, %w)", "add(sigmoid(x), mul(mul(x, sigmoid(x)), sub(1, sigmoid(x))))"},
      {"gelu", "%1 = mul(%x, %half); %2 = erf(%1); %3 = add(%2, %one); %4 = mul(%x, %3); %5 = mul(%4, %half); %z = matmul(%5, %w)",
       "add(mul(0.5, add(erf(mul(x, 0.5)), 1)), mul(mul(mul(mul(0.5, 1.128379225730896), 0.5), x), exp(neg(mul(mul(x, 0.5), mul(x, 0.5))))))"},
      {"three terms", "%1 = sin(%x); %2 = exp(%x); %3 = mul(%1, %2); %4 = mul(%3, %x); %z = matmul(%4, %w)", "add(add(mul(sin(x), exp(x)), mul(mul(x, sin(x)), exp(x))), mul(mul(x, exp(x)), cos(x)))"},
  };
  for (const Activation& c : cases) {
    SCOPED_TRACE(c.name);
    Graph graph = gradient_of(c.statements);
    const std::vector<double> before = numbers_of(graph);
    const std::string was = expression(graph);
    ASSERT_EQ(factor_gradients(graph), Changed::kYes) << was;
    ASSERT_TRUE(graph.is_op(graph.outputs()[0].value, op::mul)) << expression(graph);
    EXPECT_EQ(expression(graph, graph.producer(graph.outputs()[0].value).operands[1]), c.derivative) << "was " << was;
    const std::vector<double> after = numbers_of(graph);
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 1e-12 * (1 + std::abs(before[i])));
    EXPECT_EQ(factor_gradients(graph), Changed::kNo);
  }
}

TEST(FactorGradients, OthersStayAsTheyAre) {
  const Activation cases[] = {
      {"a residual: no product", "%1 = sin(%x); %2 = add(%x, %1); %z = matmul(%2, %w)", ""},
      {"two gradients", "%1 = sin(%x); %2 = exp(%x); %3 = matmul(%1, %w); %4 = matmul(%2, %v); %z = mul(%3, %4)", ""},
      {"what a product reads, too", "%1 = sin(%x); %2 = mul(%1, %x); %3 = mul(%2, %x); %4 = matmul(%2, %w); %5 = matmul(%3, %v); %z = add(%4, %5)", ""},
      {"one term", "%1 = sin(%x); %z = matmul(%1, %w)", ""},
  };
  for (const Activation& c : cases) {
    SCOPED_TRACE(c.name);
    Graph graph = gradient_of(c.statements);
    EXPECT_EQ(factor_gradients(graph), Changed::kNo) << expression(graph);
  }
}

TEST(FactorGradients, TheForwardPassStaysAsItIs) {
  Graph graph = small_graph("input %x: f32[N,4], input %a: f32[N,4], input %b: f32[N,4]", "%1 = mul(%x, %a); %2 = mul(%x, %b); %y = add(%1, %2)");
  EXPECT_EQ(factor_gradients(graph), Changed::kNo);
}

}  // namespace
}  // namespace hone::test
