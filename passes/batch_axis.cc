#include "passes/batch_axis.h"

#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/random.h"

namespace hone {

namespace {

/// A node being lifted. In `shape` and `rank` operands are what they are in the body.
struct Lifting {
  Builder& builder;
  const Graph& body;
  const Node& node;
  const std::vector<Lifted>& operands;
  Dim trips;

  const Shape& shape(std::size_t i) const { return body.type(node.operands[i]).shape; }
  const Shape& result_shape() const { return body.type(node.results[0]).shape; }
  /// `shape` with the new axis.
  Shape with_trips(Shape shape) const {
    shape.insert(shape.begin(), trips);
    return shape;
  }
  /// Operand i such that it broadcasts as it did when the result has `rank` axes and the new one: behind that come ones.
  Val aligned(std::size_t i, std::size_t rank) const {
    if (not operands[i].stacked) return operands[i].value;
    Shape aligned = shape(i);
    aligned.insert(aligned.begin(), rank - aligned.size(), Dim(1));
    return reshape(operands[i].value, with_trips(std::move(aligned)));
  }
  Val build(std::vector<Val> values, Attrs attrs) const { return builder.add(*node.op, values, std::move(attrs))[0]; }
};

using Fits = bool (*)(const Attrs& attrs, const std::vector<bool>& stacked);
using Lift = Val (*)(const Lifting&);

bool always(const Attrs&, const std::vector<bool>&) { return true; }

/// Operands broadcast from their last axes on.
Val lift_broadcasting(const Lifting& l) {
  std::vector<Val> values;
  for (std::size_t i = 0; i < l.operands.size(); ++i) values.push_back(l.aligned(i, l.result_shape().size()));
  return l.build(std::move(values), l.node.attrs);
}

/// An attribute that counts axes counts one more.
Val lift_with_axis(const Lifting& l) {
  Attrs attrs = l.node.attrs;
  attrs.set(kAxis = attrs[kAxis] + 1);
  std::vector<Val> values;
  for (std::size_t i = 0; i < l.operands.size(); ++i) values.push_back(stacked(l.operands[i], l.trips));
  return l.build(std::move(values), std::move(attrs));
}

Val lift_reduction(const Lifting& l) {
  Ints axes = l.node.attrs[kAxes];
  for (std::int64_t& axis : axes) ++axis;
  Attrs attrs = l.node.attrs;
  attrs.set(kAxes = std::move(axes));
  return l.build({l.operands[0].value}, std::move(attrs));
}

Val lift_reshape(const Lifting& l) { return reshape(l.operands[0].value, l.with_trips(l.result_shape())); }

Val lift_broadcast_to(const Lifting& l) { return broadcast_to(l.aligned(0, l.result_shape().size()), l.with_trips(l.result_shape())); }

Val lift_transpose(const Lifting& l) {
  Ints perm = {0};
  for (const std::int64_t axis : l.node.attrs[kPerm]) perm.push_back(axis + 1);
  return transpose(l.operands[0].value, std::move(perm));
}

/// slice and pad take the new axis whole.
Val lift_range(const Lifting& l) {
  Attrs attrs = l.node.attrs;
  Ints steps = attrs[kSteps];
  Shape starts = attrs[kStarts];
  steps.insert(steps.begin(), 1);
  starts.insert(starts.begin(), Dim(0));
  attrs.set(kSteps = std::move(steps));
  attrs.set(kStarts = std::move(starts));
  attrs.set(kSizes = l.with_trips(attrs[kSizes]));
  return l.build({l.operands[0].value}, std::move(attrs));
}

/// The axes of the index come first in the result only if they stand for axis 0.
bool fits_gather(const Attrs& attrs, const std::vector<bool>& stacked) { return not stacked[0] and attrs[kAxis] == 0; }
Val lift_gather(const Lifting& l) { return l.build({l.operands[0].value, l.operands[1].value}, l.node.attrs); }

Val lift_one_hot(const Lifting& l) { return l.build({l.operands[0].value}, {kShape = l.with_trips(l.node.attrs[kShape])}); }

struct LiftingRow {
  const OpDef* op;
  Fits fits;
  Lift lift;
};

constexpr LiftingRow kLiftingRows[] = {
    {&op::matmul, always, lift_broadcasting},  {&op::reduce_sum, always, lift_reduction}, {&op::reduce_prod, always, lift_reduction},
    {&op::reduce_max, always, lift_reduction}, {&op::reduce_min, always, lift_reduction}, {&op::argmax, always, lift_with_axis},
    {&op::argmin, always, lift_with_axis},     {&op::reshape, always, lift_reshape},      {&op::broadcast_to, always, lift_broadcast_to},
    {&op::transpose, always, lift_transpose},  {&op::slice, always, lift_range},          {&op::pad, always, lift_range},
    {&op::concat, always, lift_with_axis},     {&op::gather, fits_gather, lift_gather},   {&op::gather_elements, always, lift_with_axis},
    {&op::one_hot, always, lift_one_hot},
};

constexpr LiftingRow kElementwise = {nullptr, always, lift_broadcasting};

const LiftingRow* row_of(const OpDef& op) {
  if (op.scalar != nullptr) return &kElementwise;
  const LiftingRow* found = std::find_if(std::begin(kLiftingRows), std::end(kLiftingRows), [&](const LiftingRow& row) { return *row.op == op; });
  return found == std::end(kLiftingRows) ? nullptr : found;
}

bool is_plain(const Node& node) { return (node.op->scalar != nullptr or node.op->compute != nullptr) and not draws(*node.op) and not node.op->collective; }

}  // namespace

bool can_lift(const Node& node, const std::vector<bool>& stacked) {
  if (not is_plain(node)) return false;
  if (std::find(stacked.begin(), stacked.end(), true) == stacked.end()) return true;
  const LiftingRow* row = row_of(*node.op);
  return row != nullptr and row->fits(node.attrs, stacked);
}

std::vector<Lifted> lift(Builder& builder, const Graph& body, const Node& node, const std::vector<Lifted>& operands, Dim trips) {
  const Builder::Scope scope(builder, node.loc, node.part);
  if (std::any_of(operands.begin(), operands.end(), [](const Lifted& operand) { return operand.stacked; }))
    return {{row_of(*node.op)->lift({builder, body, node, operands, trips}), true}};
  std::vector<Val> values;
  for (const Lifted& operand : operands) values.push_back(operand.value);
  std::vector<Lifted> results;
  for (const Val& result : builder.add(*node.op, values, node.attrs)) results.push_back({result, false});
  return results;
}

Val stacked(const Lifted& lifted, Dim trips) {
  if (lifted.stacked) return lifted.value;
  Shape shape = lifted.value.shape();
  shape.insert(shape.begin(), trips);
  return broadcast_to(lifted.value, std::move(shape));
}

}  // namespace hone
