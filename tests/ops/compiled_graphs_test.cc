// Ops that are no kernel of their own (loops, branches, host functions, sizes read when running), with their gradients, as whole graphs: compiled and run by a session,
// against the interpreter.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "backends/compile.h"
#include "ir/parse.h"
#include "passes/passes.h"
#include "runtime/session.h"
#include "tests/ops/op_cases.h"
#include "tests/support/gradients/gradient_check.h"

namespace hone::test {
namespace {

bool is_no_kernel(const OpDef& op) { return op.region != Region::kNone or op.host != nullptr or op.binds; }

void expect_same(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(found.dtype(), expected.dtype()) << what;
  ASSERT_EQ(found.shape(), expected.shape()) << what;
  for (std::int64_t i = 0; i < found.element_count(); ++i) {
    if (not std::isfinite(expected.at(i))) EXPECT_EQ(std::isnan(found.at(i)) ? 0 : found.at(i), std::isnan(expected.at(i)) ? 0 : expected.at(i)) << what << " at " << i;
    else EXPECT_NEAR(found.at(i), expected.at(i), 1e-5 * (1 + std::abs(expected.at(i)))) << what << " at " << i;
  }
}

void expect_session_agrees(Graph graph, const Feeds& feeds, const std::string& what) {
  (void)expand(graph);
  const GraphResults expected = interpret(graph, feeds, Precision::kFloat, case_sizes());
  Session session(compile({graph, onnx::ModelProto(), what}, Recipe{}, {}).plan, {.device = "cpu", .threads = 2});
  std::vector<std::pair<std::string, TensorView>> views;
  std::vector<Tensor> kept;
  kept.reserve(feeds.size());
  for (const auto& [name, tensor] : feeds) views.emplace_back(name, kept.emplace_back(tensor.cast(graph.type(graph.find_input(name)->value).dtype)));
  for (int run = 0; run < 2; ++run) {  // the second one finds everything bound
    session.run(plan::kPredict, views);
    for (const NamedTensor& output : expected.outputs) expect_same(session.result_tensor(output.name), output.value, what + ", " + output.name);
  }
}

/// Every size is told by some feed's shape: what a session needs, and the interpreter does not.
bool all_sizes_are_fed(const Graph& graph) {
  std::set<std::string> fed;
  for (const Input& input : graph.inputs())
    if (input.role == Role::kInput)
      for (const Dim& dim : graph.type(input.value).shape)
        for (std::string& symbol : dim.symbols()) fed.insert(std::move(symbol));
  for (const Node& node : graph.nodes())
    for (const ValueId result : node.results)
      for (const Dim& dim : graph.type(result).shape)
        for (const std::string& symbol : dim.symbols())
          if (not fed.contains(symbol)) return false;
  return true;
}

TEST(CompiledGraphs, AgreeWithTheInterpreter) {
  int compared = 0;
  for (const OpCase& c : op_cases()) {
    if (not is_no_kernel(*c.op) or not all_sizes_are_fed(graph_of(c))) continue;
    expect_session_agrees(graph_of(c), feeds_of(c), c.name());
    ++compared;
    if (not is_differentiable(*c.op) or not c.no_gradient.empty()) continue;
    Graph graph = graph_of(c);
    Feeds feeds = feeds_of(c);
    project(graph, c.varying_results, Projection::kLinear, feeds, case_sizes());
    add_gradients(graph);
    expect_session_agrees(std::move(graph), feeds, c.name() + ", gradient");
  }
  EXPECT_GE(compared, 12);
}

/// Kernels of a form that no case of one op has.
TEST(CompiledGraphs, FusedKernelsAgreeWithTheInterpreter) {
  constexpr const char* kGraphs[] = {
      // parts of a concat, along an axis whose size is not known
      "graph g(input %x: f32[3,N]) {\n%1: f32[3,N] = exp(%x)\n%2: f32[3,N] = neg(%x)\n%3: f32[3,3*N] = concat(%1, %2, %x) {axis=1}\noutput \"e\" %1\noutput \"y\" %3\n}\n",
      // reshaped on the way
      "graph g(input %x: f32[N,2,4]) {\n%1: f32[N,4,2] = transpose(%x) {perm=[0,2,1]}\n%2: f32[N,8] = reshape(%1) {shape=[N,8]}\n%3: f32[N,4,2] = neg(%1)\n"
      "%4: f32[N,8] = reshape(%3) {shape=[N,8]}\n%5: f32[N,16] = concat(%2, %4) {axis=1}\noutput \"y\" %5\n}\n",
  };
  for (const char* text : kGraphs) {
    const Graph graph = parse_graph(text, "test");
    const std::vector<std::int64_t> shape = evaluate(graph.type(graph.find_input("x")->value).shape, case_sizes());
    expect_session_agrees(graph.clone(), {{"x", random_tensor(shape, 1)}}, text);
  }
}

}  // namespace
}  // namespace hone::test
