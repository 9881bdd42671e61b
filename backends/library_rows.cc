#include "backends/library_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/ops.h"

namespace hone {

RowChoice choose_among(std::span<const TargetRow> rows, const Graph& graph, NodeId id, std::string (*better_as_kernel)(const Graph&, const Node&)) {
  const Node& node = graph.node(id);
  std::string reasons = "no library row for this op";
  for (const TargetRow& row : rows) {
    if (*row.op != *node.op) continue;
    reasons = row.accepts(graph, node);
    if (reasons.empty()) reasons = better_as_kernel(graph, node);
    if (reasons.empty()) return {std::string(row.row), ""};
    reasons = fmt::format("{}: {}", row.row, reasons);
  }
  return {"", reasons};
}

std::string fits_matmul(const Graph& graph, const Node& node) {
  const Shape &a = graph.type(node.operands[0]).shape, &b = graph.type(node.operands[1]).shape;
  const std::size_t rank = std::max(a.size(), b.size());
  for (std::size_t i = 2; i < rank; ++i) {  // leading axes, from the last
    const bool has_a = i < a.size(), has_b = i < b.size();
    if (has_a and has_b and a[a.size() - 1 - i] != b[b.size() - 1 - i] and not a[a.size() - 1 - i].is_constant(1) and not b[b.size() - 1 - i].is_constant(1))
      return "leading axes whose extents are not known to be equal";
  }
  return rank > 6 ? "more than 6 axes" : "";
}

std::string fits_conv(const Node& node) {
  const std::size_t spatial = node.attrs[kStrides].size();
  if (spatial < 1 or spatial > 3) return fmt::format("{} spatial axes: the row has 1 to 3", spatial);
  const auto is_negative = [](const Dim& pad) { return pad.is_constant() and pad.value() < 0; };
  const bool has_negative = std::ranges::any_of(node.attrs[kPadsBegin], is_negative) or std::ranges::any_of(node.attrs[kPadsEnd], is_negative);
  return has_negative ? "a negative pad" : "";
}

std::int64_t products_of(const Graph& graph, const Node& node) {
  constexpr std::int64_t kTypicalSize = 64;
  const auto count = [&](ValueId value) { return element_count(graph.type(value).shape); };
  if (*node.op == op::matmul) {
    const Shape& a = graph.type(node.operands[0]).shape;
    return (count(node.results[0]) * a[a.size() - (node.attrs[kTransA] ? 2 : 1)]).guess(kTypicalSize);
  }
  const bool of_weight = *node.op == op::conv_weight_grad;
  const ValueId weight = of_weight ? node.results[0] : node.operands[1], y = of_weight ? node.operands[1] : *node.op == op::conv ? node.results[0] : node.operands[0];
  const Shape& shape = graph.type(weight).shape;  // [O, C / groups, k..]: each element of y takes all that its channel has
  return (count(y) * element_count(Shape(shape.begin() + 1, shape.end()))).guess(kTypicalSize);
}

std::string too_few_products(const Graph& graph, const Node& node) {
  constexpr std::int64_t kFewProducts = 1 << 16;
  const std::int64_t products = products_of(graph, node);
  return products < kFewProducts ? fmt::format("{} products take less time than a call", products) : "";
}

}  // namespace hone
