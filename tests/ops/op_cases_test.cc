// Every op over its cases: types, the interpreter, stated results, gradients against differences, and the compiled CPU kernels.
#include "tests/ops/op_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "ir/kernel/interpret.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "tests/ops/compiled_nodes.h"
#include "tests/support/gradients/gradient_check.h"

namespace hone::test {
namespace {

bool has_float_variable(const OpCase& c) {
  for (const Operand& operand : c.operands)
    if (not operand.is_absent and not operand.is_constant and is_float(operand.type.dtype)) return true;
  return false;
}

/// Does the gradient test compare the case with differences?
bool is_compared(const OpCase& c) { return is_differentiable(*c.op) and c.no_gradient.empty() and c.expected_gradient.empty() and has_float_variable(c); }

Graph expanded(const OpCase& c) {
  Graph graph = graph_of(c);
  (void)expand(graph);
  return graph;
}

void expect_elements(const Tensor& found, const std::vector<double>& expected, std::string_view what) {
  ASSERT_EQ(found.element_count(), static_cast<std::int64_t>(expected.size())) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double value = found.at(static_cast<std::int64_t>(i));
    const bool same =
        value == expected[i] or (std::isnan(value) and std::isnan(expected[i])) or std::fabs(value - expected[i]) <= 1e-6 * (1 + std::fabs(expected[i]));
    EXPECT_TRUE(same) << what << "[" << i << "] is " << value << ", expected " << expected[i];
  }
}

/// The interpreter's memory starts as ones in every bit: a NaN that no arithmetic makes, and no bool.
void expect_all_written(const Tensor& tensor) {
  if (not is_float(tensor.dtype()) and tensor.dtype() != DType::kBool) return;
  if (is_float(tensor.dtype()) and size_of(tensor.dtype()) == 1) return;  // ones in every bit are a number or a NaN like any other
  const std::size_t size = size_of(tensor.dtype());
  for (std::size_t at = 0; at < tensor.byte_count(); at += size) {
    bool ones = true;
    for (std::size_t i = 0; i < size; ++i) ones = ones and tensor.bytes()[at + i] == std::byte{0xff};
    ASSERT_FALSE(ones) << "element " << at / size << " was not written";
  }
}

TEST(OpCases, EveryOpHasCases) {
  std::set<std::string_view> seen;
  for (const OpCase& c : op_cases()) seen.insert(c.op->name);
  for (const OpDef* op : all_ops()) EXPECT_TRUE(seen.contains(op->name)) << op->name << " has no case: add some in tests/ops";
}

TEST(OpCases, NamesAreDistinct) {
  std::set<std::string> seen;
  for (const OpCase& c : op_cases()) EXPECT_TRUE(seen.insert(c.name()).second) << c.name();
}

TEST(OpCases, EveryOpHasOneMeaningAndAGradientOrAReason) {
  for (const OpDef* op : all_ops()) {
    const int meanings = (op->scalar != nullptr) + (op->compute != nullptr) + (op->lower != nullptr) + (op->host != nullptr) + (op->region != Region::kNone) + op->binds + op->collective;
    EXPECT_EQ(meanings, 1) << op->name;
    EXPECT_FALSE(op->grad.formula != nullptr and not op->grad.reason.empty()) << op->name << " has a formula and a reason why there is none";
    EXPECT_TRUE(is_differentiable(*op) or not op->grad.reason.empty()) << op->name << " has neither a gradient nor a reason";
    EXPECT_TRUE(op->grad.formula == nullptr or op->lower == nullptr or op->keep)
        << op->name << " has a formula that nothing uses: it is lowered before autodiff";
    EXPECT_FALSE(op->doc.empty()) << op->name;
    EXPECT_EQ(find_op(op->name), op) << op->name;
  }
}

TEST(OpCases, EveryDifferentiableOpIsComparedWithDifferences) {
  std::set<std::string_view> compared;
  for (const OpCase& c : op_cases())
    if (is_compared(c)) compared.insert(c.op->name);
  for (const OpDef* op : all_ops())
    if (is_differentiable(*op)) EXPECT_TRUE(compared.contains(op->name)) << op->name << ": no case whose gradient is compared";
}

TEST(OpCases, ResultsAreAsStatedAndAsInferred) {
  for (const OpCase& c : op_cases()) {
    SCOPED_TRACE(c.name());
    const Graph graph = graph_of(c);
    ASSERT_LE(c.shapes.size(), graph.outputs().size());
    for (std::size_t i = 0; i < c.shapes.size(); ++i)
      EXPECT_EQ(to_string(graph.type(graph.outputs()[i].value).shape), to_string(c.shapes[i])) << "result " << i;
    const GraphResults results = interpret(expanded(c), feeds_of(c), Precision::kFloat, case_sizes());
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      const Type& type = graph.type(graph.outputs()[i].value);
      EXPECT_EQ(results.outputs[i].value.dtype(), type.dtype);
      EXPECT_EQ(results.outputs[i].value.shape(), evaluate(type.shape, case_sizes()));
      expect_all_written(results.outputs[i].value);
    }
    if (not c.expected.empty()) expect_elements(results.outputs[0].value, c.expected, "y");
  }
}

/// With its gradient, expanded: the graphs that a case leads to.
std::optional<Graph> differentiated(const OpCase& c, Feeds& feeds) {
  if (not is_compared(c)) return std::nullopt;
  Graph graph = graph_of(c);
  project(graph, c.varying_results, Projection::kLinear, feeds, case_sizes());
  add_gradients(graph);
  return graph;
}

TEST(OpCases, GraphsAreValidAndReadBackFromTheirText) {
  const auto check = [](const Graph& graph) {
    verify(graph);
    const std::string text = print(graph);
    EXPECT_EQ(print(parse_graph(text)), text);
  };
  for (const OpCase& c : op_cases()) {
    SCOPED_TRACE(c.name());
    Feeds feeds = feeds_of(c);
    check(graph_of(c));
    check(expanded(c));
    if (const std::optional<Graph> graph = differentiated(c, feeds)) check(*graph);
  }
}

TEST(OpCases, GradientsMatchCentralDifferences) {
  for (const OpCase& c : op_cases()) {
    if (not is_compared(c)) continue;
    SCOPED_TRACE(c.name());
    Graph graph = graph_of(c);
    Feeds feeds = feeds_of(c);
    project(graph, c.varying_results, Projection::kLinear, feeds, case_sizes());
    expect_gradients_match(graph, feeds, case_sizes());
  }
}

TEST(OpCases, SlopesAtKinksAreAsStated) {
  for (const OpCase& c : op_cases()) {
    if (c.expected_gradient.empty()) continue;
    SCOPED_TRACE(c.name());
    Graph graph = graph_of(c);
    Builder builder(graph);
    const Val y = builder.val(graph.outputs()[0].value);
    builder.clear_outputs();
    builder.output("p", sum_all(y));
    add_gradients(graph);
    expect_elements(interpret(graph, feeds_of(c), Precision::kDouble, case_sizes())["g:x0"], c.expected_gradient, "slope");
  }
}

TEST(OpCases, SecondDerivativesMatchCentralDifferences) {
  const OpDef* const ops[] = {&op::matmul,  &op::conv, &op::max_pool, &op::avg_pool,         &op::gather,
                              &op::softmax, &op::tanh, &op::div,      &op::batch_norm_train, &op::softmax_cross_entropy};
  for (const OpCase& c : op_cases()) {
    if (std::find(std::begin(ops), std::end(ops), c.op) == std::end(ops) or not is_compared(c)) continue;
    SCOPED_TRACE(c.name());
    Graph graph = graph_of(c);
    Feeds feeds = feeds_of(c);
    project(graph, c.varying_results, Projection::kSquared, feeds, case_sizes());
    add_gradients(graph);
    Builder builder(graph);
    const std::vector<Output> outputs = graph.outputs();
    Val p = builder.scalar(0, DType::kF64);
    for (const Output& output : outputs) {
      if (output.name == "p") continue;
      const Val gradient = builder.val(output.value);
      const std::string name = "v:" + output.name;
      feeds[name] = random_tensor(evaluate(gradient.shape(), case_sizes()), 3000 + output.value.index);
      p = p + cast(sum_all(gradient * builder.input(Role::kInput, name, gradient.type())), DType::kF64);
    }
    builder.clear_outputs();
    builder.output("p", p);
    expect_gradients_match(graph, feeds, case_sizes());
  }
}

/// The first cases of each op are optimized as in a plan. Of the others, and of gradients, whose kernels are those of ordinary ops once more, there are too many.
TEST(OpCases, CompiledKernelsAgreeWithTheInterpreter) {
  constexpr int kOptimizedCases = 3;
  CompiledNodes optimized, plain;
  std::map<const OpDef*, int> cases;
  for (const OpCase& c : op_cases()) {
    Feeds feeds = feeds_of(c);
    (cases[c.op]++ < kOptimizedCases ? optimized : plain).add(expanded(c), feeds, case_sizes(), c.name());
    if (const std::optional<Graph> graph = differentiated(c, feeds)) plain.add(*graph, feeds, case_sizes(), "gradient of " + c.name());
  }
  optimized.compile(2);
  plain.compile(0);
  optimized.expect_agreement();
  plain.expect_agreement();
  RecordProperty("kernels", static_cast<int>(optimized.kernel_count() + plain.kernel_count()));
}

}  // namespace
}  // namespace hone::test
