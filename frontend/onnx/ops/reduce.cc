// Reductions over axes, and the position of an extremum.
#include <fmt/format.h>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/fed_axes.h"
#include "frontend/onnx/ops/norm.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

Val power(Val x, double p) { return p == 1 ? x : p == 2 ? square(x) : op::pow(x, x.builder().scalar(p, x.dtype())); }

Val root(Val x, double p) {
  if (p == 1) return x;
  const Val zero = x.builder().scalar(0, x.dtype()), is_zero = op::equal(x, zero), safe = op::where(is_zero, x.builder().scalar(1, x.dtype()), x);
  return op::where(is_zero, zero, p == 2 ? op::sqrt(safe) : op::pow(safe, x.builder().scalar(1 / p, x.dtype())));
}

double norm_order(const ImportNode& node) {
  const std::int64_t p = node.integer("p", 2);
  node.require(p >= 1, Code::kBadAttribute, fmt::format("p = {}", p));
  return static_cast<double>(p);
}

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

/// How a node reduces: tensors of `operand` shape over `axes` to `result` shape. Fed axes are split, and each axis reduced by its second half.
struct Reduction {
  Shape operand, result;
  Ints axes;

  explicit Reduction(const ImportNode& node) : operand(node.x(0).shape()) {
    const std::size_t rank = operand.size();
    if (node.is_fed(1)) {
      const FedAxes fed(node, node.x(1), rank);
      const Shape whole = operand;
      operand = fed.split(whole);
      for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(2 * i + 1));
      for (std::size_t i = 0; keeps_dims(node) and i < rank; ++i) result.push_back(operand[2 * i]);
      if (not keeps_dims(node)) result = fed.without(whole);
      return;
    }
    axes = reduced_axes(node);
    for (std::size_t i = 0, next = 0; i < rank; ++i) {
      const bool is_reduced = next < axes.size() and axes[next] == static_cast<std::int64_t>(i);
      next += is_reduced;
      if (not is_reduced or keeps_dims(node)) result.push_back(is_reduced ? Dim(1) : operand[i]);
    }
  }
};

/// `x`, which was made of operand 0, reduced as the node says.
Val reduced(const ImportNode& node, const OpDef& op, Val x) {
  const Reduction how(node);
  if (how.axes.empty()) return x;
  return reshape(op(reshape(x, how.operand), {kAxes = how.axes, kKeepDims = keeps_dims(node) and not node.is_fed(1)}), how.result);
}

Val total(const ImportNode& node, Val x) { return reduced(node, op::reduce_sum, x); }

/// Small integers and bool are compared as i64, which holds all of them.
Val widened_integer(Val x) { return is_float(x.dtype()) or x.dtype() == DType::kU64 ? x : cast(x, DType::kI64); }

template <Val (*kReduce)(const ImportNode&, Val)>
std::vector<Val> import_extremum(const ImportNode& node) {
  const Val x = node.x(0);
  return {cast(kReduce(node, widened_integer(x)), x.dtype())};
}
Val largest(const ImportNode& node, Val x) { return reduced(node, op::reduce_max, x); }
Val smallest(const ImportNode& node, Val x) { return reduced(node, op::reduce_min, x); }

/// Half floats are reduced as f32.
Val widened_half(Val x) { return x.dtype() == DType::kF16 or x.dtype() == DType::kBF16 ? cast(x, DType::kF32) : x; }

/// The square root of the sum of squares; of integers, truncated.
std::vector<Val> import_l2(const ImportNode& node) {
  const Val x = node.x(0), wide = is_float(x.dtype()) ? widened_half(x) : cast(x, DType::kF64);
  return {cast(root(total(node, square(wide)), 2), x.dtype())};
}

std::vector<Val> import_lp_normalization(const ImportNode& node) {
  const Val x = node.x(0), wide = widened_half(x);
  const auto axis = static_cast<std::int64_t>(node.axis(node.integer("axis", -1), x.rank()));
  const double p = norm_order(node);
  const Val powers = sum(power(op::abs(wide), p), {axis}, true);
  const Val zero = x.builder().scalar(0, wide.dtype()), one = x.builder().scalar(1, wide.dtype());
  return {cast(wide / root(op::where(op::equal(powers, zero), one, powers), p), x.dtype())};  // all 0 stay so
}

std::vector<Val> import_global_lp_pool(const ImportNode& node) {
  const Val x = node.x(0), wide = widened_half(x);
  node.require(x.rank() >= 2, Code::kShape, "needs batch, channels and spatial axes");
  Ints axes;
  for (std::size_t i = 2; i < x.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  const double p = norm_order(node);
  return {cast(root(sum(power(op::abs(wide), p), axes, true), p), x.dtype())};
}

/// log of the sum of e^x, from which the largest x is taken away first, so that e^x cannot overflow; an infinite one is left in.
std::vector<Val> import_log_sum_exp(const ImportNode& node) {
  const Val x = node.x(0);
  const Reduction how(node);
  if (how.axes.empty()) return {x};
  const Val apart = reshape(x, how.operand);
  const Val largest = op::stop_gradient(op::reduce_max(apart, {kAxes = how.axes, kKeepDims = true}));
  const Val shift = op::where(op::is_finite(largest), largest, node.builder().scalar(0, x.dtype()));
  return {reshape(op::log(sum(op::exp(apart - shift), how.axes, true)) + shift, how.result)};
}

/// Position of the first (or last) extremum that `op` finds.
std::vector<Val> import_position(const ImportNode& node, const OpDef& op) {
  const Val x = widened_integer(node.x(0));
  const std::size_t axis = node.axis(node.integer("axis", 0), x.rank());
  const Attrs along = {kAxis = static_cast<std::int64_t>(axis)};
  Val position;
  if (node.flag("select_last_index", false)) {
    Shape starts(x.rank(), Dim(0));
    Ints steps(x.rank(), 1);
    starts[axis] = x.shape()[axis] - 1;
    steps[axis] = -1;
    const Val reversed = op::slice(x, {kStarts = starts, kSizes = x.shape(), kSteps = steps});
    position = size_value(node.builder(), x.shape()[axis] - 1, DType::kI64) - op(reversed, along);
  } else {
    position = op(x, along);
  }
  if (not keeps_dims(node)) return {position};
  Shape shape = x.shape();
  shape[axis] = 1;
  return {reshape(position, shape)};
}

constinit const Importer kReduceOps[] = {
    {"ReduceSum", [](const ImportNode& node) { return std::vector<Val>{total(node, node.x(0))}; }},
    {"ReduceMean", [](const ImportNode& node) { return std::vector<Val>{reduced(node, op::reduce_mean, node.x(0))}; }},
    {"ReduceMax", import_extremum<largest>},
    {"ReduceMin", import_extremum<smallest>},
    {"ReduceSumSquare", [](const ImportNode& node) { return std::vector<Val>{total(node, square(node.x(0)))}; }},
    {"ReduceL1", [](const ImportNode& node) { return std::vector<Val>{total(node, op::abs(node.x(0)))}; }},
    {"ReduceL2", import_l2},
    {"ReduceProd", [](const ImportNode& node) { return std::vector<Val>{reduced(node, op::reduce_prod, node.x(0))}; }},
    {"ReduceLogSum", [](const ImportNode& node) { return std::vector<Val>{op::log(total(node, node.x(0)))}; }},
    {"ReduceLogSumExp", import_log_sum_exp},
    {"ArgMax", [](const ImportNode& node) { return import_position(node, op::argmax); }},
    {"ArgMin", [](const ImportNode& node) { return import_position(node, op::argmin); }},
    {"LpNormalization", import_lp_normalization},
    {"GlobalLpPool", import_global_lp_pool},
};

}  // namespace

std::span<const Importer> reduce_importers() { return kReduceOps; }

}  // namespace hone::onnx
