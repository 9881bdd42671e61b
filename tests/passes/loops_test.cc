// The passes over loops: what moves and what stays, and that a loop means what it meant, for any number of iterations.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/kernel/interpret.h"
#include "ir/op.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "tests/passes/pass_case.h"
#include "tests/support/case_data.h"

namespace hone::test {
namespace {

/// A loop over x with a state h and three operands that it reads whole; its results are %h (the state), %began and %s (what it stacks).
struct LoopCase {
  std::string_view says;
  std::string body;  ///< makes %next and %made of %i, %h, %x (shape [N,3]), %w, %r and %b
};

Graph loop_graph(const LoopCase& c) {
  std::string lines = c.body;
  for (std::size_t at; (at = lines.find("; ")) != std::string::npos;) lines.replace(at, 2, "\n");
  return parse_graph(fmt::format(R"(graph g(input %xs: f32[T,N,3], input %w: f32[3,4], input %r: f32[4,4], input %b: f32[4], input %h0: f32[N,4]) {{
%h, %began, %s = scan(%h0, %xs, %w, %r, %b) {{scanned=1, states=1, trips=[T]}} {{
  graph body(input %i: i64[], input %h: f32[N,4], input %x: f32[N,3], input %w: f32[3,4], input %r: f32[4,4], input %b: f32[4], constant %two: f32[] = 2) {{
{}
output "next" %next
output "made" %made
  }}
}}
output "h" %h
output "s" %s
}}
)",
                                 lines));
}

Tensor values_of(std::vector<std::int64_t> shape, std::size_t position) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  const std::vector<double> values = distinct_values(count, -1, 1, position);
  return Tensor::of<double>(std::move(shape), std::span(values)).cast(DType::kF32);
}

/// What the graph gives for loops of `trips` iterations over a batch of 2.
GraphResults run(const Graph& graph, std::int64_t trips) {
  Feeds feeds;
  for (const Input& input : graph.inputs()) {
    if (input.role != Role::kInput) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : graph.type(input.value).shape) shape.push_back(dim.evaluate({{"T", trips}, {"N", 2}}));
    feeds[input.name] = values_of(shape, feeds.size());
  }
  return interpret(graph, feeds, Precision::kDouble, {{"T", trips}, {"N", 2}});
}

void expect_same_results(const Graph& before, const Graph& after) {
  for (const std::int64_t trips : {0, 1, 4}) {
    SCOPED_TRACE(fmt::format("{} iterations", trips));
    const GraphResults expected = run(before, trips), actual = run(after, trips);
    ASSERT_EQ(expected.outputs.size(), actual.outputs.size());
    for (std::size_t k = 0; k < expected.outputs.size(); ++k) {
      SCOPED_TRACE(expected.outputs[k].name);
      const Tensor &a = expected.outputs[k].value, &b = actual.outputs[k].value;
      ASSERT_EQ(a.shape(), b.shape());
      for (std::int64_t i = 0; i < a.element_count(); ++i) EXPECT_NEAR(a.at(i), b.at(i), 1e-9 * (1 + std::abs(a.at(i)))) << "element " << i;
    }
  }
}

std::vector<const Node*> loops_of(const Graph& graph) {
  std::vector<const Node*> loops;
  for (const Node& node : graph.nodes())
    if (node.op->region == Region::kScan) loops.push_back(&node);
  return loops;
}

std::size_t count_ops(const Graph& graph, std::string_view op) {
  return static_cast<std::size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(), [op](const Node& node) { return node.op->name == op; }));
}

/// The graph after the pass, which changes it, once, and only its form.
Graph after(Pass pass, const Graph& graph) {
  Graph changed = graph.clone();
  EXPECT_EQ(pass(changed), Changed::kYes);
  verify(changed);
  expect_same_results(graph, changed);
  const std::string once = print(changed);
  EXPECT_EQ(pass(changed), Changed::kNo) << "a second run changes something again";
  EXPECT_EQ(print(changed), once);
  return changed;
}

void expect_unchanged(Pass pass, const LoopCase& c) {
  SCOPED_TRACE(c.says);
  Graph graph = loop_graph(c);
  const std::string before = print(graph);
  EXPECT_EQ(pass(graph), Changed::kNo);
  EXPECT_EQ(print(graph), before);
}

TEST(HoistInvariants, ComputesOnceWhatIsTheSameInAllIterations) {
  const Graph graph = after(hoist_invariants, loop_graph({"",
                                                          "%rr = mul(%r, %two); %rt = transpose(%rr) {perm=[1,0]}; %wide = broadcast_to(%b) {shape=[N,4]}; "
                                                          "%a = matmul(%h, %rt); %next = add(%a, %wide); %made = tanh(%next)"}));
  EXPECT_EQ(count_ops(*loops_of(graph)[0]->bodies[0], "transpose"), 0U);
  EXPECT_EQ(count_ops(*loops_of(graph)[0]->bodies[0], "mul"), 0U);
  EXPECT_EQ(count_ops(*loops_of(graph)[0]->bodies[0], "broadcast_to"), 1U) << "what only repeats a value is made where it is read";
  EXPECT_EQ(count_ops(graph, "transpose"), 1U);
}

TEST(HoistInvariants, LeavesTheRest) {
  const LoopCase cases[] = {
      {"nothing invariant", "%a = matmul(%h, %r); %next = add(%a, %b); %made = matmul(%x, %w)"},
      {"random numbers", "%a = random_uniform() {shape=[N,4], stream=1, to=f32}; %next = add(%h, %a); %made = tanh(%h)"},
  };
  for (const LoopCase& c : cases) expect_unchanged(hoist_invariants, c);
}

TEST(HoistFromLoops, TakesProductsOfSlicesAndWhatIsOnlyStacked) {
  const Graph graph = after(
      hoist_from_loops, loop_graph({"",
                                    "%p = matmul(%x, %w); %q = add(%p, %b); %a = matmul(%h, %r); %next = add(%a, %q); %e = exp(%q); %f = cast(%i) {to=f32}; "
                                    "%made = mul(%e, %f)"}));
  const Graph& body = *loops_of(graph)[0]->bodies[0];
  EXPECT_EQ(count_ops(body, "matmul"), 1U);
  EXPECT_EQ(count_ops(body, "exp"), 0U);
  EXPECT_EQ(count_ops(body, "add"), 2U) << "cheap things are done again rather than read";
  EXPECT_EQ(body.outputs().size(), 1U);
  EXPECT_EQ(count_ops(graph, "matmul"), 1U);
}

TEST(HoistFromLoops, LiftsEachOpThatHasAWay) {
  const LoopCase cases[] = {
      {"two slices", "%t = transpose(%x) {perm=[1,0]}; %made = matmul(%t, %x)"},
      {"a slice read transposed", "%t = transpose(%x) {perm=[1,0]}; %made = matmul(%t, %w) {ta=true}"},
      {"a matrix of fewer axes",
       "%t = reshape(%x) {shape=[1,N,3]}; %c = broadcast_to(%t) {shape=[2,N,3]}; %d = matmul(%c, %w); %made = matmul(%x, %d) {ta=true}"},
      {"reductions",
       "%a = reduce_sum(%x) {axes=[1], keep_dims=true}; %c = reduce_max(%x) {axes=[0]}; %d = reduce_min(%c) {axes=[0]}; %e = reduce_prod(%x) {axes=[0,1]}; "
       "%f = add(%a, %d); %g = mul(%f, %e); %made = add(%g, %b)"},
      {"argmax", "%a = argmax(%x) {axis=1}; %c = one_hot(%a) {shape=[N,4]}; %made = cast(%c) {to=f32}"},
      {"slice, pad and concat",
       "%a = slice(%x) {starts=[0,1], sizes=[N,2], steps=[1,1]}; %c = pad(%a) {starts=[0,1], sizes=[N,3], steps=[1,1]}; "
       "%d = slice(%x) {starts=[0,2], sizes=[N,2], steps=[1,-1]}; %made = concat(%c, %d) {axis=1}"},
      {"concat with what is the same", "%c = broadcast_to(%b) {shape=[N,4]}; %made = concat(%x, %c) {axis=1}"},
      {"broadcast and reshape", "%a = reduce_sum(%x) {axes=[1]}; %c = reshape(%a) {shape=[N,1]}; %made = broadcast_to(%c) {shape=[2,N,4]}"},
      {"fewer axes than the other operand", "%a = reduce_sum(%x) {axes=[0]}; %c = reshape(%x) {shape=[N,1,3]}; %made = add(%a, %c)"},
      {"gather", "%a = argmax(%x) {axis=1}; %made = gather(%r, %a)"},
      {"gather_elements", "%a = argmax(%x) {axis=1}; %c = reshape(%a) {shape=[N,1]}; %made = gather_elements(%x, %c) {axis=1}"},
      {"the number of the iteration", "%a = cast(%i) {to=f32}; %c = add(%a, %b); %made = broadcast_to(%c) {shape=[N,4]}"},
      {"the same in all iterations", "%made = broadcast_to(%b) {shape=[N,4]}"},
  };
  for (const LoopCase& c : cases) {
    SCOPED_TRACE(c.says);
    const Graph graph = after(hoist_from_loops, loop_graph({c.says, fmt::format("{}; %next = tanh(%h)", c.body)}));
    EXPECT_EQ(loops_of(graph)[0]->bodies[0]->node_count(), 1U);
  }
}

TEST(HoistFromLoops, LeavesTheRest) {
  const LoopCase cases[] = {
      {"all wait for the state", "%a = matmul(%h, %r); %next = add(%a, %b); %made = mul(%h, %two)"},
      {"random numbers", "%a = random_uniform() {shape=[N,3], stream=1, to=f32}; %c = add(%x, %a); %made = matmul(%c, %w); %next = tanh(%h)"},
      {"an op without a way",
       "%c = cast(%i) {to=i64}; %d = reshape(%c) {shape=[1]}; %e = broadcast_to(%d) {shape=[N]}; %f = scatter_add(%x, %e) {axis=0, shape=[5,3]}; "
       "%g = matmul(%f, %w); %next = tanh(%h); %made = reduce_sum(%g) {axes=[0]}"},
      {"cheap things that are fused where they are read",
       "%a = reduce_sum(%h) {axes=[1], keep_dims=true}; %c = slice(%x) {starts=[0,0], sizes=[N,1], steps=[1,1]}; %d = exp(%c); "
       "%e = mul(%a, %d); %next = add(%h, %e); %made = tanh(%next)"},
  };
  for (const LoopCase& c : cases) expect_unchanged(hoist_from_loops, c);
}

/// A loop with a sum over its iterations, `total`, as its second state.
Graph summing_graph(std::string_view body, std::string_view more_outputs = "") {
  std::string lines(body);
  for (std::size_t at; (at = lines.find("; ")) != std::string::npos;) lines.replace(at, 2, "\n");
  return parse_graph(fmt::format(R"(graph g(input %xs: f32[T,N,3], input %r: f32[4,4], input %w: f32[3,4], input %h0: f32[N,4], input %t0: f32[3,4]) {{
%h, %t, %began, %totals, %s = scan(%h0, %t0, %xs, %r, %w) {{scanned=1, states=2, trips=[T], reverse=true}} {{
  graph body(input %i: i64[], input %h: f32[N,4], input %total: f32[3,4], input %x: f32[N,3], input %r: f32[4,4], input %w: f32[3,4]) {{
{}
output "next" %next
output "new_total" %new_total
output "made" %made
  }}
}}
output "h" %h
output "t" %t
output "s" %s
{}
}}
)",
                                 lines, more_outputs));
}

TEST(SinkFromLoops, TakesProductsAndSumsOfThem) {
  const Graph graph = after(
      sink_from_loops,
      summing_graph("%a = matmul(%h, %r); %next = tanh(%a); %p = matmul(%x, %next) {ta=true}; %new_total = add(%total, %p); %q = matmul(%next, %w) {tb=true}; "
                    "%made = exp(%q)"));
  const Graph& body = *loops_of(graph)[0]->bodies[0];
  EXPECT_EQ(count_ops(body, "matmul"), 1U);
  EXPECT_EQ(count_ops(body, "exp"), 0U) << "what reads a product that has moved moves, too";
  EXPECT_EQ(loops_of(graph)[0]->attrs[kStates], 1);
  EXPECT_EQ(body.outputs().size(), 2U) << "the state, and what the products read of it";
}

TEST(SinkFromLoops, TakesReductionsOfWhatIsThereAnyway) {
  const Graph graph =
      after(sink_from_loops,
            summing_graph("%a = matmul(%h, %r); %next = tanh(%a); %made = exp(%next); %p = reduce_sum(%made) {axes=[0]}; %c = broadcast_to(%p) {shape=[3,4]}; "
                          "%new_total = add(%c, %total)"));
  EXPECT_EQ(loops_of(graph)[0]->attrs[kStates], 1);
  EXPECT_EQ(count_ops(*loops_of(graph)[0]->bodies[0], "reduce_sum"), 0U);
}

TEST(SinkFromLoops, SumsOfSlicesNeedNoLoop) {
  const Graph graph = after(
      sink_from_loops, summing_graph("%a = matmul(%h, %r); %next = tanh(%a); %p = matmul(%x, %h) {ta=true}; %new_total = add(%total, %p); %made = neg(%next)"));
  EXPECT_EQ(loops_of(graph)[0]->attrs[kStates], 1);
  EXPECT_EQ(loops_of(graph)[0]->bodies[0]->outputs().size(), 2U) << "what the states began with is stacked anyway";
}

TEST(SinkFromLoops, LeavesTheRest) {
  const auto unchanged = [](const char* says, std::string_view body, std::string_view more_outputs = "") {
    SCOPED_TRACE(says);
    Graph graph = summing_graph(body, more_outputs);
    const std::string before = print(graph);
    EXPECT_EQ(sink_from_loops(graph), Changed::kNo);
    EXPECT_EQ(print(graph), before);
  };
  unchanged("the product is what the next iteration begins with", "%next = matmul(%h, %r); %new_total = mul(%total, %w); %made = exp(%next)");
  unchanged("cheap terms: a stack of them would have to be written and read",
            "%next = matmul(%h, %r); %a = exp(%w); %p = mul(%a, %w); %c = reduce_max(%next) {axes=[0]}; %d = mul(%p, %c); "
            "%new_total = add(%total, %d); %made = exp(%next)");
  unchanged("the sum is read on its way",
            "%a = matmul(%h, %r); %next = tanh(%a); %p = matmul(%x, %next) {ta=true}; %new_total = add(%total, %p); %made = exp(%total)");
  unchanged("what it was is read later",
            "%a = matmul(%h, %r); %next = tanh(%a); %p = matmul(%x, %next) {ta=true}; %new_total = add(%total, %p); %made = neg(%next)",
            "output \"totals\" %totals");
  unchanged(
      "an op without a way reads the product",
      "%a = matmul(%h, %r); %next = tanh(%a); %p = matmul(%next, %r); %c = cast(%i) {to=i64}; %d = reshape(%c) {shape=[1]}; %e = broadcast_to(%d) {shape=[N]}; "
      "%made = scatter_add(%p, %e) {axis=0, shape=[5,4]}; %new_total = mul(%total, %w)");
}

/// The graph with the gradients of sum(h) + sum(s * s) as more outputs.
Graph with_gradients(Graph graph) {
  Builder builder(graph);
  const Val h = builder.val(graph.find_output("h")->value), s = builder.val(graph.find_output("s")->value);
  const Val loss = sum_all(h) + sum_all(square(s));
  std::vector<ValueId> inputs;
  for (const Input& input : graph.inputs())
    if (input.role == Role::kInput) inputs.push_back(input.value);
  const std::vector<ValueId> gradients = differentiate(graph, loss.id(), inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (gradients[i].valid()) builder.output("d" + graph.value(inputs[i]).name, builder.val(gradients[i]));
  verify(graph);
  return graph;
}

constexpr std::string_view kCell = "%p = matmul(%x, %w); %q = matmul(%h, %r); %a = add(%p, %q); %c = add(%a, %b); %next = tanh(%c); %made = mul(%next, %two)";

TEST(ReuseIterations, GradientsReadWhatIsDear) {
  const Graph graph = after(reuse_iterations, with_gradients(loop_graph({"", std::string(kCell)})));
  ASSERT_EQ(loops_of(graph).size(), 2U);
  const Graph &forward = *loops_of(graph)[0]->bodies[0], &backward = *loops_of(graph)[1]->bodies[0];
  EXPECT_EQ(count_ops(forward, "tanh"), 1U);
  EXPECT_EQ(count_ops(backward, "tanh"), 0U);
  EXPECT_EQ(forward.outputs().size(), 3U) << "the state, the stack, and what tanh gave";
}

TEST(ReuseIterations, WhatIsDrawnIsRead) {
  Graph graph =
      with_gradients(loop_graph({"", "%d = random_uniform() {shape=[N,4], stream=1, to=f32}; %c = mul(%h, %d); %next = add(%c, %b); %made = mul(%next, %d)"}));
  EXPECT_EQ(key_iterations(graph), Changed::kYes);
  graph = after(reuse_iterations, graph);
  EXPECT_EQ(count_ops(*loops_of(graph)[1]->bodies[0], "random_uniform"), 0U);
}

TEST(ReuseIterations, LeavesTheRest) {
  const auto unchanged = [](const char* says, Graph graph) {
    SCOPED_TRACE(says);
    const std::string before = print(graph);
    EXPECT_EQ(reuse_iterations(graph), Changed::kNo);
    EXPECT_EQ(print(graph), before);
  };
  unchanged("cheap bodies are done again",
            with_gradients(loop_graph({"", "%c = mul(%h, %b); %d = mul(%c, %h); %next = add(%d, %b); %made = mul(%next, %two)"})));
  Graph two = loop_graph({"", std::string(kCell)});
  Builder builder(two);
  const Node& loop = *loops_of(two)[0];
  std::vector<Val> operands;
  for (const ValueId operand : loop.operands) operands.push_back(builder.val(operand));
  operands[3] = operands[3] + 1.0;  // another r
  std::vector<std::unique_ptr<Graph>> bodies;
  bodies.push_back(std::make_unique<Graph>(loop.bodies[0]->clone()));
  Attrs attrs = loop.attrs;
  builder.output("other", builder.add(*loop.op, operands, attrs, std::move(bodies))[0]);
  Graph changed = after(reuse_iterations, two);
  EXPECT_EQ(count_ops(*loops_of(changed)[1]->bodies[0], "matmul"), 1U) << "x w is the same, h r is not";
}

TEST(PruneLoops, DropsWhatNobodyReads) {
  Graph graph = summing_graph("%a = matmul(%h, %r); %next = tanh(%a); %p = matmul(%x, %next) {ta=true}; %new_total = add(%total, %p); %made = exp(%next)");
  const Output h = *graph.find_output("h");
  Builder builder(graph);
  builder.clear_outputs();
  builder.output(h.name, builder.val(h.value));
  graph = after(prune_loops, graph);
  const Node& loop = *loops_of(graph)[0];
  EXPECT_EQ(loop.attrs[kStates], 1);
  EXPECT_EQ(loop.attrs[kScanned], 0);
  EXPECT_EQ(loop.operands.size(), 2U) << "h0 and r";
  EXPECT_EQ(loop.bodies[0]->outputs().size(), 1U);
}

TEST(PruneLoops, KeepsStatesThatOthersNeed) {
  Graph graph = summing_graph(
      "%a = matmul(%h, %r); %k = reduce_sum(%total) {axes=[0]}; %next = add(%a, %k); %p = matmul(%x, %h) {ta=true}; %new_total = add(%total, %p); %made = "
      "exp(%next)");
  EXPECT_EQ(prune_loops(graph), Changed::kYes) << "w is not read";
  EXPECT_EQ(loops_of(graph)[0]->attrs[kStates], 2);
  EXPECT_EQ(prune_loops(graph), Changed::kNo);
}

/// All of them, one after the other: an LSTM-like loop and its gradient come to one product in each loop.
TEST(Optimize, LoopsKeepOnlyTheRecurrence) {
  const Graph graph = with_gradients(loop_graph({"", std::string(kCell)}));
  Graph optimized = graph.clone();
  optimize(optimized);
  verify(optimized);
  expect_same_results(graph, optimized);
  ASSERT_EQ(loops_of(optimized).size(), 2U);
  for (const Node* loop : loops_of(optimized)) {
    EXPECT_EQ(count_ops(*loop->bodies[0], "matmul"), 1U);
    EXPECT_EQ(loop->attrs[kStates], 1);
  }
  EXPECT_EQ(count_ops(optimized, "matmul"), 4U) << "x w, and the gradients of x, w and r";
}

TEST(Optimize, LoopsOfOtherKindsMeanWhatTheyMeant) {
  const LoopCase cases[] = {
      {"a gate by sequence length",
       "%p = matmul(%x, %w); %q = matmul(%h, %r); %a = add(%p, %q); %c = tanh(%a); %k = cast(%two) {to=i64}; %alive = less(%i, %k); %next = where(%alive, %c, "
       "%h); "
       "%made = where(%alive, %c, %b)"},
      {"a state that is read twice",
       "%q = matmul(%h, %r); %e = sigmoid(%q); %f = matmul(%e, %r); %g = mul(%f, %h); %next = add(%g, %e); %made = matmul(%next, %r)"},
      {"a map without a state", "%p = matmul(%x, %w); %made = tanh(%p); %next = mul(%h, %two)"},
      {"softmax over the state",
       "%q = matmul(%h, %r); %m = reduce_max(%q) {axes=[1], keep_dims=true}; %d = sub(%q, %m); %e = exp(%d); %z = reduce_sum(%e) {axes=[1], keep_dims=true}; "
       "%next = div(%e, %z); %made = add(%next, %b)"},
      {"the step before", "%p = matmul(%x, %w); %next = tanh(%p); %made = add(%h, %p)"},
  };
  for (const LoopCase& c : cases) {
    SCOPED_TRACE(c.says);
    const Graph graph = with_gradients(loop_graph(c));
    Graph optimized = graph.clone();
    optimize(optimized);
    verify(optimized);
    expect_same_results(graph, optimized);
  }
}

}  // namespace
}  // namespace hone::test
