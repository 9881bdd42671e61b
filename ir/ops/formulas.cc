#include "ir/ops/formulas.h"

#include <cmath>

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

std::vector<Val> batch_norm_results(std::span<const Val> operands, const Attrs& attributes, const BatchStatistics& statistics) {
  const Moments& m = statistics.moments;
  const std::size_t rank = operands[0].rank();
  const Val observed = attributes[kKeras] ? statistics.variance : cast(cast(statistics.variance, statistics.count.dtype()) * statistics.count / statistics.count_less_one, statistics.variance.dtype());
  const double momentum = attributes[kMomentum];
  const auto moved = [&](Val old, Val batch) { return op::stop_gradient(old * momentum + reshape(batch, old.shape()) * (1 - momentum)); };
  const Val y = m.deviation * (m.inverse * per_channel(operands[1], rank)) + per_channel(operands[2], rank);
  return {y, moved(operands[3], m.mean), moved(operands[4], observed)};
}

Val inverse_rms(Val x, const Ints& axes, double epsilon) { return 1.0 / op::sqrt(mean_over(square(x), axes) + epsilon); }

namespace {

/// x[B,H,S,...] as [B,G,H/G*S,...]: the query heads that share a key head stand one below the other.
Val by_key_head(Val x, const Dim& key_heads) {
  const Shape shape = x.shape();
  return reshape(x, {shape[0], key_heads, floordiv(shape[1], key_heads) * shape[2], shape[3]});
}

}  // namespace

Val attention_scores(Val query, Val key, double scale) {
  const Shape shape = {query.shape()[0], query.shape()[1], query.shape()[2], key.shape()[2]};
  const double root = std::sqrt(scale);
  return reshape(op::matmul(by_key_head(query * root, key.shape()[1]), key * root, {kTransB = true}), shape);
}

Val target_divisor(Val count) {
  Builder& builder = count.builder();
  return op::where(op::equal(count, builder.scalar(0, count.dtype())), builder.scalar(1, count.dtype()), count);
}

Val attend(Val weights, Val value) {
  const Shape shape = {weights.shape()[0], weights.shape()[1], weights.shape()[2], value.shape()[3]};
  return reshape(op::matmul(by_key_head(weights, value.shape()[1]), value), shape);
}

}  // namespace hone
