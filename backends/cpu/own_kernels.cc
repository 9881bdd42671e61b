#include "backends/cpu/own_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "backends/library_rows.h"
#include "backends/llvm/blocking.h"
#include "ir/kernel/compute.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"

namespace hone {

namespace {

std::string better_matmul(const Graph& graph, const Node& node) {
  // Where b is transposed, all that one tile's columns need of it is packed; else what they need for all of the sum shares the second level cache with the rows'.
  constexpr std::int64_t kLongestSum = 4096, kLongestPackedSum = 2048;
  const bool ta = node.attrs[kTransA], tb = node.attrs[kTransB];
  if (ta and tb) return "";
  const Shape& a = graph.type(node.operands[0]).shape;
  const Dim sum = a[a.size() - (ta ? 2 : 1)];
  if (sum.is_constant() ? sum.value() > (tb ? kLongestPackedSum : kLongestSum) : tb) return "";
  return fmt::format("sums of {} products fit a tile in registers", sum.text());
}

bool all_are(const Ints& values, std::int64_t value) {
  return std::ranges::all_of(values, [value](std::int64_t one) { return one == value; });
}

/// Channels last: those along which windows slide in registers. Channels first: of stride 1, with rows long enough to be vectors.
std::string better_conv(const Graph& graph, const Node& node) {
  if (node.attrs[kChannelsLast]) return slides(kernel_of(graph, graph.value(node.results[0]).producer), kAvx512) ? "each element that is loaded serves all windows over it" : "";
  constexpr std::int64_t kShortestRow = 24, kMostProducts = 512, kFewChannels = 16;
  if (node.attrs[kGroups] != 1 or not all_are(node.attrs[kStrides], 1)) return "";
  const bool of_weight = *node.op == op::conv_weight_grad;
  const Shape& rows = graph.type(of_weight ? node.operands[1] : node.results[0]).shape;  // what a vector runs along
  const Shape& weight = graph.type(of_weight ? node.results[0] : node.operands[1]).shape;
  if (not rows.back().is_constant() or rows.back().value() < kShortestRow or not is_constant(weight)) return "";
  const std::int64_t window = element_count(Shape(weight.begin() + 2, weight.end())).value(), inputs = weight[1].value(), outputs = weight[0].value();
  if (of_weight) {
    const bool along_one_axis = rows.size() == 3;
    if (inputs > (along_one_axis ? kFewChannels : 1)) return "";
  } else if ((*node.op == op::conv ? inputs : outputs) * window > kMostProducts) {
    return "";
  }
  return fmt::format("rows of {} fill vectors without being reordered", rows.back().text());
}

std::int64_t product(const Ints& values) { return std::accumulate(values.begin(), values.end(), std::int64_t{1}, std::multiplies<>()); }

/// Max-pooling whose channels lie together: a window's elements are whole vectors where channels are many, and the gradient is one kernel with what follows it (a mask, a bias sum), which
/// saves a walk over the tensor. The library takes two to four times as long, of few channels, too. But where windows overlap much, each element's gradient is looked for in all of them.
std::string better_pool(const Graph& graph, const Node& node) {
  constexpr std::int64_t kLargestWindow = 16, kMostWindows = 4;  // larger windows are not written out
  if (not node.attrs[kChannelsLast] or product(node.attrs[kKernel]) > kLargestWindow or product(covers(node.attrs)) > kMostWindows) return "";
  return fmt::format("its {} channels lie together", graph.type(node.operands[0]).shape.back().text());
}

}  // namespace

std::string better_as_kernel(const Graph& graph, const Node& node) {
  if (not node.operands.empty() and graph.type(node.operands[0]).dtype == DType::kBF16)
    return *node.op == op::matmul ? too_few_products(graph, node) : "";  // else the library's, whose instructions take 16 to 32 times as many terms at once as f32's
  if (*node.op == op::matmul) return better_matmul(graph, node);
  if (*node.op == op::conv or *node.op == op::conv_input_grad or *node.op == op::conv_weight_grad) return better_conv(graph, node);
  if (*node.op == op::max_pool or *node.op == op::max_pool_grad) return better_pool(graph, node);
  return "";
}

/// Enough for four threads; each part is written and read once more than a single sum. Threads beyond that share a part's sums.
std::int64_t parts_of_own_gradient(const Graph& graph, NodeId id) {
  constexpr std::int64_t kParts = 4, kFewerParts = 2, kManyElements = 1 << 16;
  const Node& node = graph.node(id);
  if (*node.op != op::conv_weight_grad or not node.attrs[kRow].empty() or not slides(kernel_of(graph, id), kAvx512)) return 1;
  const std::int64_t parts = element_count(graph.type(node.results[0]).shape).value() > kManyElements ? kFewerParts : kParts;
  const Dim& samples = graph.type(node.operands[1]).shape[0];
  return samples.is_constant() and samples.value() < parts ? 1 : parts;
}

}  // namespace hone
