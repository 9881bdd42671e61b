// Products of which cuBLASLt would like other rows get them, and compute the same.
#include "backends/suit_products.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/targets.h"
#include "base/tensor.h"
#include "ir/kernel/interpret.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "passes/passes.h"

namespace hone {
namespace {

struct Case {
  std::string a, b, attributes, result;
  Shape a_shape, b_shape;
};

Graph product(const Case& of, std::string_view behind = "output \"y\" %1\n", std::string_view type = "bf16") {
  return parse_graph(fmt::format("graph g(input %a: {0}[{1}], input %b: {0}[{2}]) {{\n%1: f32[{3}] = matmul(%a, %b) {{{4}to=f32}}\n{5}}}\n", type, of.a, of.b, of.result, of.attributes, behind));
}

std::size_t count(const Graph& graph, const OpDef& op) {
  return static_cast<std::size_t>(std::ranges::count_if(graph.nodes(), [&](const Node& node) { return *node.op == op; }));
}

Changed suit(Graph& graph) {
  const Changed changed = suit_products(graph, find_backend("cuda"));
  verify(graph);
  return changed;
}

Tensor numbers(const Shape& shape, double phase) {
  std::vector<std::int64_t> extents;
  std::int64_t elements = 1;
  for (const Dim& extent : shape) extents.push_back(extent.value()), elements *= extent.value();
  std::vector<double> values(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::round(8 * std::sin(phase + 0.7 * static_cast<double>(i))) / 8;
  return Tensor::of<double>(extents, std::span<const double>(values)).cast(DType::kBF16);
}

/// Whether it changes, and that it does not change what it computes.
Changed suits(const Case& of) {
  Graph graph = product(of);
  const Feeds feeds = {{"a", numbers(of.a_shape, 0.1)}, {"b", numbers(of.b_shape, 0.2)}};
  const Tensor before = interpret(graph, feeds, Precision::kDouble)["y"];
  const Changed changed = suit(graph);
  const Tensor after = interpret(graph, feeds, Precision::kDouble)["y"];
  EXPECT_EQ(after.shape(), before.shape());
  for (std::int64_t i = 0; i < before.element_count(); ++i) EXPECT_EQ(after.at(i), before.at(i)) << i;
  for (const Node& node : graph.nodes()) {
    if (*node.op != op::matmul) continue;
    for (const ValueId value : {node.operands[0], node.operands[1], node.results[0]}) {
      const Dim& row = graph.type(value).shape.back();
      EXPECT_TRUE(not row.is_constant() or row.value() % 8 == 0) << to_string(graph.type(value));
    }
  }
  return changed;
}

TEST(SuitProducts, OddRowsBecomeLonger) {
  EXPECT_EQ(suits({"70,64", "64,129", "", "70,129", {70, 64}, {64, 129}}), Changed::kYes) << "n";
  EXPECT_EQ(suits({"70,64", "129,64", "tb=true, ", "70,129", {70, 64}, {129, 64}}), Changed::kYes) << "n, of the result alone";
  EXPECT_EQ(suits({"64,71", "64,72", "ta=true, ", "71,72", {64, 71}, {64, 72}}), Changed::kYes) << "m, where it is a's rows";
  EXPECT_EQ(suits({"70,67", "67,72", "", "70,72", {70, 67}, {67, 72}}), Changed::kYes) << "k";
  EXPECT_EQ(suits({"67,70", "65,67", "ta=true, tb=true, ", "70,65", {67, 70}, {65, 67}}), Changed::kYes) << "all three";
  EXPECT_EQ(suits({"2,70,67", "2,67,65", "", "2,70,65", {2, 70, 67}, {2, 67, 65}}), Changed::kYes) << "of each batch";
}

TEST(SuitProducts, OthersAreLeft) {
  EXPECT_EQ(suits({"71,64", "64,128", "", "71,128", {71, 64}, {64, 128}}), Changed::kNo) << "an odd number of rows";
  const auto is_left = [](const Case& of, std::string_view type) {
    Graph graph = product(of, "output \"y\" %1\n", type);
    return suit(graph) == Changed::kNo;
  };
  EXPECT_TRUE(is_left({"512,128", "128,10", "", "512,10", {}, {}}, "bf16")) << "rows that are as short as a copy of them is dear";
  EXPECT_TRUE(is_left({"70,64", "64,129", "", "70,129", {}, {}}, "f32")) << "f32 is multiplied one by one";
  Graph graph = product({"70,64", "64,129", "", "70,129", {}, {}});
  EXPECT_EQ(suit_products(graph, find_backend("cpu")), Changed::kNo) << "a processor's own kernels have their own tiles";
}

TEST(SuitProducts, WhatIsWantedTransposedIsMadeSo) {
  for (const char* attributes : {"", "ta=true, ", "tb=true, ", "ta=true, tb=true, "}) {
    const bool ta = std::string_view(attributes).find("ta") != std::string_view::npos, tb = std::string_view(attributes).find("tb") != std::string_view::npos;
    Graph graph = product({ta ? "64,72" : "72,64", tb ? "80,64" : "64,80", attributes, "72,80", {}, {}}, "%2: f32[80,72] = transpose(%1) {perm=[1,0]}\noutput \"y\" %2\n");
    const Feeds feeds = {{"a", numbers(ta ? Shape{64, 72} : Shape{72, 64}, 0.1)}, {"b", numbers(tb ? Shape{80, 64} : Shape{64, 80}, 0.2)}};
    const Tensor before = interpret(graph, feeds, Precision::kDouble)["y"];
    EXPECT_EQ(suit(graph), Changed::kYes) << attributes;
    EXPECT_EQ(count(graph, op::transpose), 0U) << attributes;
    const Tensor after = interpret(graph, feeds, Precision::kDouble)["y"];
    ASSERT_EQ(after.shape(), before.shape());
    for (std::int64_t i = 0; i < before.element_count(); ++i) ASSERT_EQ(after.at(i), before.at(i)) << attributes << i;
  }
}

TEST(SuitProducts, TransposedForSomeAndNotForOthersItIsLeft) {
  Graph graph = product({"72,64", "64,80", "", "72,80", {}, {}}, "%2: f32[80,72] = transpose(%1) {perm=[1,0]}\noutput \"y\" %1\noutput \"z\" %2\n");
  EXPECT_EQ(suit(graph), Changed::kNo);
}

TEST(SuitProducts, AFactorThatIsReadInTwoShapesIsCopiedOnce) {
  Graph graph = parse_graph(
      "graph g(input %g: bf16[N,128,129], input %w: bf16[129,64], input %x: bf16[128*N,64]) {\n%1: f32[N,128,64] = matmul(%g, %w) {to=f32}\n%2: bf16[128*N,129] = reshape(%g) {shape=[128*N,129]}\n"
      "%3: f32[129,64] = matmul(%2, %x) {ta=true, to=f32}\noutput \"y\" %1\noutput \"z\" %3\n}\n");
  EXPECT_EQ(suit(graph), Changed::kYes);
  (void)eliminate_common_subexpressions(graph);
  EXPECT_EQ(count(graph, op::pad), 2U) << "of the gradient and of the weight";
}

}  // namespace
}  // namespace hone
