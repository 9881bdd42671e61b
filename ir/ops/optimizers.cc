// Optimizers: one update of one weight. Operands: the weight, the mean loss's gradient, the learning rate and the number of this step (from 1), both f64
// scalars, then the optimizer's states; a state is there only where its attributes need it (the pass that attaches optimizers decides by the same table); then its numbers, f64 scalars: one that is not there
// is the attribute of its name, and one that is neither is 0, and what it multiplies left out.
// Results: the new weight, then the new states that are there, in the operands' order. Scalars are worked out in f64 and rounded once; elements are multiplied
// by the reciprocal of a scalar rather than divided by it: a division takes as long as ten multiplications.
// Sources: torch.optim's and keras.optimizers' documented formulas; where they differ, `keras` picks Keras's. PyTorch has neither LAMB nor Lion: its convention
// means the papers' algorithms there (You et al. 2020, as in NVIDIA's apex; Chen et al. 2023, as in lion-pytorch).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

enum Operand : std::size_t { kWeight, kGradient, kRate, kStep, kStates };

/// Where an update's numbers begin: behind its states, of which each has a result.
std::size_t first_number(const OpDef& op) { return kStates + op.results.size() - 1; }

/// The new weight and new states have the old ones' types.
std::vector<Type> infer_update(Infer& infer) {
  infer.require(infer.type(kWeight) == infer.type(kGradient), Code::kShape, "weight and gradient differ in type");
  std::vector<Type> types = {infer.type(kWeight)};
  for (std::size_t i = kStates; i < infer.count(); ++i) {
    if (not infer.has(i)) continue;
    if (i < first_number(infer.op())) types.push_back(infer.type(i));
    else infer.require(infer.type(i) == Type{DType::kF64, {}}, Code::kType, fmt::format("{} must be a number in f64", infer.op().inputs[i]));
  }
  return types;
}

/// What weight decay means in PyTorch's convention; in Keras's it is always decoupled.
enum class Decay : std::uint8_t {
  kOfLoss,     ///< added to the gradient
  kDecoupled,  ///< taken from the weight, as AdamW does
  kOfUpdate,   ///< the optimizer's own
};

/// One update being built: the weight's type for tensors, f64 for scalars.
struct Update {
  explicit Update(const Lower& lower, Decay kind = Decay::kOfLoss) : l(lower), weight(l.x(kWeight)), gradient(l.x(kGradient)), rate(l.x(kRate)), step(l.x(kStep)) {
    if (not counts(kWeightDecay)) return;
    const Val decay = number(kWeightDecay);
    if (keras() or kind == Decay::kDecoupled) weight = weight - weight * rounded(rate * decay);
    else if (kind == Decay::kOfLoss) gradient = gradient + weight * rounded(decay);
  }

  const Lower& l;
  Val weight, gradient, rate, step;

  /// The operand of that name, if it is there.
  Val operand(const AttrKey<double>& key) const {
    const OpDef& op = *l.node.op;
    for (std::size_t i = first_number(op); i < op.inputs.size(); ++i)
      if (l.has(i) and op.inputs[i].substr(0, op.inputs[i].size() - 1) == key.name) return l.x(i);
    return {};
  }
  /// A number of the optimizer's, an f64 scalar.
  Val number(const AttrKey<double>& key) const {
    const Val given = operand(key);
    return given.valid() ? given : l.builder.scalar(l.attrs[key], DType::kF64);
  }
  /// The same in the weight's type.
  Val attr(const AttrKey<double>& key) const { return rounded(number(key)); }
  /// What is left of one: the difference to 1.
  Val rest(const AttrKey<double>& key) const { return rounded(1.0 - number(key)); }
  /// Is it more than a 0 that nothing changes?
  bool counts(const AttrKey<double>& key) const { return operand(key).valid() or l.attrs[key] != 0; }
  bool keras() const { return l.attrs[kKeras]; }
  bool has(std::size_t i) const { return l.has(kStates + i); }
  Val state(std::size_t i) const { return l.x(kStates + i); }
  /// A number as Keras sees it in its schedules: rounded to f32. By f64 arithmetic (Veltkamp's splitting; T. Dekker, "A floating-point technique for extending the available precision", 1971), because an interpreter that takes all
  /// floats for f64, as tests of formulas do, rounds in no cast.
  Val constant(Val value) const {
    if (not keras()) return value;
    const Val scaled = value * (0x1p29 + 1);
    return scaled - (scaled - value);
  }
  /// An f64 scalar in the weight's type.
  Val rounded(Val scalar) const { return hone::cast(scalar, weight.dtype()); }
  Val correction(const AttrKey<double>& beta) const { return 1.0 - op::pow(constant(number(beta)), step); }
  /// decay * old + (1 - decay) * value
  Val moving(Val old, const AttrKey<double>& decay, Val value) const { return old + (value - old) * rest(decay); }
};

/// m and v of Adam's family.
struct Moments {
  Val first, second;
};
Moments moments(const Update& u) {
  return {u.moving(u.state(0), kBeta1, u.gradient), u.moving(u.state(1), kBeta2, square(u.gradient))};
}

std::vector<Val> lower_sgd(const Lower& l) {
  const Update u(l);
  if (not u.has(0)) return {u.weight - u.gradient * u.rounded(u.rate)};
  const Val momentum = u.attr(kMomentum);
  const bool nesterov = l.attrs[kNesterov];
  if (u.keras()) {
    const Val move = u.gradient * u.rounded(u.rate), velocity = u.state(0) * momentum - move;
    return {nesterov ? u.weight + (velocity * momentum - move) : u.weight + velocity, velocity};
  }
  Val velocity = u.state(0) * momentum + (u.counts(kDampening) ? u.gradient * u.rest(kDampening) : u.gradient);
  if (u.counts(kDampening)) {  // the first step is not damped, nor is one without momentum, which a run may have taken away
    const Val is_undamped = op::logical_or(op::equal(u.step, l.builder.scalar(1, DType::kF64)), op::equal(u.number(kMomentum), l.builder.scalar(0, DType::kF64)));
    velocity = op::where(is_undamped, u.gradient, velocity);
  }
  return {u.weight - (nesterov ? u.gradient + velocity * momentum : velocity) * u.rounded(u.rate), velocity};
}

template <Decay kDecay>
std::vector<Val> lower_adam(const Lower& l) {
  const Update u(l, kDecay);
  const auto [m, v] = moments(u);
  const Val largest = u.has(2) ? op::maximum(u.state(2), v) : v;
  const Val correction1 = u.correction(kBeta1), correction2 = u.correction(kBeta2);
  Val weight;
  if (u.keras()) weight = u.weight - m * u.rounded(u.rate * op::sqrt(correction2) / correction1) / (op::sqrt(largest) + u.attr(kEpsilon));
  else weight = u.weight - m / (op::sqrt(largest) * u.rounded(1.0 / op::sqrt(correction2)) + u.attr(kEpsilon)) * u.rounded(u.rate / correction1);
  if (u.has(2)) return {weight, m, v, largest};
  return {weight, m, v};
}

/// Dozat 2016; the momentum's schedule has a state of its own: the product of all mu so far.
std::vector<Val> lower_nadam(const Lower& l) {
  const Update u(l);
  const auto [m, v] = moments(u);
  const Val beta1 = u.constant(u.number(kBeta1)), base = u.constant(l.builder.scalar(0.96, DType::kF64)), decay = u.number(kMomentumDecay);
  const auto mu = [&](Val step) { return (1.0 - op::pow(base, step * decay) * 0.5) * beta1; };
  const Val mu_now = mu(u.step), mu_next = mu(u.step + 1.0), product = u.state(2) * mu_now;
  const Val root = op::sqrt(v * u.rounded(1.0 / u.correction(kBeta2))) + u.attr(kEpsilon);
  const Val move = u.gradient * u.rounded(u.rate * (1.0 - mu_now) / (1.0 - product)) + m * u.rounded(u.rate * mu_next / (1.0 - product * mu_next));
  return {u.weight - move / root, m, v, product};
}

std::vector<Val> lower_rmsprop(const Lower& l) {
  const Update u(l);
  const Val mean_square = u.moving(u.state(0), kRho, square(u.gradient));
  std::vector<Val> states = {mean_square};
  Val variance = mean_square;
  if (u.has(1)) {  // centered
    const Val mean = u.moving(u.state(1), kRho, u.gradient);
    states.push_back(mean);
    variance = variance - square(mean);
  }
  const Val rate = u.rounded(u.rate), root = u.keras() ? op::sqrt(variance + u.attr(kEpsilon)) : op::sqrt(variance) + u.attr(kEpsilon);
  Val weight;
  if (u.has(2)) {  // Keras's velocity has the learning rate in it, PyTorch's has not
    const Val velocity = u.state(2) * u.attr(kMomentum) + (u.keras() ? u.gradient * rate : u.gradient) / root;
    states.push_back(velocity);
    weight = u.weight - (u.keras() ? velocity : velocity * rate);
  } else {
    weight = u.weight - u.gradient * rate / root;
  }
  states.insert(states.begin(), weight);
  return states;
}

std::vector<Val> lower_adagrad(const Lower& l) {
  const Update u(l);
  const Val total = u.state(0) + square(u.gradient);
  const Val rate = u.rounded(u.rate / (1.0 + (u.step - 1.0) * u.number(kLrDecay)));
  const Val root = u.keras() ? op::sqrt(total + u.attr(kEpsilon)) : op::sqrt(total) + u.attr(kEpsilon);
  return {u.weight - u.gradient * rate / root, total};
}

/// Kingma & Ba 2015, section 7.1. PyTorch has epsilon in the largest gradient, Keras in the divisor.
std::vector<Val> lower_adamax(const Lower& l) {
  const Update u(l);
  const Val m = u.moving(u.state(0), kBeta1, u.gradient), size = op::abs(u.gradient);
  const Val largest = op::maximum(u.state(1) * u.attr(kBeta2), u.keras() ? size : size + u.attr(kEpsilon));
  return {u.weight - m * u.rounded(u.rate / u.correction(kBeta1)) / (u.keras() ? largest + u.attr(kEpsilon) : largest), m, largest};
}

/// Zeiler 2012.
std::vector<Val> lower_adadelta(const Lower& l) {
  const Update u(l);
  const Val mean_square = u.moving(u.state(0), kRho, square(u.gradient));
  const Val move = op::sqrt(u.state(1) + u.attr(kEpsilon)) / op::sqrt(mean_square + u.attr(kEpsilon)) * u.gradient;
  return {u.weight - move * u.rounded(u.rate), mean_square, u.moving(u.state(1), kRho, square(move))};
}

Val norm(Val x) { return op::sqrt(hone::sum_all(square(x))); }

/// Adam's update made as long as the weight is. The paper's weight decay is part of the update.
std::vector<Val> lower_lamb(const Lower& l) {
  const Update u(l, Decay::kOfUpdate);
  const auto [m, v] = moments(u);
  Val move = m * u.rounded(1.0 / u.correction(kBeta1)) / (op::sqrt(v * u.rounded(1.0 / u.correction(kBeta2))) + u.attr(kEpsilon));
  if (not u.keras() and u.counts(kWeightDecay)) move = move + u.weight * u.attr(kWeightDecay);
  const Val weight_norm = norm(u.weight), move_norm = norm(move), zero = l.builder.scalar(0, move.dtype()), one = l.builder.scalar(1, move.dtype());
  const Val both = op::logical_and(op::greater(weight_norm, zero), op::greater(move_norm, zero));
  const Val trust = op::where(both, weight_norm / op::where(both, move_norm, one), one);
  return {u.weight - move * (trust * u.rounded(u.rate)), m, v};
}

std::vector<Val> lower_lion(const Lower& l) {
  const Update u(l, Decay::kDecoupled);
  const Val direction = op::sign(u.moving(u.state(0), kBeta1, u.gradient));
  return {u.weight - direction * u.rounded(u.rate), u.moving(u.state(0), kBeta2, u.gradient)};
}

/// About U V^T for x = U S V^T: five Newton-Schulz iterations of a quintic with a steep slope at 0 (Jordan et al. 2024).
Val orthogonalized(const Lower& l, Val x) {
  constexpr int kIterations = 5;
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315, kLeast = 1e-7;
  const bool is_tall = x.shape()[0].value() > x.shape()[1].value();  // a weight's sizes are numbers
  if (is_tall) x = hone::transpose_last(x);
  const Val length = norm(x);
  x = x / (l.attrs[kKeras] ? length + kLeast : op::maximum(length, l.builder.scalar(kLeast, x.dtype())));
  for (int i = 0; i < kIterations; ++i) {
    const Val gram = op::matmul(x, x, {kTransB = true});
    x = x * kA + op::matmul(gram * kB + op::matmul(gram, gram) * kC, x);
  }
  return is_tall ? hone::transpose_last(x) : x;
}

/// PyTorch scales the update of layers with more outputs than inputs, Keras so that its elements are as large as Adam's.
std::vector<Val> lower_muon(const Lower& l) {
  const Update u(l, Decay::kDecoupled);
  const Val momentum = u.attr(kMomentum);
  const Val velocity = u.keras() ? u.state(0) * momentum + u.gradient : u.moving(u.state(0), kMomentum, u.gradient);
  Val move = velocity;
  if (l.attrs[kNesterov]) move = u.keras() ? u.gradient + velocity * momentum : u.moving(velocity, kMomentum, u.gradient);
  const bool outputs_last = l.attrs[kOutputsLast];
  const auto outputs = static_cast<double>(u.weight.shape()[outputs_last ? 1 : 0].value()), inputs = static_cast<double>(u.weight.shape()[outputs_last ? 0 : 1].value());
  const double scale = u.keras() ? 0.2 * std::sqrt(std::max(outputs, inputs)) : std::sqrt(std::max(1.0, outputs / inputs));
  return {u.weight - orthogonalized(l, move) * u.rounded(u.rate * scale), velocity};
}

/// The mean over `axis`, which stays.
Val mean_along(Val x, std::size_t axis) { return hone::sum(x, {static_cast<std::int64_t>(axis)}, true) / static_cast<double>(x.shape()[axis].value()); }

/// Shazeer & Stern 2018: of a matrix's second moment only the rows' and the columns' means are kept. PyTorch takes epsilon as the least of what is divided by and
/// the weight's size before it decays; Keras adds epsilon to the squares and takes the size after.
std::vector<Val> lower_adafactor(const Lower& l) {
  const Update u(l, Decay::kDecoupled);
  const double count = static_cast<double>(hone::element_count(u.weight.shape()).value());
  const Val fresh = op::pow(u.step, u.number(kBeta2Decay)), share = u.rounded(fresh);
  const Val squares = u.keras() ? square(u.gradient) + u.attr(kEpsilon) : square(u.gradient);
  const auto floored = [&](Val x, Val least) { return u.keras() ? x : op::maximum(x, u.rounded(least)); };
  std::vector<Val> results(1);
  Val estimate;
  if (u.has(0)) {
    const std::size_t rank = u.weight.rank();
    const Val rows = u.state(0) + (mean_along(squares, rank - 1) - u.state(0)) * share, columns = u.state(1) + (mean_along(squares, rank - 2) - u.state(1)) * share;
    results.insert(results.end(), {rows, columns});
    // Keras divides first: where squares are its epsilon alone, the product of two of them is below what f32 holds
    const Val mean = floored(mean_along(rows, rank - 2), u.number(kEpsilon));
    estimate = u.keras() ? rows / mean * columns : rows * columns / mean;
  } else {
    estimate = u.state(2) + (squares - u.state(2)) * share;
    results.push_back(estimate);
  }
  const Val move = u.gradient / op::sqrt(floored(estimate, u.number(kEpsilon) * u.number(kEpsilon)));
  const auto root_mean_square = [&](Val x) { return norm(x) / std::sqrt(count); };
  const Val one = l.builder.scalar(1, DType::kF64);
  const Val size = op::maximum(hone::cast(root_mean_square(u.keras() ? u.weight : l.x(kWeight)), DType::kF64), u.number(kEpsilon2));
  const Val excess = op::maximum(hone::cast(root_mean_square(move), DType::kF64) / u.number(kClipThreshold), one);
  results[0] = u.weight - move * u.rounded(size * op::minimum(u.rate, 1.0 / op::sqrt(u.step)) / excess);
  return results;
}

constexpr FixedList<AttrRef, 12> kAdamAttrs = {kBeta1, kBeta2, kEpsilon, kWeightDecay, kAmsgrad, kKeras};
constexpr Gradient kNoGradient = no_gradient("it is an update, not a function to be trained");

}  // namespace

constinit const OpDef sgd = {
    .name = "sgd",
    .doc = "stochastic gradient descent with momentum, plain or Nesterov's",
    .inputs = {"weight", "gradient", "learning_rate", "step", "velocity?", "momentum?", "dampening?", "weight_decay?"},
    .results = {"weight", "velocity"},
    .attrs = {kMomentum, kDampening, kNesterov, kWeightDecay, kKeras},
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_sgd,
};

constinit const OpDef adam = {
    .name = "adam",
    .doc = "Adam (Kingma & Ba 2015), weight decay added to the gradient in PyTorch's convention",
    .inputs = {"weight", "gradient", "learning_rate", "step", "m", "v", "v_max?", "beta1?", "beta2?", "epsilon?", "weight_decay?"},
    .results = {"weight", "m", "v", "v_max"},
    .attrs = kAdamAttrs,
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_adam<Decay::kOfLoss>,
};

constinit const OpDef adamw = {
    .name = "adamw",
    .doc = "Adam with decoupled weight decay (Loshchilov & Hutter 2019)",
    .inputs = {"weight", "gradient", "learning_rate", "step", "m", "v", "v_max?", "beta1?", "beta2?", "epsilon?", "weight_decay?"},
    .results = {"weight", "m", "v", "v_max"},
    .attrs = kAdamAttrs,
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_adam<Decay::kDecoupled>,
};

constinit const OpDef nadam = {
    .name = "nadam",
    .doc = "Adam with Nesterov momentum and a momentum schedule (Dozat 2016)",
    .inputs = {"weight", "gradient", "learning_rate", "step", "m", "v", "mu_product", "beta1?", "beta2?", "epsilon?", "momentum_decay?", "weight_decay?"},
    .results = {"weight", "m", "v", "mu_product"},
    .attrs = {kBeta1, kBeta2, kEpsilon, kMomentumDecay, kWeightDecay, kKeras},
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_nadam,
};

constinit const OpDef rmsprop = {
    .name = "rmsprop",
    .doc = "RMSprop (Hinton 2012), plain, centered or with momentum",
    .inputs = {"weight", "gradient", "learning_rate", "step", "mean_square", "mean?", "velocity?", "rho?", "epsilon?", "momentum?", "weight_decay?"},
    .results = {"weight", "mean_square", "mean", "velocity"},
    .attrs = {kRho, kEpsilon, kMomentum, kCentered, kWeightDecay, kKeras},
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_rmsprop,
};

constinit const OpDef adagrad = {
    .name = "adagrad",
    .doc = "Adagrad (Duchi et al. 2011)",
    .inputs = {"weight", "gradient", "learning_rate", "step", "sum", "epsilon?", "lr_decay?", "weight_decay?"},
    .results = {"weight", "sum"},
    .attrs = {kEpsilon, kLrDecay, kWeightDecay, kKeras},
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_adagrad,
};

constinit const OpDef adamax = {
    .name = "adamax",
    .doc = "Adam with the largest gradient in place of the second moment (Kingma & Ba 2015)",
    .inputs = {"weight", "gradient", "learning_rate", "step", "m", "largest", "beta1?", "beta2?", "epsilon?", "weight_decay?"},
    .results = {"weight", "m", "largest"},
    .attrs = {kBeta1, kBeta2, kEpsilon, kWeightDecay, kKeras},
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_adamax,
};

constinit const OpDef adadelta = {
    .name = "adadelta",
    .doc = "Adadelta (Zeiler 2012)",
    .inputs = {"weight", "gradient", "learning_rate", "step", "mean_square", "mean_square_move", "rho?", "epsilon?", "weight_decay?"},
    .results = {"weight", "mean_square", "mean_square_move"},
    .attrs = {kRho, kEpsilon, kWeightDecay, kKeras},
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_adadelta,
};

constinit const OpDef lamb = {
    .name = "lamb",
    .doc = "LAMB: Adam's update, as long as the weight (You et al. 2020)",
    .inputs = {"weight", "gradient", "learning_rate", "step", "m", "v", "beta1?", "beta2?", "epsilon?", "weight_decay?"},
    .results = {"weight", "m", "v"},
    .attrs = {kBeta1, kBeta2, kEpsilon, kWeightDecay, kKeras},
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_lamb,
};

constinit const OpDef lion = {
    .name = "lion",
    .doc = "Lion: the sign of the momentum (Chen et al. 2023)",
    .inputs = {"weight", "gradient", "learning_rate", "step", "m", "beta1?", "beta2?", "weight_decay?"},
    .results = {"weight", "m"},
    .attrs = {kBeta1, kBeta2, kWeightDecay, kKeras},
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_lion,
};

constinit const OpDef muon = {
    .name = "muon",
    .doc = "Muon: the momentum of a matrix, orthogonalized (Jordan et al. 2024)",
    .inputs = {"weight", "gradient", "learning_rate", "step", "velocity", "momentum?", "weight_decay?"},
    .results = {"weight", "velocity"},
    .attrs = {kMomentum, kNesterov, kWeightDecay, kOutputsLast, kKeras},
    .infer =
        [](Infer& infer) {
          infer.require(infer.rank(kWeight) == 2 and is_constant(infer.shape(kWeight)), Code::kShape, "the weight must be a matrix of fixed extents");
          return infer_update(infer);
        },
    .grad = kNoGradient,
    .lower = lower_muon,
};

constinit const OpDef adafactor = {
    .name = "adafactor",
    .doc = "Adafactor (Shazeer & Stern 2018), with rows and columns of the last two axes or, for vectors, the whole second moment",
    .inputs = {"weight", "gradient", "learning_rate", "step", "rows?", "columns?", "v?", "beta2_decay?", "epsilon?", "epsilon2?", "clip_threshold?", "weight_decay?"},
    .results = {"weight", "rows", "columns", "v"},
    .attrs = {kBeta2Decay, kEpsilon, kEpsilon2, kClipThreshold, kWeightDecay, kKeras},
    .infer =
        [](Infer& infer) {
          infer.require(is_constant(infer.shape(kWeight)), Code::kShape, "the weight must have fixed extents");
          infer.require(infer.has(kStates) == infer.has(kStates + 1) and infer.has(kStates) != infer.has(kStates + 2), Code::kShape, "needs rows and columns, or v");
          return infer_update(infer);
        },
    .grad = kNoGradient,
    .lower = lower_adafactor,
};

}  // namespace hone::op
