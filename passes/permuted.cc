#include "passes/permuted.h"

#include <algorithm>

#include "ir/ops/ops.h"

namespace hone {

namespace {

Attrs permute_reduction(const Attrs& attrs, const AxisOrder& order) {
  Ints axes;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (std::ranges::find(attrs[kAxes], order[i]) != attrs[kAxes].end()) axes.push_back(static_cast<std::int64_t>(i));
  Attrs permuted = attrs;
  permuted.set(kAxes = axes);
  return permuted;
}

Attrs permute_axis(const Attrs& attrs, const AxisOrder& order) { return {kAxis = std::ranges::find(order, attrs[kAxis]) - order.begin()}; }

Attrs permute_shape(const Attrs& attrs, const AxisOrder& order) { return {kShape = in_order(attrs[kShape], order)}; }

Attrs permute_ranges(const Attrs& attrs, const AxisOrder& order) {
  Ints steps;
  for (const std::int64_t axis : order) steps.push_back(attrs[kSteps][static_cast<std::size_t>(axis)]);
  return {kStarts = in_order(attrs[kStarts], order), kSizes = in_order(attrs[kSizes], order), kSteps = steps};
}

struct PermutingRow {
  const OpDef* op;
  Attrs (*permute)(const Attrs& attrs, const AxisOrder& order);
};
/// Elementwise ops have no attributes that name axes.
constexpr PermutingRow kPermutingRows[] = {
    {&op::reduce_sum, permute_reduction}, {&op::reduce_prod, permute_reduction}, {&op::reduce_max, permute_reduction}, {&op::reduce_min, permute_reduction},
    {&op::concat, permute_axis},          {&op::broadcast_to, permute_shape},    {&op::slice, permute_ranges},         {&op::pad, permute_ranges},
};

const PermutingRow* find_permuting_row(const OpDef& op) {
  const PermutingRow* found = std::ranges::find_if(kPermutingRows, [&](const PermutingRow& row) { return *row.op == op; });
  return found == std::end(kPermutingRows) ? nullptr : found;
}

}  // namespace

bool may_be_permuted(const Node& node) {
  return not node.operands.empty() and node.results.size() == 1 and (node.op->scalar != nullptr or find_permuting_row(*node.op) != nullptr);
}

Attrs permuted_attributes(const Node& node, const AxisOrder& order) {
  const PermutingRow* row = find_permuting_row(*node.op);
  return row == nullptr ? node.attrs : row->permute(node.attrs, order);
}

}  // namespace hone
