// Reductions to few results are taken in parts, where there are parts worth it; no value changes; and each part is one kernel with what feeds it.
#include "backends/split_reductions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/fuse.h"
#include "backends/recompute.h"
#include "base/tensor.h"
#include "ir/kernel/interpret.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "ir/parse.h"
#include "ir/verify.h"

namespace hone {
namespace {

Graph graph_of(const std::string& x, const std::string& body) { return parse_graph(fmt::format("graph g(input %x: {}) {{\n{}}}\n", x, body)); }

std::string sum_over(const std::string& axes, const std::string& result) { return fmt::format("%1: {} = reduce_sum(%x) {{axes=[{}]}}\noutput \"y\" %1\n", result, axes); }

/// The axes of each reduction, in order, after the pass: "1,2 0".
std::string reductions(Graph graph) {
  const Changed changed = split_reductions(graph);
  verify(graph);
  std::string text;
  std::size_t count = 0;
  for (const Node& node : graph.nodes()) {
    if (not node.attrs.has(kAxes)) continue;
    std::string axes;
    for (const std::int64_t axis : node.attrs[kAxes]) axes += fmt::format("{}{}", axes.empty() ? "" : ",", axis);
    text += (text.empty() ? "" : " ") + axes;
    ++count;
  }
  EXPECT_EQ(changed == Changed::kYes, count > 1);
  EXPECT_EQ(split_reductions(graph), Changed::kNo) << "parts are not split again";
  return text;
}

TEST(SplitReductions, FewResultsOfManyElementsAreTakenInParts) {
  EXPECT_EQ(reductions(graph_of("f32[N,32,32,16]", sum_over("0,1,2", "f32[16]"))), "1,2 0") << "a batch of images, channels last";
  EXPECT_EQ(reductions(graph_of("f32[N,4,32,32]", sum_over("0,2,3", "f32[4]"))), "2,3 0") << "few channels, first";
  EXPECT_EQ(reductions(graph_of("f32[N,296,64]", sum_over("0,1", "f32[64]"))), "1 0") << "rows";
  EXPECT_EQ(reductions(graph_of("f32[N,64,512,16]", sum_over("0,1,2", "f32[16]"))), "2 0,1") << "images whose rows are long enough";
  EXPECT_EQ(reductions(graph_of("f32[784,512]", sum_over("0,1", "f32[]"))), "1 0") << "a gradient's norm";
  EXPECT_EQ(reductions(graph_of("f32[2,64,128,128]", sum_over("0,1,2,3", "f32[]"))), "2,3 0,1") << "all elements; the first axis alone would give two parts";
}

TEST(SplitReductions, StayInPartsWhenAReplicaIsAlone) {
  Graph graph = graph_of("f32[N,32,32,16]", "%1: f32[16] = reduce_sum(%x) {axes=[0,1,2]}\n// all_reduce\n%2: f32[16] = all_reduce(%1) {bucket=0}\noutput \"y\" %2\n");
  ASSERT_EQ(reductions(graph.clone()), "1,2 0");
  (void)split_reductions(graph);
  const Fusion fusion = fuse_and_recompute(graph, {}, Exchange::kNone);
  const auto is_sum = [](const Node& node) { return *node.op == op::reduce_sum; };
  EXPECT_EQ(std::ranges::count_if(fusion.graph.nodes(), is_sum), 2) << "what is simplified without exchanges would make one sum of the two";
}

TEST(SplitReductions, OthersAreLeft) {
  EXPECT_EQ(reductions(graph_of("f32[N,32,32,256]", sum_over("0,1,2", "f32[256]"))), "0,1,2") << "channels enough to share";
  EXPECT_EQ(reductions(graph_of("f32[N,64,32,32]", sum_over("0,2,3", "f32[64]"))), "0,2,3") << "so are these, channels first";
  EXPECT_EQ(reductions(graph_of("f32[N,M,64]", sum_over("2", "f32[N,M]"))), "2") << "rows of unknown number";
  EXPECT_EQ(reductions(graph_of("f32[N,16]", sum_over("0", "f32[16]"))), "0") << "one axis";
  EXPECT_EQ(reductions(graph_of("f32[N,10]", sum_over("0,1", "f32[]"))), "0,1") << "parts of ten elements";
  EXPECT_EQ(reductions(graph_of("f32[16,64,8]", sum_over("0,1", "f32[8]"))), "0,1") << "small";
  EXPECT_EQ(reductions(graph_of("f16[N,32,32,16]", "%1: f16[16] = reduce_sum(%x) {axes=[0,1,2]}\noutput \"y\" %1\n")), "0,1,2") << "parts would be rounded";
  EXPECT_EQ(reductions(graph_of("f32[N,0,32,16]", sum_over("0,1,2", "f32[16]"))), "0,1,2") << "nothing";
}

/// Mean and variance over all but the last axis, and what is normalized with them.
std::string normalization(const std::string& shape) {
  return fmt::format(
      "%1: f32[1,1,1,16] = reduce_sum(%x) {{axes=[0,1,2], keep_dims=true}}\n%2: f32[1,1,1,16] = mul(%1, %n)\n%3: f32[1,1,1,16] = div(%1, %c)\n%4: {0} = sub(%x, %3)\n"
      "%5: {0} = mul(%4, %4)\n%6: f32[1,1,1,16] = reduce_sum(%5) {{axes=[0,1,2], keep_dims=true}}\n%7: f32[1,1,1,16] = div(%6, %c)\n%8: f32[1,1,1,16] = sqrt(%7)\n"
      "%9: {0} = div(%4, %8)\n%10: {0} = add(%9, %2)\noutput \"y\" %10\n",
      shape);
}

Graph normalizing(const std::string& batch) {
  const std::string shape = fmt::format("f32[{},16,16,16]", batch);
  return parse_graph(fmt::format("graph g(input %x: {}, input %c: f32[1,1,1,1], input %n: f32[1,1,1,1]) {{\n{}}}\n", shape, normalization(shape)));
}

TEST(SplitReductions, ChangeNoValue) {
  Graph graph = normalizing("32");
  std::vector<double> values(32 * 16 * 16 * 16);
  double number = 0;
  for (double& value : values) value = 3 + std::sin(number += 0.7);
  const std::vector<double> count = {32 * 16 * 16}, little = {1e-6};
  const Feeds feeds = {{"x", Tensor::of<double>({32, 16, 16, 16}, std::span<const double>(values))},
                       {"c", Tensor::of<double>({1, 1, 1, 1}, std::span<const double>(count))},
                       {"n", Tensor::of<double>({1, 1, 1, 1}, std::span<const double>(little))}};
  const Tensor before = interpret(graph, feeds, Precision::kDouble)["y"];
  ASSERT_EQ(split_reductions(graph), Changed::kYes);
  const Tensor after = interpret(graph, feeds, Precision::kDouble)["y"];
  for (std::int64_t i = 0; i < before.element_count(); ++i) ASSERT_NEAR(after.at(i), before.at(i), 1e-10) << i;
}

TEST(SplitReductions, ChangeNoSumOfSquaresAroundAQuotientOfIntegers) {
  Graph graph = parse_graph(
      "graph g(input %x: i32[32,16,16,16], input %c: i32[1,1,1,1]) {\n%1: i32[1,1,1,16] = reduce_sum(%x) {axes=[0,1,2], keep_dims=true}\n%2: i32[1,1,1,16] = div(%1, %c)\n"
      "%3: i32[32,16,16,16] = sub(%x, %2)\n%4: i32[32,16,16,16] = mul(%3, %3)\n%5: i32[1,1,1,16] = reduce_sum(%4) {axes=[0,1,2], keep_dims=true}\noutput \"y\" %5\n}\n");
  std::vector<std::int32_t> values(32 * 16 * 16 * 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 37 % 11);
  const std::vector<std::int32_t> count = {32 * 16 * 16};
  const Feeds feeds = {{"x", Tensor::of<std::int32_t>({32, 16, 16, 16}, std::span<const std::int32_t>(values))},
                       {"c", Tensor::of<std::int32_t>({1, 1, 1, 1}, std::span<const std::int32_t>(count))}};
  const Tensor before = interpret(graph, feeds)["y"];
  ASSERT_EQ(split_reductions(graph), Changed::kYes);
  const Tensor after = interpret(graph, feeds)["y"];
  for (std::int64_t i = 0; i < before.element_count(); ++i) ASSERT_EQ(after.at(i), before.at(i)) << i;
}

TEST(SplitReductions, AVarianceNeedsNoSecondWalkOverTheTensor) {
  Graph graph = normalizing("N");
  ASSERT_EQ(split_reductions(graph), Changed::kYes);
  const Fusion fusion = fuse(graph);
  std::size_t walks = 0;  // kernels that read x
  for (const Group& group : fusion.groups) {
    bool reads = false;
    for (const NodeId member : group.members)
      for (const ValueId operand : fusion.graph.node(member).operands) reads = reads or (operand.valid() and fusion.graph.value(operand).name == "x");
    walks += reads;
  }
  EXPECT_EQ(walks, 2U) << "one for both statistics of each part, one that normalizes";
}

}  // namespace
}  // namespace hone
