// Softmax and batch normalization, in ordinary ops.
#include <fmt/format.h>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

Ints axis_of(const Lower& l) { return {l.attrs[kAxis]}; }

std::vector<Type> infer_softmax(Infer& infer) {
  infer.require(is_float(infer.dtype(0)), Code::kType, "needs floats");
  infer.require(infer.attrs[kAxis] >= 0 and infer.attrs[kAxis] < static_cast<std::int64_t>(infer.rank(0)), Code::kBadAttribute, "axis out of range");
  return {infer.type(0)};
}

/// x minus its largest along the axis: exp cannot overflow, and the gradient does not depend on what was subtracted.
Val shifted(const Lower& l) { return l.x(0) - op::stop_gradient(op::reduce_max(l.x(0), {kAxes = axis_of(l), kKeepDims = true})); }

/// [C] as [1,C,1...] to go with x[N,C,...].
Val per_channel(Val vector, std::size_t rank) {
  Shape shape(rank, Dim(1));
  shape[1] = vector.shape()[0];
  return hone::reshape(vector, shape);
}

std::vector<Type> infer_batch_norm(Infer& infer) {
  infer.require(infer.rank(0) >= 2, Code::kShape, "x needs two axes or more: [N,C,...]");
  for (std::size_t i = 1; i < 5; ++i) {
    infer.require(infer.rank(i) == 1, Code::kShape, "scale, bias, mean and variance are vectors with one element a channel");
    infer.unify(infer.shape(0)[1], infer.shape(i)[0], "channels");
  }
  return {infer.type(0)};
}

Val normalized(const Lower& l, Val mean, Val variance) {
  const std::size_t rank = l.x(0).rank();
  const Val scale = l.x(1) / op::sqrt(variance + l.attrs[kEpsilon]);
  return (l.x(0) - per_channel(mean, rank)) * per_channel(scale, rank) + per_channel(l.x(2), rank);
}

}  // namespace

constinit const OpDef softmax = {
    .name = "softmax",
    .doc = "y = e^x / sum of e^x along axis",
    .inputs = {"x"},
    .attrs = {kAxis},
    .infer = infer_softmax,
    .lower =
        [](const Lower& l) {
          const Val e = op::exp(shifted(l));
          return std::vector<Val>{e / hone::sum(e, axis_of(l), true)};
        },
};

constinit const OpDef log_softmax = {
    .name = "log_softmax",
    .doc = "y = x - log of the sum of e^x along axis",
    .inputs = {"x"},
    .attrs = {kAxis},
    .infer = infer_softmax,
    .lower =
        [](const Lower& l) {
          const Val z = shifted(l);
          return std::vector<Val>{z - op::log(hone::sum(op::exp(z), axis_of(l), true))};
        },
};

constinit const OpDef batch_norm = {
    .name = "batch_norm",
    .doc = "y = (x - mean) / sqrt(variance + epsilon) * scale + bias, per channel (axis 1): normalization with given statistics. momentum is kept for training",
    .inputs = {"x", "scale", "bias", "mean", "variance"},
    .attrs = {kEpsilon, kMomentum},
    .infer = infer_batch_norm,
    .lower = [](const Lower& l) { return std::vector<Val>{normalized(l, l.x(3), l.x(4))}; },
};

constinit const OpDef batch_norm_train = {
    .name = "batch_norm_train",
    .doc = "y = x normalized with the batch's own mean and (biased) variance; new running statistics = momentum * old + (1 - momentum) * the batch's, "
           "with the unbiased variance as in PyTorch, or the biased one as in Keras and ONNX (keras)",
    .inputs = {"x", "scale", "bias", "mean", "variance"},
    .results = {"y", "new_mean", "new_variance"},
    .attrs = {kEpsilon, kMomentum, kKeras},
    .infer =
        [](Infer& infer) {
          infer_batch_norm(infer);
          return std::vector<Type>{infer.type(0), infer.type(3), infer.type(4)};
        },
    .lower =
        [](const Lower& l) {
          const Val x = l.x(0);
          const Ints axes = all_axes_but(x.rank(), 1);
          const Val mean = op::reduce_mean(x, {kAxes = axes, kKeepDims = false});
          const Val variance = op::reduce_mean(square(x - per_channel(mean, x.rank())), {kAxes = axes, kKeepDims = false});
          Val observed = variance;
          if (not l.attrs[kKeras]) {
            Dim count = 1;
            for (const std::int64_t axis : axes) count *= x.shape()[static_cast<std::size_t>(axis)];
            observed = variance * size_value(l.builder, count, x.dtype()) / size_value(l.builder, max(count - 1, 1), x.dtype());
          }
          const double momentum = l.attrs[kMomentum];
          const auto moved = [&](Val old, Val batch) { return op::stop_gradient(old * momentum + batch * (1 - momentum)); };
          return std::vector<Val>{normalized(l, mean, variance), moved(l.x(3), mean), moved(l.x(4), observed)};
        },
};

}  // namespace hone::op
