#include "ir/ops/formulas.h"

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone {

Val per_channel(Val vector, std::size_t rank) {
  Shape shape(rank, Dim(1));
  shape[1] = vector.shape()[0];
  return reshape(vector, shape);
}

Val move_axis_last(Val x, std::size_t axis) {
  if (axis + 1 == x.rank()) return x;
  Ints perm = all_axes_but(x.rank(), axis);
  perm.push_back(static_cast<std::int64_t>(axis));
  return transpose(x, perm);
}

Val mean_over(Val x, const Ints& axes) { return op::reduce_mean(x, {kAxes = axes, kKeepDims = true}); }

Moments moments(Val x, const Ints& axes, double epsilon) {
  const Val mean = mean_over(x, axes), deviation = x - mean;
  return {mean, deviation, inverse_rms(deviation, axes, epsilon)};
}

Val inverse_rms(Val x, const Ints& axes, double epsilon) { return 1.0 / op::sqrt(mean_over(square(x), axes) + epsilon); }

}  // namespace hone
