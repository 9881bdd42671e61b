// Losses. Each gives the sum of the losses of all targets and what it is divided by for their mean, both scalars of the output's type; the division comes after
// the sums of all replicas have met. Without weights the divisor is the number of targets that count. Weights of classes and samples multiply the losses; the
// divisor is then the sum of the weights (PyTorch's), or still the number of targets (`keras`; for weights of "no" and "yes" PyTorch's, too: its pos_weight).
// Sources: torch.nn.functional and keras.losses (versions in tests/golden_numbers/make.py); where they differ, `keras` picks Keras's.
#include <fmt/format.h>

#include <numbers>

#include "ir/ops/formulas.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

constexpr FixedList<std::string_view, 6> kLossResults = {"loss_sum", "target_count"};
constexpr FixedList<AttrRef, 12> kClassAttrs = {kAxis, kLabelSmoothing, kHasIgnoreIndex, kIgnoreIndex, kKeras};
constexpr decltype(OpDef::inputs) kClassInputs = {"output", "target", "class_weight?", "sample_weight?"};
constexpr double kKerasEpsilon = 1e-7;  // keras.config.epsilon()
constexpr decltype(OpDef::inputs) kValueInputs = {"output", "target", "sample_weight?"};

std::vector<Type> two_scalars(Infer& infer) {
  const Type scalar{infer.dtype(0), {}};
  return {scalar, scalar};
}

void require_weights(Infer& infer, std::size_t operand, std::size_t of, std::size_t axis, std::string_view what) {
  if (not infer.has(operand)) return;
  infer.require(infer.rank(operand) == 1 and infer.dtype(operand) == infer.dtype(0), Code::kShape, fmt::format("{} are a vector of the output's type", what));
  infer.require(axis < infer.rank(of), Code::kShape, fmt::format("{} need an axis that they go along", what));
  infer.unify(infer.shape(of)[axis], infer.shape(operand)[0], what);
}

/// output [..,C,..] with classes along axis; targets are class numbers of the same shape without that axis, or probabilities of the output's shape and type; class weights [C],
/// weights of the samples, the targets' first axis.
std::vector<Type> infer_class_loss(Infer& infer) {
  infer.require(is_float(infer.dtype(0)), Code::kType, "the output must be floats");
  const bool has_numbers = is_integer(infer.dtype(1));
  infer.require(has_numbers or infer.dtype(1) == infer.dtype(0), Code::kType, "targets are integer class numbers, or probabilities of the output's type");
  infer.require(has_numbers or not infer.attrs[kHasIgnoreIndex], Code::kBadAttribute, "probabilities have no number that could be ignored");
  infer.require(infer.attrs[kAxis] >= 0 and infer.attrs[kAxis] < static_cast<std::int64_t>(infer.rank(0)), Code::kBadAttribute, "class axis out of range");
  Shape expected = infer.shape(0);
  if (has_numbers) expected.erase(expected.begin() + infer.attrs[kAxis]);
  infer.require(infer.rank(1) == expected.size(), Code::kShape, has_numbers ? "targets have the output's shape without the class axis" : "probabilities have the output's shape");
  for (std::size_t i = 0; i < expected.size(); ++i) infer.unify(expected[i], infer.shape(1)[i], "extents of output and target");
  require_weights(infer, 2, 0, static_cast<std::size_t>(infer.attrs[kAxis]), "class weights");
  require_weights(infer, 3, 1, 0, "sample weights");
  return two_scalars(infer);
}

void require_values(Infer& infer) {
  infer.require(is_float(infer.dtype(0)) and infer.dtype(0) == infer.dtype(1), Code::kType, "output and target must be floats of one type");
  infer.require(infer.rank(0) == infer.rank(1), Code::kShape, "output and target have different ranks");
  for (std::size_t i = 0; i < infer.rank(0); ++i) infer.unify(infer.shape(0)[i], infer.shape(1)[i], "extents of output and target");
}

std::vector<Type> infer_value_loss(Infer& infer) {
  require_values(infer);
  require_weights(infer, 2, 0, 0, "sample weights");
  return two_scalars(infer);
}

/// The same with labels between "no" (0) and "yes" (1), whose weights are class weights [2].
std::vector<Type> infer_label_loss(Infer& infer) {
  require_values(infer);
  if (infer.has(2)) {
    infer.require(infer.rank(2) == 1 and infer.dtype(2) == infer.dtype(0), Code::kShape, "class weights are a vector of the output's type");
    infer.unify(Dim(2), infer.shape(2)[0], "class weights of no and yes");
  }
  require_weights(infer, 3, 0, 0, "sample weights");
  return two_scalars(infer);
}

/// Values that are distributions or vectors along an axis.
std::vector<Type> infer_axis_loss(Infer& infer) {
  infer.require(infer.attrs[kAxis] >= 0 and infer.attrs[kAxis] < static_cast<std::int64_t>(infer.rank(0)), Code::kBadAttribute, "class axis out of range");
  infer.require(not infer.has(2) or infer.attrs[kAxis] > 0, Code::kShape, "sample weights need samples along the first axis");
  return infer_value_loss(infer);
}

/// Both factors, as far as they are there.
Val product(Val a, Val b) {
  if (not a.valid()) return b;
  return b.valid() ? a * b : a;
}

/// What the targets' losses are multiplied by, and what is left out; each may be invalid.
struct Say {
  Val factor;   ///< of each loss
  Val share;    ///< of each target in the divisor; invalid: 1
  Val counted;  ///< bool: false for a target that does not count
};

/// The results of a loss from the loss of each target.
std::vector<Val> total(const Lower& l, Val losses, const Say& say) {
  const Val zero = l.builder.scalar(0, losses.dtype());
  losses = product(losses, say.factor);
  Val share = say.share;
  if (say.counted.valid()) {
    losses = op::where(say.counted, losses, zero);
    share = share.valid() ? op::where(say.counted, share, zero) : hone::cast(say.counted, losses.dtype());
  }
  const Val loss_sum = hone::sum_all(losses);
  if (not share.valid()) return {loss_sum, size_value(l.builder, element_count(losses.shape()), losses.dtype())};
  return {loss_sum, hone::sum_all(hone::broadcast_to(share, losses.shape()))};
}

/// Sample weights as they go with losses of this shape, whose first axis has the samples.
Val sample_weights(const Lower& l, std::size_t operand, const Shape& shape) {
  if (not l.has(operand)) return {};
  Shape aligned(shape.size(), Dim(1));
  aligned[0] = shape[0];
  return hone::reshape(l.x(operand), aligned);
}

/// The results from the losses of all elements, or all samples, of a loss of values.
std::vector<Val> over_all(const Lower& l, Val losses, std::size_t weights_operand = 2) {
  const Val weights = sample_weights(l, weights_operand, losses.shape());
  return total(l, losses, {weights, l.attrs[kKeras] ? Val{} : weights, {}});
}

/// Sum over the targets of -log p[target], or of -sum(target * log p) where targets are probabilities; smoothed and without ignored targets, from log probabilities with the
/// classes along the axis. PyTorch weighs what smoothing gives to a class with that class's weight, and divides by the weights of class numbers, but not of probabilities; Keras
/// weighs the whole loss with the weight of the target's class, the most probable one.
std::vector<Val> negative_log_likelihood(const Lower& l, Val log_p) {
  const auto axis = static_cast<std::size_t>(l.attrs[kAxis]);
  const Val target = l.x(1);
  const bool has_numbers = is_integer(target.dtype()), keras = l.attrs[kKeras];
  Val p = move_axis_last(log_p, axis);
  const Val zero = l.builder.scalar(0, p.dtype());
  const Shape shape = p.shape();
  const Ints last = {static_cast<std::int64_t>(shape.size()) - 1};
  const auto of_its_class = [&](Val classes, Val values) { return hone::sum(op::where(op::one_hot(classes, {kShape = shape}), values, zero), last, false); };
  Val of_class;
  if (l.has(2)) {
    of_class = has_numbers ? of_its_class(target, l.x(2)) : keras ? of_its_class(op::argmax(target, {kAxis = l.attrs[kAxis]}), l.x(2)) : Val{};
    if (not keras) p = p * l.x(2);
  }
  Val losses = -(has_numbers ? of_its_class(target, p) : hone::sum(move_axis_last(target, axis) * p, last, false));
  if (const double smoothing = l.attrs[kLabelSmoothing]; smoothing != 0)
    losses = losses * (1 - smoothing) - hone::sum(p, last, false) * smoothing / size_value(l.builder, shape.back(), p.dtype());
  const Val of_sample = sample_weights(l, 3, losses.shape()), both = product(of_class, of_sample);
  Say say = {keras ? both : of_sample, keras ? Val{} : both, {}};
  if (l.attrs[kHasIgnoreIndex]) say.counted = op::logical_not(op::equal(target, l.builder.constant(Tensor::scalar(l.attrs[kIgnoreIndex]).cast(target.dtype()))));
  return total(l, losses, say);
}

/// log(p), and -100 where p is 0 (PyTorch's clamp); no infinity meets a gradient.
Val clamped_log(Val p) {
  constexpr double kSmallest = 0x1p-126;  // f32's smallest normal number: denormals may be flushed
  const Val smallest = p.builder().scalar(kSmallest, p.dtype());
  return op::where(op::less(p, smallest), p.builder().scalar(-100, p.dtype()), op::log(op::maximum(p, smallest)));
}

/// How far a target is "yes" and "no", each times what it counts.
struct Sides {
  Val yes, no;
};

/// Smoothed, a target is that much nearer to 1/2. PyTorch weighs either side (pos_weight is that of yes), Keras the whole loss with the weight of the class that is
/// nearer (fit(class_weight=...)): of targets 0 and 1 that are not smoothed both are the same.
Sides sides_of(const Lower& l) {
  const Val target = l.x(1);
  const double smoothing = l.attrs[kLabelSmoothing];
  const Val t = smoothing != 0 ? target * (1 - smoothing) + smoothing / 2 : target;
  if (not l.has(2)) return {t, 1.0 - t};
  const auto weight = [&](double no, double yes) { return hone::sum(l.x(2) * l.builder.constant(Tensor::of<double>({2}, std::vector{no, yes}).cast(t.dtype())), {0}, false); };
  const Val of_no = weight(1, 0), of_yes = weight(0, 1);
  if (not l.attrs[kKeras]) return {t * of_yes, (1.0 - t) * of_no};
  const Val of_class = op::where(op::greater(target, l.builder.scalar(0.5, t.dtype())), of_yes, of_no);
  return {t * of_class, (1.0 - t) * of_class};
}

constexpr std::size_t kSampleWeightsOfLabels = 3;

std::vector<Val> lower_bce(const Lower& l) {
  Val p = l.x(0);
  const auto [yes, no] = sides_of(l);
  if (not l.attrs[kKeras]) return over_all(l, -(yes * clamped_log(p) + no * clamped_log(1.0 - p)), kSampleWeightsOfLabels);
  p = op::clip(p, l.builder.scalar(kKerasEpsilon, p.dtype()), l.builder.scalar(1 - kKerasEpsilon, p.dtype()));
  return over_all(l, -(yes * op::log(p) + no * op::log(1.0 - p)), kSampleWeightsOfLabels);
}

std::vector<Val> lower_bce_with_logits(const Lower& l) {
  const Val x = l.x(0);
  const auto [yes, no] = sides_of(l);
  const Val softplus = op::softplus(x);
  return over_all(l, (l.has(2) ? softplus * (yes + no) : softplus) - x * yes, kSampleWeightsOfLabels);
}

/// By how much max(0, 1 - target * output) is above 0; a target of 0 is -1.
Val margin_missed(const Lower& l) {
  const Val zero = l.builder.scalar(0, l.x(0).dtype());
  const Val side = op::where(op::equal(l.x(1), zero), l.builder.scalar(-1, zero.dtype()), l.x(1));
  return op::maximum(1.0 - side * l.x(0), zero);
}

std::vector<Val> lower_kl_divergence(const Lower& l) {
  const Val t = l.x(1), zero = l.builder.scalar(0, t.dtype());
  if (not l.attrs[kKeras]) {
    const Val one = l.builder.scalar(1, t.dtype()), is_there = op::greater(t, zero);
    return over_all(l, op::where(is_there, t * op::log(op::where(is_there, t, one)), zero) - t * l.x(0));
  }
  const Val low = l.builder.scalar(kKerasEpsilon, t.dtype()), high = l.builder.scalar(1, t.dtype());
  const Val p = op::clip(l.x(0), low, high), q = op::clip(t, low, high);
  return over_all(l, hone::sum(q * op::log(q / p), {l.attrs[kAxis]}, false));
}

std::vector<Val> lower_cosine(const Lower& l) {
  const auto along = [&](Val x) { return hone::sum(x, {l.attrs[kAxis]}, false); };
  const Val a = l.x(0), b = l.x(1), aa = along(square(a)), bb = along(square(b)), ab = along(a * b);
  if (not l.attrs[kKeras]) return over_all(l, 1.0 - ab / op::sqrt((aa + 1e-12) * (bb + 1e-12)));
  const Val least = l.builder.scalar(1e-14, aa.dtype());  // Keras's vectors of length below 1e-7 are divided by that
  return over_all(l, -(ab / (op::sqrt(op::maximum(aa, least)) * op::sqrt(op::maximum(bb, least)))));
}

/// A loss of each element alone.
constexpr OpDef value_loss(std::string_view name, std::string_view doc, std::vector<Val> (*lower)(const Lower&)) {
  return {.name = name, .doc = doc, .inputs = kValueInputs, .results = kLossResults, .attrs = {kKeras}, .infer = infer_value_loss, .lower = lower};
}

}  // namespace

constinit const OpDef softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .doc = "-log_softmax(output)[target] for logits and integer classes along axis, or -sum(target * log_softmax(output)) for the classes' probabilities",
    .inputs = kClassInputs,
    .results = kLossResults,
    .attrs = kClassAttrs,
    .infer = infer_class_loss,
    .lower = [](const Lower& l) { return negative_log_likelihood(l, op::log_softmax(l.x(0), {kAxis = l.attrs[kAxis]})); },
};

constinit const OpDef cross_entropy = {
    .name = "cross_entropy",
    .doc = "-log(output[target]) for probabilities, clipped to [1e-7, 1 - 1e-7] as in Keras, and integer classes along axis, or their probabilities",
    .inputs = kClassInputs,
    .results = kLossResults,
    .attrs = kClassAttrs,
    .infer = infer_class_loss,
    .lower =
        [](const Lower& l) {
          const Val low = l.builder.scalar(kKerasEpsilon, l.x(0).dtype()), high = l.builder.scalar(1 - kKerasEpsilon, l.x(0).dtype());
          return negative_log_likelihood(l, op::log(op::clip(l.x(0), low, high)));
        },
};

constinit const OpDef nll = {
    .name = "nll",
    .doc = "-output[target] for log probabilities and integer classes along axis, or their probabilities",
    .inputs = kClassInputs,
    .results = kLossResults,
    .attrs = kClassAttrs,
    .infer = infer_class_loss,
    .lower = [](const Lower& l) { return negative_log_likelihood(l, l.x(0)); },
};

constinit const OpDef mse = value_loss("mse", "(output - target)^2 for each element", [](const Lower& l) { return over_all(l, square(l.x(0) - l.x(1))); });

constinit const OpDef mae = value_loss("mae", "|output - target| for each element", [](const Lower& l) { return over_all(l, op::abs(l.x(0) - l.x(1))); });

constinit const OpDef huber = {
    .name = "huber",
    .doc = "e^2 / 2 for e = |output - target| up to delta, and delta * (e - delta / 2) beyond, each element",
    .inputs = kValueInputs,
    .results = kLossResults,
    .attrs = {kDelta, kKeras},
    .infer = infer_value_loss,
    .lower =
        [](const Lower& l) {
          const double delta = l.attrs[kDelta];
          const Val error = op::abs(l.x(0) - l.x(1)), end = l.builder.scalar(delta, error.dtype());
          return over_all(l, op::where(op::less_equal(error, end), square(error) * 0.5, (error - 0.5 * delta) * delta));
        },
};

constinit const OpDef bce = {
    .name = "bce",
    .doc = "binary cross-entropy of probabilities for targets in [0, 1], each element: logarithms end at -100 as in PyTorch, or probabilities at 1e-7 as in Keras",
    .inputs = kClassInputs,
    .results = kLossResults,
    .attrs = {kLabelSmoothing, kKeras},
    .infer = infer_label_loss,
    .lower = lower_bce,
};

constinit const OpDef bce_with_logits = {
    .name = "bce_with_logits",
    .doc = "binary cross-entropy of sigmoid(output) for targets in [0, 1], each element: softplus(output) - output * target",
    .inputs = kClassInputs,
    .results = kLossResults,
    .attrs = {kLabelSmoothing, kKeras},
    .infer = infer_label_loss,
    .lower = lower_bce_with_logits,
};

constinit const OpDef hinge =
    value_loss("hinge", "max(0, 1 - target * output) for targets of -1 and 1, or 0 (which is -1) and 1, each element", [](const Lower& l) { return over_all(l, margin_missed(l)); });

constinit const OpDef squared_hinge =
    value_loss("squared_hinge", "max(0, 1 - target * output)^2 for targets of -1 and 1, or 0 (which is -1) and 1, each element", [](const Lower& l) { return over_all(l, square(margin_missed(l))); });

constinit const OpDef log_cosh =
    value_loss("log_cosh", "log(cosh(e)) of e = output - target, as e + softplus(-2 e) - log(2), each element", [](const Lower& l) {
      const Val error = l.x(0) - l.x(1);
      return over_all(l, error + op::softplus(error * -2.0) - std::numbers::ln2);
    });

constinit const OpDef msle =
    value_loss("msle", "(log(1 + output) - log(1 + target))^2, both at least 1e-7, each element", [](const Lower& l) {
      const auto log_of = [&](Val x) { return op::log(op::maximum(x, l.builder.scalar(kKerasEpsilon, x.dtype())) + 1.0); };
      return over_all(l, square(log_of(l.x(0)) - log_of(l.x(1))));
    });

constinit const OpDef mape =
    value_loss("mape", "100 |output - target| / max(|target|, 1e-7), each element", [](const Lower& l) {
      const Val target = l.x(1);
      return over_all(l, op::abs((target - l.x(0)) / op::maximum(op::abs(target), l.builder.scalar(kKerasEpsilon, target.dtype()))) * 100.0);
    });

constinit const OpDef poisson =
    value_loss("poisson", "exp(output) - target * output for logarithms of rates, as in PyTorch; or output - target * log(output + 1e-7) for rates, as in Keras; each element", [](const Lower& l) {
      const Val output = l.x(0), target = l.x(1);
      return over_all(l, l.attrs[kKeras] ? output - target * op::log(output + kKerasEpsilon) : op::exp(output) - target * output);
    });

constinit const OpDef kl_divergence = {
    .name = "kl_divergence",
    .doc = "target * (log target - output) for log probabilities, each element, as in PyTorch; or for probabilities, summed along axis, as in Keras",
    .inputs = kValueInputs,
    .results = kLossResults,
    .attrs = {kAxis, kKeras},
    .infer = infer_axis_loss,
    .lower = lower_kl_divergence,
};

constinit const OpDef cosine = {
    .name = "cosine",
    .doc = "1 - the cosine of output and target along axis, as in PyTorch, or its negative, as in Keras",
    .inputs = kValueInputs,
    .results = kLossResults,
    .attrs = {kAxis, kKeras},
    .infer = infer_axis_loss,
    .lower = lower_cosine,
};

constinit const OpDef given_loss = {
    .name = "given_loss",
    .doc = "the output itself, each element",
    .inputs = {"output", "sample_weight?"},
    .results = kLossResults,
    .attrs = {kKeras},
    .infer =
        [](Infer& infer) {
          infer.require(is_float(infer.dtype(0)), Code::kType, "the output must be floats");
          require_weights(infer, 1, 0, 0, "sample weights");
          return two_scalars(infer);
        },
    .lower = [](const Lower& l) { return over_all(l, l.x(0), 1); },
};

// Metrics: how many of the targets, as a float.

namespace {

/// As of a loss with two operands, so that nothing has weights.
std::vector<Type> infer_class_metric(Infer& infer) {
  infer.require(is_integer(infer.dtype(1)), Code::kType, "targets are integer class numbers");
  return {infer_class_loss(infer)[0]};
}

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
