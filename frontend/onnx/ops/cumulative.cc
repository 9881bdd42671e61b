// Running sums and products.
#include "ir/ops/cumulative.h"

#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/fed_axes.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// Half floats are summed as f32.
Val widened_float(Val x) { return x.dtype() == DType::kF16 or x.dtype() == DType::kBF16 ? cast(x, DType::kF32) : x; }

struct Run {
  Val x;  ///< operand 0; where the axis is fed, as [before it, the axis, behind it]
  std::size_t axis;
  bool exclusive, reverse;

  explicit Run(const ImportNode& node) : x(widened_float(node.x(0))), axis(1), exclusive(node.flag("exclusive", false)), reverse(node.flag("reverse", false)) {
    if (node.is_fed(1)) x = reshape(x, FedAxes(node, node.x(1), x.rank()).around(x.shape()));
    else axis = node.axis(node.numbers(1, "axis").at(0), x.rank());
  }
  Attrs attrs() const { return {kAxis = static_cast<std::int64_t>(axis), kReverse = reverse}; }
  /// x, or for an exclusive run x one element later: each result then leaves its own element out.
  Val begun(Val x) const { return exclusive ? moved(x, axis, reverse ? Move::kBack : Move::kForward) : x; }
  /// Is an element the one that the run begins with? Of extent 1 along the other axes.
  Val first(Val x) const {
    Shape shape(x.rank(), Dim(1));
    shape[axis] = x.shape()[axis];
    const Val position = x.builder().add(op::iota, {}, {kShape = shape, kAxis = static_cast<std::int64_t>(axis)})[0];
    return op::equal(position, size_value(x.builder(), reverse ? shape[axis] - 1 : Dim(0), DType::kI64));
  }
};

std::vector<Val> import_cum_sum(const ImportNode& node) {
  const Run run(node);
  return {cast(reshape(op::linear_recurrence(run.begun(run.x), run.attrs()), node.x(0).shape()), node.x(0).dtype())};
}

std::vector<Val> import_cum_prod(const ImportNode& node) {
  const Run run(node);
  const Val x = run.x, first = run.first(x);
  const Val one = node.builder().scalar(1, x.dtype()), zero = node.builder().scalar(0, x.dtype());
  const Val factor = run.exclusive ? op::where(first, one, run.begun(x)) : x;
  return {cast(reshape(op::linear_recurrence(op::where(first, factor, zero), factor, run.attrs()), node.x(0).shape()), node.x(0).dtype())};
}

constinit const Importer kCumulativeOps[] = {
    {"CumSum", import_cum_sum},
    {"CumProd", import_cum_prod},
};

}  // namespace

std::span<const Importer> cumulative_importers() { return kCumulativeOps; }

}  // namespace hone::onnx
