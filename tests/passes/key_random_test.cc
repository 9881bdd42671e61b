// key_random and key_iterations: what is drawn depends on seed, stream, step, iteration and sample, and on nothing else; a gradient sees what the forward pass drew.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "ir/kernel/interpret.h"
#include "ir/ops/ops.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "tests/passes/pass_case.h"

namespace hone::test {
namespace {

using Numbers = std::vector<double>;

const Dim kSamples = Dim::symbol("N");

Tensor ones(std::vector<std::int64_t> shape) {
  return Tensor::make(DType::kF32, std::move(shape), [](std::span<std::byte> bytes) {
    auto* values = reinterpret_cast<float*>(bytes.data());
    std::fill(values, values + bytes.size() / sizeof(float), 1.0F);
  });
}

Numbers numbers(const Tensor& tensor) {
  Numbers values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) values.push_back(tensor.at(i));
  return values;
}

/// Part `i` of `count`.
Numbers part(const Numbers& all, std::size_t i, std::size_t count) {
  const auto size = static_cast<std::ptrdiff_t>(all.size() / count), begin = static_cast<std::ptrdiff_t>(i) * size;
  return {all.begin() + begin, all.begin() + begin + size};
}

struct When {
  std::int64_t step = 0, seed = 0, first = 0;
};

/// The graph (keyed with `seed` for a start) after `when.step` steps of a run with `when.seed`.
GraphResults run(const Graph& keyed, Feeds feeds, const When& when = {}) {
  Graph graph = keyed.clone();
  (void)expand(graph);
  verify(graph);
  if (graph.find_input("random_step") != nullptr) feeds["random_step"] = Tensor::scalar(when.step), feeds["random_seed"] = Tensor::scalar(when.seed);
  if (graph.find_input("first_sample") != nullptr) feeds["first_sample"] = Tensor::scalar(when.first);
  return interpret(graph, feeds);
}

Graph keyed(Graph graph, std::int64_t seed = 0, const Dim& samples = kSamples) {
  EXPECT_EQ(key_random(graph, seed, samples), Changed::kYes);
  verify(graph);
  EXPECT_EQ(key_random(graph, seed, samples), Changed::kNo) << "numbers keep the key they have";
  return graph;
}

TEST(KeyRandom, MakesAnEventOfStepAndSeed) {
  Graph graph = small_graph("input %x: f32[4], input %r: f32[]", "%d, %kept = dropout(%x, %r) {seed=2, stream=1}; %y = neg(%d)");
  graph = keyed(std::move(graph), 40);
  for (const char* name : {"random_step", "random_seed"}) {
    const Input* state = graph.find_input(name);
    ASSERT_NE(state, nullptr);
    EXPECT_EQ(state->role, Role::kState);
  }
  EXPECT_EQ(graph.find_input("random_seed")->data->int_at(0), 40);
  EXPECT_EQ(graph.find_input("first_sample"), nullptr) << "nothing here is drawn for a sample";
  ASSERT_EQ(graph.aliases().size(), 1U);
  EXPECT_EQ(expression(graph, graph.aliases()[0].value), "add(random_step, 1)");
  EXPECT_EQ(expression(graph), "neg(dropout(x, r, random_event(random_step, random_seed)){seed=2, stream=1})");
}

TEST(KeyRandom, GraphsWithoutRandomNumbersStay) {
  Graph graph = small_graph("input %x: f32[4]", "%y = neg(%x)");
  EXPECT_EQ(key_random(graph, 1, kSamples), Changed::kNo);
  EXPECT_EQ(key_iterations(graph), Changed::kNo);
}

TEST(KeyRandom, NamesThatTheModelHasAreLeftToIt) {
  Graph graph = small_graph("input %random_step: f32[N], state %random_seed: f32[] = 1", "%a = random_uniform() {shape=[N], stream=1, to=f32}; %y = add(%a, %random_step)");
  graph = keyed(std::move(graph));
  EXPECT_NE(graph.find_input("random_step_"), nullptr);
  EXPECT_NE(graph.find_input("random_seed_"), nullptr);
}

constexpr std::string_view kDraw = "%y = random_uniform() {shape=[N,5], stream=1, to=f32}";

TEST(KeyRandom, EveryStepAndSeedDrawsOtherNumbers) {
  const Graph graph = keyed(small_graph("input %x: f32[N]", kDraw));
  const Feeds feeds = {{"x", ones({40})}};
  const Numbers at = numbers(run(graph, feeds, {3, 7})["y"]);
  EXPECT_EQ(numbers(run(graph, feeds, {3, 7})["y"]), at);
  EXPECT_NE(numbers(run(graph, feeds, {4, 7})["y"]), at);
  EXPECT_NE(numbers(run(graph, feeds, {3, 8})["y"]), at);
  EXPECT_NE(numbers(run(graph, feeds, {7, 3})["y"]), at) << "step and seed are told apart";
}

/// What N replicas draw, one after the other along the axis of the samples, is what one draws.
TEST(KeyRandom, PartsOfABatchDrawWhatTheWholeDraws) {
  struct Case {
    const char *says, *shape;
    std::size_t before, behind;  // elements: product of the extents in front of the samples' axis, and of those behind it
  };
  for (const Case& c : {Case{"samples first", "[N,5]", 1, 5}, Case{"samples second", "[3,N,2]", 3, 2}, Case{"several rows a sample", "[2*N,3]", 1, 6}}) {
    SCOPED_TRACE(c.says);
    const Graph graph = keyed(small_graph("input %x: f32[N]", fmt::format("%y = random_normal() {{shape={}, stream=1, to=f32}}", c.shape)));
    const Numbers whole = numbers(run(graph, {{"x", ones({8})}}, {2, 1, 0})["y"]);
    const Numbers left = numbers(run(graph, {{"x", ones({3})}}, {2, 1, 0})["y"]), right = numbers(run(graph, {{"x", ones({5})}}, {2, 1, 3})["y"]);
    Numbers together;
    for (std::size_t i = 0; i < c.before; ++i)
      for (const Numbers* some : {&left, &right}) {
        const Numbers here = part(*some, i, c.before);
        together.insert(together.end(), here.begin(), here.end());
      }
    EXPECT_EQ(together, whole);
    EXPECT_NE(left, Numbers(whole.end() - static_cast<std::ptrdiff_t>(left.size()), whole.end()));
  }
}

TEST(KeyRandom, WhatIsNotDrawnForSamplesIsTheSameForAllReplicas) {
  Graph graph = small_graph("input %x: f32[N]", "%y = random_uniform() {shape=[5,7], stream=1, to=f32}");
  EXPECT_EQ(keyed(std::move(graph)).find_input("first_sample"), nullptr);
}

TEST(KeyRandom, OfABatchOfFixedSizeTheFirstAxisCounts) {
  const Graph graph = keyed(small_graph("input %x: f32[4]", "%y = random_uniform() {shape=[8,3], stream=1, to=f32}"), 0, 4);
  const Feeds feeds = {{"x", ones({4})}};
  EXPECT_EQ(part(numbers(run(graph, feeds, {0, 0, 2})["y"]), 0, 2), part(numbers(run(graph, feeds)["y"]), 1, 2)) << "a sample has two rows";
  EXPECT_EQ(keyed(small_graph("input %x: f32[4]", "%y = random_uniform() {shape=[6,3], stream=1, to=f32}"), 0, 4).find_input("first_sample"), nullptr);
}

/// s' = dropout(s + x[i]), and which elements were kept: what a recurrent network with dropout does. `more` follows the loop.
Graph loop(std::string_view attributes, std::string_view more = "%y = reshape(%kept) {shape=[T,N,4]}") {
  return small_graph("input %x: f32[T,N,4], input %start: f32[N,4], input %w: f32[4], constant %rate: f32[] = 0.25", fmt::format(R"(%final, %states, %kept = scan(%start, %x, %rate, %w) {{{}scanned=1, states=1, stream=5, trips=[T]}} {{
  graph iteration(input %i: i64[], input %s: f32[N,4], input %x: f32[N,4], input %rate: f32[], input %w: f32[4]) {{
    %weighed = mul(%x, %w)
    %a = add(%s, %weighed)
    %d, %mask = dropout(%a, %rate) {{seed=3, stream=1}}
    %shown = cast(%mask) {{to=f32}}
    output new %d
    output kept %shown
  }}
}}
{})", attributes, more));
}

Feeds loop_feeds(std::int64_t trips, std::int64_t samples) { return {{"x", ones({trips, samples, 4})}, {"start", ones({samples, 4})}, {"w", ones({4})}}; }

TEST(KeyRandom, EveryIterationDrawsOtherNumbers) {
  const Graph graph = keyed(loop(""));
  const Numbers kept = numbers(run(graph, loop_feeds(5, 30))["y"]);
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(part(kept, i, 5), part(kept, j, 5)) << "iterations " << i << " and " << j;
  }
  EXPECT_EQ(numbers(run(graph, loop_feeds(5, 30))["y"]), kept);
  EXPECT_NE(numbers(run(graph, loop_feeds(5, 30), {1, 0})["y"]), kept) << "another step";
  EXPECT_NE(numbers(run(graph, loop_feeds(5, 30), {0, 1})["y"]), kept) << "another seed";
  EXPECT_EQ(part(numbers(run(graph, loop_feeds(9, 30))["y"]), 1, 9), part(kept, 1, 5)) << "how often the loop runs does not matter";
  const double share = std::accumulate(kept.begin(), kept.end(), 0.0) / static_cast<double>(kept.size());
  EXPECT_NEAR(share, 0.75, 0.07) << "four deviations of 600 draws";
}

TEST(KeyRandom, IterationsOfReplicasDrawWhatTheWholeBatchDraws) {
  const Graph graph = keyed(loop(""));
  const Numbers whole = numbers(run(graph, loop_feeds(2, 6))["y"]), left = numbers(run(graph, loop_feeds(2, 2))["y"]),
                right = numbers(run(graph, loop_feeds(2, 4), {0, 0, 2})["y"]);
  for (std::size_t i = 0; i < 2; ++i) {
    Numbers together = part(left, i, 2), behind = part(right, i, 2);
    together.insert(together.end(), behind.begin(), behind.end());
    EXPECT_EQ(together, part(whole, i, 2)) << "iteration " << i;
  }
}

/// The backward loop computes each iteration again. d final / d x[i] is the product of mask / (1 - rate) from iteration i on: it shows every mask that it drew.
void expect_gradient_sees_the_masks(std::string_view attributes) {
  const bool reverse = not attributes.empty();
  Graph graph = keyed(loop(attributes, "%y = reduce_sum(%final) {axes=[0,1]}"));
  (void)expand_for_gradients(graph);
  const ValueId variables[] = {graph.find_input("x")->value, graph.find_input("w")->value};
  const std::vector<ValueId> gradients = differentiate(graph, graph.find_output("y")->value, variables);
  const auto scan = std::find_if(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) { return *node.op == op::scan; });
  ASSERT_NE(scan, graph.nodes().end());
  Builder builder(graph);
  builder.output("kept", builder.val(scan->results[2]));
  builder.output("dx", builder.val(gradients[0]));
  builder.output("dw", builder.val(gradients[1]));
  for (const std::int64_t step : {0, 1, 6}) {
    const GraphResults results = run(graph, loop_feeds(4, 3), {step, 2});
    const Numbers kept = numbers(results["kept"]), dx = numbers(results["dx"]), dw = numbers(results["dw"]);
    Numbers product(12, 1), sums(4, 0);
    for (std::size_t trip = 4; trip-- > 0;) {
      const std::size_t i = reverse ? 3 - trip : trip;  // the last iteration first
      for (std::size_t k = 0; k < 12; ++k) {
        product[k] *= kept[i * 12 + k] / 0.75;
        EXPECT_NEAR(dx[i * 12 + k], product[k], 1e-5) << "iteration " << i << ", element " << k;
        sums[k % 4] += product[k];
      }
    }
    for (std::size_t k = 0; k < 4; ++k) EXPECT_NEAR(dw[k], sums[k], 1e-4) << k;
  }
}

TEST(KeyRandom, TheBackwardLoopDrawsWhatTheForwardLoopDrew) { expect_gradient_sees_the_masks(""); }
TEST(KeyRandom, TheBackwardLoopOfAReverseOneDoesToo) { expect_gradient_sees_the_masks("reverse=true, "); }

/// A loop that runs for as long as it draws numbers below 0.8: one node counts, another one does it.
TEST(KeyRandom, CountAndLoopDrawTheSame) {
  const Graph graph = keyed(small_graph("input %on: bool[], input %x: f32[N], constant %limit: f32[] = 0.8", R"(%count = while_trips(%on, %limit, %limit) {states=1, stream=2, trips=[1000]} {
  graph condition(input %i: i64[], input %s: f32[], input %limit: f32[]) {
    %u = random_uniform() {shape=[], stream=1, to=f32}
    %on = less(%u, %limit)
    output on %on
    output s %u
  }
}
%trips = read_sizes(%count) {sizes=[trips]}
%final, %states, %drawn = scan(%limit, %x) {states=1, stream=2, trips=[trips]} {
  graph iteration(input %i: i64[], input %s: f32[], input %x: f32[N]) {
    %u = random_uniform() {shape=[], stream=1, to=f32}
    output s %u
    output drawn %u
  }
}
%y = reshape(%drawn) {shape=[trips]})"));
  std::set<std::size_t> lengths;
  for (std::int64_t step = 0; step < 20; ++step) {
    const Numbers drawn = numbers(run(graph, {{"on", Tensor::scalar(std::int64_t{1}).cast(DType::kBool)}, {"x", ones({1})}}, {step, 1})["y"]);
    ASSERT_FALSE(drawn.empty());
    EXPECT_GE(drawn.back(), 0.8) << "the number that ended it";
    for (std::size_t i = 0; i + 1 < drawn.size(); ++i) EXPECT_LT(drawn[i], 0.8);
    lengths.insert(drawn.size());
  }
  EXPECT_GT(lengths.size(), 3U);
}

constexpr std::string_view kInnerBody = R"( {
      graph inner(input %j: i64[], input %s: f32[N]) {
        %u = random_uniform() {shape=[N], stream=1, to=f32}
        output s %u
        output u %u
      }
    })";

TEST(KeyRandom, LoopsInsideOfLoopsAndBesideEachOtherDrawOtherNumbers) {
  const std::string inner(kInnerBody);
  const Graph graph = keyed(small_graph("input %x: f32[N]", R"(%u = random_uniform() {shape=[N], stream=1, to=f32}
%a, %b, %nested = scan(%x) {states=1, stream=2, trips=[3]} {
  graph outer(input %i: i64[], input %s: f32[N]) {
    %final, %states, %all = scan(%s) {states=1, stream=1, trips=[2]})" + inner + R"(
    output s %final
    output all %all
  }
}
%c, %d, %beside = scan(%x) {states=1, stream=3, trips=[2]})" + inner + R"(
%first = reshape(%u) {shape=[1,N]}
%second = reshape(%nested) {shape=[6,N]}
%y = concat(%first, %second, %beside) {axis=0})"));
  const Numbers all = numbers(run(graph, {{"x", ones({11})}})["y"]);
  std::set<Numbers> rows;
  for (std::size_t i = 0; i < 9; ++i) rows.insert(part(all, i, 9));
  EXPECT_EQ(rows.size(), 9U) << "one draw outside, six in the nested loop, two in the one beside";
}

TEST(KeyRandom, ABranchAndItsGradientDrawTheSame) {
  Graph graph = keyed(small_graph("input %c: bool[], input %x: f32[N,50], constant %rate: f32[] = 0.5", R"(%chosen = branch(%c, %x, %rate) {stream=4} {
  graph then(input %x: f32[N,50], input %rate: f32[]) {
    %d, %kept = dropout(%x, %rate) {stream=1}
    output d %d
  }
  graph else(input %x: f32[N,50], input %rate: f32[]) {
    %d = neg(%x)
    output d %d
  }
}
%y = reduce_sum(%chosen) {axes=[0,1]})"));
  (void)expand_for_gradients(graph);
  const ValueId variables[] = {graph.find_input("x")->value};
  const ValueId gradient = differentiate(graph, graph.find_output("y")->value, variables)[0];
  Builder builder(graph);
  builder.output("chosen", builder.val(std::find_if(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) { return *node.op == op::branch; })->results[0]));
  builder.output("dx", builder.val(gradient));
  const auto at = [&](std::int64_t step, std::int64_t condition) { return run(graph, {{"c", Tensor::scalar(condition).cast(DType::kBool)}, {"x", ones({3, 50})}}, {step, 0}); };
  EXPECT_EQ(numbers(at(0, 1)["chosen"]), numbers(at(0, 1)["dx"]));
  EXPECT_NE(numbers(at(0, 1)["chosen"]), numbers(at(1, 1)["chosen"]));
  EXPECT_EQ(numbers(at(0, 0)["chosen"]), Numbers(150, -1));
}

TEST(KeyIterations, LoopsOfAPredictionDrawOtherNumbersInEveryIteration) {
  Graph graph = small_graph("input %x: f32[N]", R"(%u = random_uniform() {shape=[N], stream=1, to=f32}
%a, %b, %all = scan(%x) {states=1, stream=2, trips=[3]})" + std::string(kInnerBody) + "\n%first = reshape(%u) {shape=[1,N]}\n%y = concat(%first, %all) {axis=0}");
  const Numbers outside = part(numbers(run(graph, {{"x", ones({9})}})["y"]), 0, 4);
  EXPECT_EQ(key_iterations(graph), Changed::kYes);
  verify(graph);
  EXPECT_EQ(key_iterations(graph), Changed::kNo);
  EXPECT_TRUE(graph.aliases().empty()) << "a prediction counts no steps";
  const Numbers all = numbers(run(graph, {{"x", ones({9})}})["y"]);
  EXPECT_EQ(part(all, 0, 4), outside);
  std::set<Numbers> rows;
  for (std::size_t i = 0; i < 4; ++i) rows.insert(part(all, i, 4));
  EXPECT_EQ(rows.size(), 4U);
}

TEST(FoldConstants, WhatIsDrawnIsNoConstant) {
  Graph graph = small_graph("input %x: f32[3]", "%u = random_uniform() {shape=[3], stream=1, to=f32}; %y = add(%x, %u)");
  EXPECT_EQ(fold_constants(graph), Changed::kNo);
}

/// Kept elements are scaled, so that the mean stays: over many steps every element has mean 1 and variance rate / (1 - rate).
TEST(Dropout, KeepsTheMeanAndTheShare) {
  for (const double rate : {0.1, 0.5, 0.9}) {
    const Graph graph = keyed(small_graph(fmt::format("input %x: f32[N], constant %rate: f32[] = {}", rate), "%y, %kept = dropout(%x, %rate) {stream=1}"), 11);
    constexpr std::int64_t kCount = 100'000;
    const Numbers y = numbers(run(graph, {{"x", ones({kCount})}}, {5, 11})["y"]);
    double sum = 0, squares = 0, kept = 0, neighbours = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      sum += y[i], squares += y[i] * y[i], kept += y[i] != 0;
      if (i > 0) neighbours += (y[i] != 0) and (y[i - 1] != 0);
      EXPECT_TRUE(y[i] == 0 or std::fabs(y[i] - 1 / (1 - rate)) < 1e-5);
    }
    const double n = static_cast<double>(kCount), deviation = std::sqrt(rate * (1 - rate) / n), variance = rate / (1 - rate);
    EXPECT_NEAR(kept / n, 1 - rate, 4 * deviation) << rate;
    EXPECT_NEAR(sum / n, 1, 4 * std::sqrt(variance / n)) << rate;
    EXPECT_NEAR(squares / n - sum * sum / n / n, variance, variance * 0.05) << rate;
    EXPECT_NEAR(neighbours / n, (1 - rate) * (1 - rate), 8 * deviation) << "neighbours are independent, " << rate;
  }
}

}  // namespace
}  // namespace hone::test
