// Softmax, and normalization over a batch or within a sample, in ordinary ops.
#include <fmt/format.h>

#include <array>

#include "ir/kernel/scalar_math.h"
#include "ir/ops/formulas.h"
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

/// In terms of y, so that it is finite where y is.
void softmax_gradient(Grad& g) { g.flow(0, g.y() * (g.dy() - hone::sum(g.dy() * g.y(), {g.attrs[kAxis]}, true))); }

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

/// x with axes from `axis` on to normalize; scale and bias broadcast to x.
std::vector<Type> infer_layer_norm(Infer& infer) {
  infer.require(is_float(infer.dtype(0)), Code::kType, "needs floats");
  infer.require(infer.attrs[kAxis] >= 0 and infer.attrs[kAxis] < static_cast<std::int64_t>(infer.rank(0)), Code::kBadAttribute, "axis out of range");
  for (std::size_t i = 1; i < infer.count(); ++i) {
    if (not infer.has(i)) continue;
    infer.require(infer.dtype(i) == infer.dtype(0), Code::kType, "element types differ");
    infer.require(infer.rank(i) <= infer.rank(0) and infer.broadcast(infer.shape(0), infer.shape(i)) == infer.shape(0), Code::kShape,
                  "scale and bias must broadcast to x");
  }
  return {infer.type(0)};
}

/// The normalized axes: from `axis` on.
Ints normalized_axes(const Attrs& attrs, std::size_t rank) {
  Ints axes = all_axes(rank);
  axes.erase(axes.begin(), axes.begin() + attrs[kAxis]);
  return axes;
}

/// dx_hat less its part along x_hat. What flows back through x_hat = x * inverse is that, times inverse; where x's mean is taken off first, less dx_hat's mean, too
/// (x_hat then sums to 0, so its part is the same with the mean and without, and both sums are taken in one walk).
Val without_part_along(Val dx_hat, Val x_hat, const Ints& axes) { return dx_hat - x_hat * mean_over(dx_hat * x_hat, axes); }

}  // namespace

constinit const OpDef softmax = {
    .name = "softmax",
    .doc = "y = e^x / sum of e^x along axis",
    .inputs = {"x"},
    .attrs = {kAxis},
    .infer = infer_softmax,
    .grad = softmax_gradient,
    .lower =
        [](const Lower& l) {
          const Val e = op::exp(shifted(l)), total = hone::sum(e, axis_of(l), true);
          // one division a row, not one an element; a type that is storage only would be rounded twice
          return std::vector<Val>{is_storage_only(l.x(0).dtype()) ? e / total : e * (1.0 / total)};
        },
    .keep = true,
};

constinit const OpDef safe_softmax = {
    .name = "safe_softmax",
    .doc = "y = softmax of x along axis, and 0 where that is NaN: where all of a slice is -inf, as is a mask that leaves nothing; no gradient flows there",
    .inputs = {"x"},
    .attrs = {kAxis},
    .infer = infer_softmax,
    .grad = softmax_gradient,
    .lower =
        [](const Lower& l) {
          const Val y = op::softmax(l.x(0), {kAxis = l.attrs[kAxis]});
          return std::vector<Val>{op::where(op::equal(y, y), y, l.builder.scalar(0, y.dtype()))};
        },
    .keep = true,
};

constinit const OpDef log_softmax = {
    .name = "log_softmax",
    .doc = "y = x - log of the sum of e^x along axis",
    .inputs = {"x"},
    .attrs = {kAxis},
    .infer = infer_softmax,
    .grad = [](Grad& g) { g.flow(0, g.dy() - op::exp(g.y()) * hone::sum(g.dy(), {g.attrs[kAxis]}, true)); },
    .lower =
        [](const Lower& l) {
          const Val z = shifted(l);
          return std::vector<Val>{z - op::log(hone::sum(op::exp(z), axis_of(l), true))};
        },
    .keep = true,
};

constinit const OpDef layer_norm = {
    .name = "layer_norm",
    .doc = "y = (x - mean) / sqrt(variance + epsilon) * scale + bias with mean and (biased) variance over the axes from axis on; scale and bias broadcast to x",
    .inputs = {"x", "scale?", "bias?"},
    .attrs = {kAxis, kEpsilon},
    .infer = infer_layer_norm,
    .grad =
        [](Grad& g) {
          const Ints axes = normalized_axes(g.attrs, g.x(0).rank());
          const Moments m = moments(g.x(0), axes, g.attrs[kEpsilon]);
          const Val x_hat = m.deviation * m.inverse, dx_hat = g.has(1) ? g.dy() * g.x(1) : g.dy();
          g.flow(0, m.inverse * (without_part_along(dx_hat, x_hat, axes) - mean_over(dx_hat, axes)));
          g.flow(1, g.dy() * x_hat);
          g.flow(2, g.dy());
        },
    .lower =
        [](const Lower& l) {
          const Moments m = moments(l.x(0), normalized_axes(l.attrs, l.x(0).rank()), l.attrs[kEpsilon]);
          Val y = m.deviation * m.inverse;
          if (l.has(1)) y = y * l.x(1);
          if (l.has(2)) y = y + l.x(2);
          return std::vector<Val>{y};
        },
    .keep = true,
};

constinit const OpDef rms_norm = {
    .name = "rms_norm",
    .doc = "y = x / sqrt(mean of x^2 + epsilon) * scale with the mean over the axes from axis on; scale broadcasts to x",
    .inputs = {"x", "scale?"},
    .attrs = {kAxis, kEpsilon},
    .infer = infer_layer_norm,
    .grad =
        [](Grad& g) {
          const Ints axes = normalized_axes(g.attrs, g.x(0).rank());
          const Val inverse = inverse_rms(g.x(0), axes, g.attrs[kEpsilon]), x_hat = g.x(0) * inverse;
          g.flow(0, inverse * without_part_along(g.has(1) ? g.dy() * g.x(1) : g.dy(), x_hat, axes));
          g.flow(1, g.dy() * x_hat);
        },
    .lower =
        [](const Lower& l) {
          const Val y = l.x(0) * inverse_rms(l.x(0), normalized_axes(l.attrs, l.x(0).rank()), l.attrs[kEpsilon]);
          return std::vector<Val>{l.has(1) ? y * l.x(1) : y};
        },
    .keep = true,
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
    .grad =
        [](Grad& g) {  // nothing flows through the running statistics
          const std::size_t rank = g.x(0).rank();
          const Ints axes = all_axes_but(rank, 1);
          const Moments m = moments(g.x(0), axes, g.attrs[kEpsilon]);
          const Val x_hat = m.deviation * m.inverse, dy = g.dy();
          g.flow(0, per_channel(g.x(1), rank) * m.inverse * (without_part_along(dy, x_hat, axes) - mean_over(dy, axes)));
          g.flow(1, hone::sum(dy * x_hat, axes, false));
          g.flow(2, hone::sum(dy, axes, false));
        },
    .lower =
        [](const Lower& l) {
          const Val x = l.x(0);
          const Ints axes = all_axes_but(x.rank(), 1);
          const Moments m = moments(x, axes, l.attrs[kEpsilon]);  // as in the gradient, which then takes them from here
          Dim count = 1;
          for (const std::int64_t axis : axes) count *= x.shape()[static_cast<std::size_t>(axis)];
          const auto size = [&](const Dim& dim) { return size_value(l.builder, dim, arithmetic_type(x.dtype())); };
          return batch_norm_results(std::array{x, l.x(1), l.x(2), l.x(3), l.x(4)}, l.attrs, {m, mean_over(square(m.deviation), axes), size(count), size(max(count - 1, 1))});
        },
    .keep = true,
};

}  // namespace hone::op
