// Losses. Each gives the sum of the losses of all targets and the number of targets that count, both scalars of the output's type; the mean is one by the
// other, formed after the sums of all replicas have met.
#include <fmt/format.h>

#include "ir/ops/formulas.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

constexpr FixedList<std::string_view, 6> kLossResults = {"loss_sum", "target_count"};
constexpr FixedList<AttrRef, 12> kClassAttrs = {kAxis, kLabelSmoothing, kHasIgnoreIndex, kIgnoreIndex};

std::vector<Type> two_scalars(Infer& infer) {
  const Type scalar{infer.dtype(0), {}};
  return {scalar, scalar};
}

/// output [..,C,..] with classes along axis, integer targets of the same shape without that axis.
std::vector<Type> infer_class_loss(Infer& infer) {
  infer.require(is_float(infer.dtype(0)), Code::kType, "the output must be floats");
  infer.require(is_integer(infer.dtype(1)), Code::kType, "targets are integer class numbers");
  infer.require(infer.attrs[kAxis] >= 0 and infer.attrs[kAxis] < static_cast<std::int64_t>(infer.rank(0)), Code::kBadAttribute, "class axis out of range");
  infer.require(infer.rank(1) + 1 == infer.rank(0), Code::kShape, "targets have the output's shape without the class axis");
  Shape expected = infer.shape(0);
  expected.erase(expected.begin() + infer.attrs[kAxis]);
  for (std::size_t i = 0; i < expected.size(); ++i) infer.unify(expected[i], infer.shape(1)[i], "extents of output and target");
  return two_scalars(infer);
}

std::vector<Type> infer_value_loss(Infer& infer) {
  infer.require(is_float(infer.dtype(0)) and infer.dtype(0) == infer.dtype(1), Code::kType, "output and target must be floats of one type");
  infer.require(infer.rank(0) == infer.rank(1), Code::kShape, "output and target have different ranks");
  for (std::size_t i = 0; i < infer.rank(0); ++i) infer.unify(infer.shape(0)[i], infer.shape(1)[i], "extents of output and target");
  return two_scalars(infer);
}

std::vector<Val> over_all_elements(const Lower& l, Val losses) {
  return {hone::sum_all(losses), size_value(l.builder, element_count(losses.shape()), losses.dtype())};
}

/// Sum over the targets of -log p[target], smoothed and without ignored targets, from log probabilities with the classes along the axis.
std::vector<Val> negative_log_likelihood(const Lower& l, Val log_p) {
  const Val target = l.x(1);
  const Val p = move_axis_last(log_p, static_cast<std::size_t>(l.attrs[kAxis])), zero = l.builder.scalar(0, p.dtype());
  const Shape shape = p.shape();
  const Ints last = {static_cast<std::int64_t>(shape.size()) - 1};
  Val losses = -hone::sum(op::where(op::one_hot(target, {kShape = shape}), p, zero), last, false);
  if (const double smoothing = l.attrs[kLabelSmoothing]; smoothing != 0)
    losses = losses * (1 - smoothing) - hone::sum(p, last, false) * smoothing / size_value(l.builder, shape.back(), p.dtype());
  if (not l.attrs[kHasIgnoreIndex]) return over_all_elements(l, losses);
  const Val counts = op::logical_not(op::equal(target, l.builder.constant(Tensor::scalar(l.attrs[kIgnoreIndex]).cast(target.dtype()))));
  return {hone::sum_all(op::where(counts, losses, zero)), hone::sum_all(hone::cast(counts, p.dtype()))};
}

}  // namespace

constinit const OpDef softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .doc = "-log_softmax(output)[target] for logits and integer classes along axis",
    .inputs = {"output", "target"},
    .results = kLossResults,
    .attrs = kClassAttrs,
    .infer = infer_class_loss,
    .lower = [](const Lower& l) { return negative_log_likelihood(l, op::log_softmax(l.x(0), {kAxis = l.attrs[kAxis]})); },
};

constinit const OpDef cross_entropy = {
    .name = "cross_entropy",
    .doc = "-log(output[target]) for probabilities, clipped to [1e-7, 1 - 1e-7] as in Keras, and integer classes along axis",
    .inputs = {"output", "target"},
    .results = kLossResults,
    .attrs = kClassAttrs,
    .infer = infer_class_loss,
    .lower =
        [](const Lower& l) {
          const Val low = l.builder.scalar(1e-7, l.x(0).dtype()), high = l.builder.scalar(1 - 1e-7, l.x(0).dtype());
          return negative_log_likelihood(l, op::log(op::clip(l.x(0), low, high)));
        },
};

constinit const OpDef mse = {
    .name = "mse",
    .doc = "(output - target)^2 for each element",
    .inputs = {"output", "target"},
    .results = kLossResults,
    .infer = infer_value_loss,
    .lower = [](const Lower& l) { return over_all_elements(l, square(l.x(0) - l.x(1))); },
};

constinit const OpDef bce_with_logits = {
    .name = "bce_with_logits",
    .doc = "binary cross-entropy of sigmoid(output) for targets in [0, 1], each element: softplus(output) - output * target",
    .inputs = {"output", "target"},
    .results = kLossResults,
    .infer = infer_value_loss,
    .lower = [](const Lower& l) { return over_all_elements(l, op::softplus(l.x(0)) - l.x(0) * l.x(1)); },
};

// Metrics: sums over the targets, of float; divided by the loss's target_count they are the metric.

namespace {

std::vector<Type> infer_class_metric(Infer& infer) { return {infer_class_loss(infer)[0]}; }

/// Number of targets for which `right` holds and that are not ignored.
std::vector<Val> count_right(const Lower& l, Val right) {
  if (l.attrs[kHasIgnoreIndex]) {
    const Val ignored = l.builder.constant(Tensor::scalar(l.attrs[kIgnoreIndex]).cast(l.x(1).dtype()));
    right = op::logical_and(right, op::logical_not(op::equal(l.x(1), ignored)));
  }
  return {hone::sum_all(hone::cast(right, l.x(0).dtype()))};
}

}  // namespace

constinit const OpDef accuracy = {
    .name = "accuracy",
    .doc = "number of targets that are the position of the (first) largest output along axis",
    .inputs = {"output", "target"},
    .results = {"sum"},
    .attrs = {kAxis, kHasIgnoreIndex, kIgnoreIndex},
    .infer = infer_class_metric,
    .lower = [](const Lower& l) { return count_right(l, op::equal(op::argmax(l.x(0), {kAxis = l.attrs[kAxis]}), hone::cast(l.x(1), DType::kI64))); },
};

constinit const OpDef top_k_accuracy = {
    .name = "top_k_accuracy",
    .doc = "number of targets whose output has fewer than k larger ones along axis",
    .inputs = {"output", "target"},
    .results = {"sum"},
    .attrs = {kAxis, kTopK, kHasIgnoreIndex, kIgnoreIndex},
    .infer = infer_class_metric,
    .lower =
        [](const Lower& l) {
          const Val output = move_axis_last(l.x(0), static_cast<std::size_t>(l.attrs[kAxis])), zero = l.builder.scalar(0, output.dtype());
          const Ints last = {static_cast<std::int64_t>(output.rank()) - 1};
          const Val own = hone::sum(op::where(op::one_hot(l.x(1), {kShape = output.shape()}), output, zero), last, true);
          const Val larger = hone::sum(hone::cast(op::greater(output, own), output.dtype()), last, false);
          return count_right(l, op::less(larger, l.builder.scalar(static_cast<double>(l.attrs[kTopK]), output.dtype())));
        },
};

}  // namespace hone::op
