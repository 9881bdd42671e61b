// What kernels are said to compute and to move.
#include "backends/kernel_cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/kernel/compute.h"
#include "ir/parse.h"

namespace hone {
namespace {

KernelCost cost_of_node(const std::string& types, const std::string& node) {
  const Graph graph = parse_graph("graph g(" + types + ") {\n  " + node + "\n  output \"y\" %y\n}\n");
  return cost_of(kernel_of(graph, NodeId(0)));
}

TEST(KernelCost, OfAProductIsAMultiplicationAndAnAdditionForEachTerm) {
  const KernelCost cost = cost_of_node("input %x: f32[N,784], input %w: f32[784,10]", "%y: f32[N,10] = matmul(%x, %w)");
  EXPECT_EQ(cost.flops.text(), Dim::parse("15680*N").text());
  EXPECT_EQ(cost.bytes.text(), Dim::parse("3176*N + 31360").text()) << "4 bytes of each of N*784, 784*10 and N*10 elements";
}

TEST(KernelCost, OfAnElementwiseOpIsOneForEachElement) {
  const KernelCost cost = cost_of_node("input %x: f32[N,8], input %z: f32[8]", "%y: f32[N,8] = add(%x, %z)");
  EXPECT_EQ(cost.flops.text(), "8*N");
  EXPECT_EQ(cost.bytes.text(), Dim::parse("64*N + 32").text());
}

/// A window's position meets one output in four where strides are two, so the gradient is as much work as the convolution.
TEST(KernelCost, OfAnInputsGradientIsWhatStridesLetMeet) {
  const std::string attributes = "{strides=[2,2], pads_begin=[1,1], pads_end=[1,1], dilations=[1,1], groups=1";
  const KernelCost forward = cost_of_node("input %x: f32[N,4,8,8], input %w: f32[6,4,3,3]", "%y: f32[N,6,4,4] = conv(%x, %w) " + attributes + "}");
  const KernelCost backward = cost_of_node("input %dy: f32[N,6,4,4], input %w: f32[6,4,3,3]", "%y: f32[N,4,8,8] = conv_input_grad(%dy, %w) " + attributes + ", spatial=[8,8]}");
  EXPECT_EQ(forward.flops.text(), fmt::format("{}*N", 2 * 6 * 16 * 4 * 9));
  EXPECT_EQ(backward.flops.text(), forward.flops.text());
}

TEST(KernelCost, OfALookUpIsTheRowsThatAreRead) {
  const KernelCost few = cost_of_node("input %x: f32[50000,64], input %i: i64[100]", "%y: f32[100,64] = gather(%x, %i)");
  EXPECT_EQ(few.bytes.value(), 4 * 2 * 100 * 64 + 8 * 100) << "not all of the table";
  const KernelCost all = cost_of_node("input %x: f32[50,64], input %i: i64[100]", "%y: f32[100,64] = gather(%x, %i)");
  EXPECT_EQ(all.bytes.value(), 4 * (50 + 100) * 64 + 8 * 100) << "each element once";
}

}  // namespace
}  // namespace hone
