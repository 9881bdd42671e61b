// Convolutions' weight gradients in parts over the samples: which are, that no value changes, and that each part is a kernel whose image slides.
#include "backends/split_weight_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/cpu_target.h"
#include "backends/fuse.h"
#include "backends/llvm/blocking.h"
#include "base/tensor.h"
#include "ir/kernel/compute.h"
#include "ir/kernel/interpret.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "tests/backends/kernel_case.h"

namespace hone {
namespace {

Graph gradient(const std::string& x, const std::string& dy, const std::string& w, const std::string& more = "channels_last=true, ") {
  return parse_graph("graph g(input %x: f32" + x + ", input %dy: f32" + dy + ") {\n%1: f32" + w + " = conv_weight_grad(%x, %dy) {" + more +
                     "dilations=[1,1], groups=1, pads_begin=[1,1], pads_end=[1,1], strides=[1,1], kernel=[3,3]}\noutput \"dw\" %1\n}\n");
}

std::int64_t parts_of(Graph graph) {
  (void)split_weight_gradients(graph, CpuTarget());
  verify(graph);
  for (const Node& node : graph.nodes())
    if (*node.op == op::conv_weight_grad_parts) return node.attrs[kParts];
  return 1;
}

TEST(SplitWeightGradients, OfConvolutionsThatAreKernelsOfOurOwn) {
  EXPECT_EQ(parts_of(gradient("[N,32,32,16]", "[N,32,32,16]", "[16,16,3,3]")), 4);
  EXPECT_EQ(parts_of(gradient("[N,8,8,128]", "[N,8,8,128]", "[128,128,3,3]")), 2) << "a large weight, each part of which is written and read";
  EXPECT_EQ(parts_of(gradient("[3,32,32,16]", "[3,32,32,16]", "[16,16,3,3]")), 1) << "fewer samples than parts";
  EXPECT_EQ(parts_of(gradient("[N,16,32,32]", "[N,16,32,32]", "[16,16,3,3]", "")), 1) << "channels first";
  EXPECT_EQ(parts_of(gradient("[N,8,8,512]", "[N,8,8,512]", "[512,512,3,3]")), 1) << "the library's";
}

/// Samples that no part can have in equal number.
TEST(SplitWeightGradients, ChangeNoValue) {
  for (const std::int64_t samples : {1, 5, 8}) {
    Graph graph = gradient("[N,5,8,8]", "[N,5,8,16]", "[16,8,3,3]");
    const auto wave = [](std::vector<std::int64_t> shape) {
      std::vector<double> values(static_cast<std::size_t>(checked_element_count(shape)));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.7 * static_cast<double>(i + 1));
      return Tensor::of<double>(shape, std::span<const double>(values));
    };
    const Feeds feeds = {{"x", wave({samples, 5, 8, 8})}, {"dy", wave({samples, 5, 8, 16})}};
    const Tensor before = interpret(graph, feeds, Precision::kDouble)["dw"];
    ASSERT_EQ(split_weight_gradients(graph, CpuTarget()), Changed::kYes);
    verify(graph);
    const Tensor after = interpret(graph, feeds, Precision::kDouble)["dw"];
    ASSERT_EQ(after.shape(), before.shape());
    for (std::int64_t i = 0; i < before.element_count(); ++i) ASSERT_NEAR(after.at(i), before.at(i), 1e-10) << samples << " samples, element " << i;
  }
}

TEST(SplitWeightGradients, EachPartSlides) {
  Graph graph = gradient("[N,5,8,16]", "[N,5,8,32]", "[32,16,3,3]");
  (void)split_weight_gradients(graph, CpuTarget());
  Kernel kernel = kernel_of(graph, NodeId(0));
  kernel.name = "parts";
  EXPECT_TRUE(slides(kernel, kAvx512));
  EXPECT_TRUE(slides(kernel, kAvx2));
  expect_agrees(kernel, {.tolerance = 2e-4, .sizes = {{{"N", 0}}, {{"N", 1}}, {{"N", 3}}, {{"N", 6}}, {{"N", 8}}, {{"N", 11}}}});
  const Fusion fusion = fuse(graph);
  const auto is_work = [&](const Group& group) { return *fusion.graph.node(group.members.front()).op != op::reshape; };
  EXPECT_EQ(std::ranges::count_if(fusion.groups, is_work), 2) << "the parts, and what adds them up";
}

}  // namespace
}  // namespace hone
