// Reductions over axes, and the position of an extremum.
#include <fmt/format.h>

#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// The axes to reduce: those given; without any all of them, or none if the node says so.
Ints reduced_axes(const ImportNode& node) {
  const std::size_t rank = node.x(0).rank();
  Ints axes;
  if (node.has(1)) axes = node.axes(node.numbers(1, "axes"), rank);
  if (not axes.empty() or node.flag("noop_with_empty_axes", false)) return axes;
  for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

bool keeps_dims(const ImportNode& node) { return node.flag("keepdims", true); }

/// `x`, which was made of operand 0, reduced as the node says.
Val reduced(const ImportNode& node, const OpDef& op, Val x) {
  const Ints axes = reduced_axes(node);
  if (axes.empty()) return x;
  return op(x, {kAxes = axes, kKeepDims = keeps_dims(node)});
}

Val total(const ImportNode& node, Val x) { return reduced(node, op::reduce_sum, x); }

/// Small integers and bool are compared as i64, which holds all of them.
template <Val (*kReduce)(const ImportNode&, Val)>
std::vector<Val> import_extremum(const ImportNode& node) {
  const Val x = node.x(0);
  const Val wide = is_float(x.dtype()) or x.dtype() == DType::kU64 ? x : cast(x, DType::kI64);
  return {cast(kReduce(node, wide), x.dtype())};
}
Val largest(const ImportNode& node, Val x) { return reduced(node, op::reduce_max, x); }
Val smallest(const ImportNode& node, Val x) { return -largest(node, -x); }

/// log of the sum of e^x, from which the largest x is taken away first, so that e^x cannot overflow; an infinite one is left in.
std::vector<Val> import_log_sum_exp(const ImportNode& node) {
  const Val x = node.x(0);
  const Ints axes = reduced_axes(node);
  if (axes.empty()) return {x};
  const Val largest = op::stop_gradient(op::reduce_max(x, {kAxes = axes, kKeepDims = true}));
  const Val shift = op::where(op::is_finite(largest), largest, node.builder().scalar(0, x.dtype()));
  const Val result = op::log(sum(op::exp(x - shift), axes, true)) + shift;
  if (keeps_dims(node)) return {result};
  Shape shape;
  for (std::size_t i = 0, next = 0; i < x.rank(); ++i) {
    if (next < axes.size() and axes[next] == static_cast<std::int64_t>(i)) ++next;
    else shape.push_back(x.shape()[i]);
  }
  return {reshape(result, shape)};
}

/// Position of the first (or last) largest element.
Val position_of_largest(const ImportNode& node, Val x) {
  const std::size_t axis = node.axis(node.integer("axis", 0), x.rank());
  const Attrs along = {kAxis = static_cast<std::int64_t>(axis)};
  Val position;
  if (node.flag("select_last_index", false)) {
    Shape starts(x.rank(), Dim(0));
    Ints steps(x.rank(), 1);
    starts[axis] = x.shape()[axis] - 1;
    steps[axis] = -1;
    const Val reversed = op::slice(x, {kStarts = starts, kSizes = x.shape(), kSteps = steps});
    position = size_value(node.builder(), x.shape()[axis] - 1, DType::kI64) - op::argmax(reversed, along);
  } else {
    position = op::argmax(x, along);
  }
  if (not keeps_dims(node)) return position;
  Shape shape = x.shape();
  shape[axis] = 1;
  return reshape(position, shape);
}

Val widened(Val x) { return is_float(x.dtype()) ? x : cast(x, DType::kI64); }

constinit const Importer kRows[] = {
    {"ReduceSum", [](const ImportNode& node) { return std::vector<Val>{total(node, node.x(0))}; }},
    {"ReduceMean", [](const ImportNode& node) { return std::vector<Val>{reduced(node, op::reduce_mean, node.x(0))}; }},
    {"ReduceMax", import_extremum<largest>},
    {"ReduceMin", import_extremum<smallest>},
    {"ReduceSumSquare", [](const ImportNode& node) { return std::vector<Val>{total(node, square(node.x(0)))}; }},
    {"ReduceL1", [](const ImportNode& node) { return std::vector<Val>{total(node, op::abs(node.x(0)))}; }},
    {"ReduceL2", [](const ImportNode& node) { return std::vector<Val>{op::sqrt(total(node, square(node.x(0))))}; }},
    {"ReduceLogSum", [](const ImportNode& node) { return std::vector<Val>{op::log(total(node, node.x(0)))}; }},
    {"ReduceLogSumExp", import_log_sum_exp},
    {"ArgMax", [](const ImportNode& node) { return std::vector<Val>{position_of_largest(node, widened(node.x(0)))}; }},
    {"ArgMin", [](const ImportNode& node) { return std::vector<Val>{position_of_largest(node, -widened(node.x(0)))}; }},
};

}  // namespace

std::span<const Importer> reduce_importers() { return kRows; }

}  // namespace hone::onnx
