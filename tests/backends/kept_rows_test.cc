// What several phases work out is kept for the length of a row, where that is known and short; results are the interpreter's either way.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/kernel/fused.h"
#include "ir/parse.h"
#include "tests/backends/kernel_case.h"

namespace hone {
namespace {

/// softmax over rows of `length` elements, as one kernel whose phases share their inner axis. `axes`: how the row is split among axes, "64" or "4,16".
Kernel softmax(const std::string& axes, const std::string& reduced, const std::string& kept) {
  const Graph graph = parse_graph(fmt::format("graph g(input %x: f32[N,{0}]) {{\n%1: f32[N,{2}] = reduce_max(%x) {{axes=[{1}], keep_dims=true}}\n%2: f32[N,{0}] = sub(%x, %1)\n"
                                              "%3: f32[N,{0}] = exp(%2)\n%4: f32[N,{2}] = reduce_sum(%3) {{axes=[{1}], keep_dims=true}}\n%5: f32[N,{0}] = div(%3, %4)\noutput \"y\" %5\n}}\n",
                                              axes, reduced, kept),
                                  "test");
  NodeKernels kernels(graph);
  std::vector<NodeId> members;
  for (std::size_t i = 0; i < graph.node_count(); ++i) members.emplace_back(i);
  const ValueId stored[] = {graph.outputs()[0].value};
  FusedKernel fused = fused_kernel(kernels, members, stored);
  EXPECT_EQ(fused.why_not, "");
  EXPECT_EQ(fused.kernel.phases.size(), 3U);
  return std::move(fused.kernel);
}

const std::vector<DimBindings> kSizes = {{{"N", 0}, {"M", 5}}, {{"N", 1}, {"M", 70}}, {{"N", 9}, {"M", 33}}};

TEST(KeptRows, OfKnownLength) {
  for (const char* length : {"16", "64", "100", "4096"}) {
    const Kernel kernel = softmax(length, "1", "1");
    expect_agrees(kernel, {.sizes = kSizes});
    EXPECT_THAT(optimized(kernel), testing::HasSubstr(fmt::format("[{} x float]", length)));
  }
}

TEST(KeptRows, OverTwoAxes) {
  const Kernel kernel = softmax("4,16", "1,2", "1,1");
  expect_agrees(kernel, {.sizes = kSizes});
  EXPECT_THAT(optimized(kernel), testing::HasSubstr("[64 x float]"));
}

TEST(KeptRows, LongOrUnknownOnesAreWorkedOutAgain) {
  for (const char* length : {"4097", "M"}) {
    const Kernel kernel = softmax(length, "1", "1");
    expect_agrees(kernel, {.sizes = kSizes});
    EXPECT_THAT(optimized(kernel), testing::Not(testing::ContainsRegex("alloca \\[[0-9]+ x float\\]")));
  }
}

}  // namespace
}  // namespace hone
