// Running sums and products.
#include "ir/ops/cumulative.h"

#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

struct Run {
  std::size_t axis;
  bool exclusive, reverse;

  explicit Run(const ImportNode& node)
      : axis(node.axis(node.numbers(1, "axis").at(0), node.x(0).rank())), exclusive(node.flag("exclusive", false)), reverse(node.flag("reverse", false)) {}
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

/// Half floats are summed as f32.
Val widened(Val x) { return x.dtype() == DType::kF16 or x.dtype() == DType::kBF16 ? cast(x, DType::kF32) : x; }

std::vector<Val> import_cum_sum(const ImportNode& node) {
  const Run run(node);
  return {cast(op::linear_recurrence(run.begun(widened(node.x(0))), run.attrs()), node.x(0).dtype())};
}

std::vector<Val> import_cum_prod(const ImportNode& node) {
  const Run run(node);
  const Val x = widened(node.x(0)), first = run.first(x);
  const Val one = node.builder().scalar(1, x.dtype()), zero = node.builder().scalar(0, x.dtype());
  const Val factor = run.exclusive ? op::where(first, one, run.begun(x)) : x;
  return {cast(op::linear_recurrence(op::where(first, factor, zero), factor, run.attrs()), node.x(0).dtype())};
}

constinit const Importer kRows[] = {
    {"CumSum", import_cum_sum},
    {"CumProd", import_cum_prod},
};

}  // namespace

std::span<const Importer> cumulative_importers() { return kRows; }

}  // namespace hone::onnx
