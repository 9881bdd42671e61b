// Elementwise fusion: what may be one kernel, what may not, and that a fused schedule computes what the graph says.
#include "backends/fuse.h"

#include <gtest/gtest.h>

#include "backends/schedule.h"
#include "ir/op.h"
#include "ir/parse.h"

namespace hone {
namespace {

/// Sizes of the groups in the order in which they run, as "3 1 2".
std::string group_sizes(const Graph& graph) {
  const Fusion fusion = fuse_elementwise(graph);
  std::string text;
  for (std::size_t i = 0; i < graph.node_count(); ++i)
    if (fusion.runs_at(NodeId(i)) == NodeId(i)) text += (text.empty() ? "" : " ") + std::to_string(fusion.group(NodeId(i)).size());
  return text;
}

std::string groups_of(const std::string& body) { return group_sizes(parse_graph("graph g(input %x: f32[N,8], input %b: f32[8]) {\n" + body + "}\n", "test")); }

plan::Entry scheduled(const Graph& graph, KernelSet& kernels) {
  PersistentSet persistents;
  return schedule(graph, kernels, persistents, [](const Graph& g, const Input& input) {
    plan::Feed feed;
    feed.name = input.name;
    feed.dtype = g.type(input.value).dtype;
    feed.shape = g.type(input.value).shape;
    return feed;
  });
}

TEST(Fuse, AChainIsOneKernel) {
  EXPECT_EQ(groups_of("%1: f32[N,8] = add(%x, %b)\n%2: f32[N,8] = relu(%1)\n%3: f32[N,8] = exp(%2)\noutput \"y\" %3\n"), "3");
}

TEST(Fuse, AReductionEndsAGroup) {
  EXPECT_EQ(groups_of("%1: f32[N,8] = exp(%x)\n%2: f32[N] = reduce_sum(%1) {axes=[1]}\n%3: f32[N] = log(%2)\noutput \"y\" %3\n"), "1 1 1");
}

TEST(Fuse, ANodeThatAnOutsiderReadsFirstCannotBeExtended) {
  // %2 stands between: were %1 and %3 one kernel, it would run after %2, which reads %1.
  EXPECT_EQ(groups_of("%1: f32[N,8] = exp(%x)\n%2: f32[N] = reduce_sum(%1) {axes=[1]}\n%3: f32[N,8] = neg(%1)\noutput \"a\" %2\noutput \"b\" %3\n"), "1 1 1");
}

TEST(Fuse, OtherIndexSpacesStayApart) {
  EXPECT_EQ(groups_of("%1: f32[8] = exp(%b)\n%2: f32[N,8] = add(%x, %1)\noutput \"y\" %2\n"), "1 1");
}

TEST(Fuse, IndependentNodesStayApart) {
  EXPECT_EQ(groups_of("%1: f32[N,8] = exp(%x)\n%2: f32[N,8] = neg(%x)\noutput \"a\" %1\noutput \"b\" %2\n"), "1 1");
}

TEST(Fuse, AMemberThatIsReadOutsideIsStoredToo) {
  const Graph graph = parse_graph("graph g(input %x: f32[N,8]) {\n%1: f32[N,8] = exp(%x)\n%2: f32[N,8] = neg(%1)\noutput \"a\" %1\noutput \"b\" %2\n}\n", "test");
  KernelSet kernels;
  const plan::Entry entry = scheduled(graph, kernels);
  ASSERT_EQ(entry.steps.size(), 1U);
  ASSERT_EQ(kernels.kernels().size(), 1U);
  EXPECT_EQ(print(kernels.kernels()[0]).find("y1[") != std::string::npos and print(kernels.kernels()[0]).find("y2[") != std::string::npos, true) << print(kernels.kernels()[0]);
}

TEST(Fuse, AStateIsUpdatedInPlaceByTheKernelThatReadsIt) {
  const Graph graph = parse_graph(
      "graph g(input %x: f32[4], weight %w: f32[4] = [1, 2, 3, 4]) {\n%1: f32[4] = mul(%x, %w)\n%2: f32[4] = sub(%w, %1)\noutput \"y\" %1\nalias %w <- %2\n}\n", "test");
  KernelSet kernels;
  const plan::Entry entry = scheduled(graph, kernels);
  EXPECT_EQ(entry.steps.size(), 1U) << "no copy at the end";
}

TEST(Fuse, AStateThatIsReadLaterIsCopiedAtTheEnd) {
  const Graph graph = parse_graph(
      "graph g(input %x: f32[4], weight %w: f32[4] = [1, 2, 3, 4]) {\n%1: f32[4] = sub(%w, %x)\n%2: f32[] = reduce_sum(%w) {axes=[0]}\noutput \"y\" %2\nalias %w <- %1\n}\n", "test");
  KernelSet kernels;
  const plan::Entry entry = scheduled(graph, kernels);
  ASSERT_EQ(entry.steps.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<plan::CopyStep>(entry.steps.back().what));
}

}  // namespace
}  // namespace hone
