// Optimizers: one update of one weight. Operands: the weight, the mean loss's gradient, the learning rate and the number of this step (from 1), both f64
// scalars, then the optimizer's states; a state is there only where its attributes need it (the pass that attaches optimizers decides by the same table).
// Results: the new weight, then the new states that are there, in the operands' order. Scalars are worked out in f64 and rounded once; elements are multiplied
// by the reciprocal of a scalar rather than divided by it: a division takes as long as ten multiplications.
// Sources: torch.optim's and keras.optimizers' documented formulas; where they differ, `keras` picks Keras's.
#include <fmt/format.h>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

enum Operand : std::size_t { kWeight, kGradient, kRate, kStep, kStates };

/// The new weight and new states have the old ones' types.
std::vector<Type> infer_update(Infer& infer) {
  infer.require(infer.type(kWeight) == infer.type(kGradient), Code::kShape, "weight and gradient differ in type");
  std::vector<Type> types = {infer.type(kWeight)};
  for (std::size_t i = kStates; i < infer.count(); ++i)
    if (infer.has(i)) types.push_back(infer.type(i));
  return types;
}

/// One update being built: the weight's type for tensors, f64 for scalars.
struct Update {
  explicit Update(const Lower& lower) : l(lower), weight(l.x(kWeight)), gradient(l.x(kGradient)), rate(l.x(kRate)), step(l.x(kStep)) {
    const double decay = l.attrs[kWeightDecay];
    if (decay == 0) return;
    if (l.attrs[kKeras] or *l.node.op == op::adamw) weight = weight - weight * rounded(rate * decay);  // decoupled, as AdamW
    else gradient = gradient + weight * decay;                                                         // added to the loss
  }

  const Lower& l;
  Val weight, gradient, rate, step;

  double attr(const AttrKey<double>& key) const { return l.attrs[key]; }
  bool keras() const { return l.attrs[kKeras]; }
  bool has(std::size_t i) const { return l.has(kStates + i); }
  Val state(std::size_t i) const { return l.x(kStates + i); }
  /// A constant as Keras sees it in its schedules: rounded to f32.
  double constant(double value) const { return keras() ? static_cast<double>(static_cast<float>(value)) : value; }
  /// An f64 scalar in the weight's type.
  Val rounded(Val scalar) const { return hone::cast(scalar, weight.dtype()); }
  /// base^exponent for an f64 scalar exponent.
  Val power(double base, Val exponent) const { return op::pow(l.builder.scalar(base, DType::kF64), exponent); }
  Val correction(const AttrKey<double>& beta) const { return 1.0 - power(constant(attr(beta)), step); }
  /// decay * old + (1 - decay) * value
  static Val moving(Val old, double decay, Val value) { return old + (value - old) * (1 - decay); }
};

/// m and v of Adam's family.
struct Moments {
  Val first, second;
};
Moments moments(const Update& u) {
  return {Update::moving(u.state(0), u.attr(kBeta1), u.gradient), Update::moving(u.state(1), u.attr(kBeta2), square(u.gradient))};
}

std::vector<Val> lower_sgd(const Lower& l) {
  const Update u(l);
  if (not u.has(0)) return {u.weight - u.gradient * u.rounded(u.rate)};
  const double momentum = u.attr(kMomentum);
  const bool nesterov = l.attrs[kNesterov];
  if (u.keras()) {
    const Val move = u.gradient * u.rounded(u.rate), velocity = u.state(0) * momentum - move;
    return {nesterov ? u.weight + (velocity * momentum - move) : u.weight + velocity, velocity};
  }
  Val velocity = u.state(0) * momentum + u.gradient * (1 - u.attr(kDampening));
  if (u.attr(kDampening) != 0) velocity = op::where(op::equal(u.step, l.builder.scalar(1, DType::kF64)), u.gradient, velocity);  // the first step is not damped
  return {u.weight - (nesterov ? u.gradient + velocity * momentum : velocity) * u.rounded(u.rate), velocity};
}

std::vector<Val> lower_adam(const Lower& l) {
  const Update u(l);
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
  const double beta1 = u.constant(u.attr(kBeta1)), base = u.constant(0.96), decay = u.attr(kMomentumDecay);
  const auto mu = [&](Val step) { return (1.0 - u.power(base, step * decay) * 0.5) * beta1; };
  const Val mu_now = mu(u.step), mu_next = mu(u.step + 1.0), product = u.state(2) * mu_now;
  const Val root = op::sqrt(v * u.rounded(1.0 / u.correction(kBeta2))) + u.attr(kEpsilon);
  const Val move = u.gradient * u.rounded(u.rate * (1.0 - mu_now) / (1.0 - product)) + m * u.rounded(u.rate * mu_next / (1.0 - product * mu_next));
  return {u.weight - move / root, m, v, product};
}

std::vector<Val> lower_rmsprop(const Lower& l) {
  const Update u(l);
  const Val mean_square = Update::moving(u.state(0), u.attr(kRho), square(u.gradient));
  std::vector<Val> states = {mean_square};
  Val variance = mean_square;
  if (u.has(1)) {  // centered
    const Val mean = Update::moving(u.state(1), u.attr(kRho), u.gradient);
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
  const Val rate = u.rounded(u.rate / (1.0 + (u.step - 1.0) * u.attr(kLrDecay)));
  const Val root = u.keras() ? op::sqrt(total + u.attr(kEpsilon)) : op::sqrt(total) + u.attr(kEpsilon);
  return {u.weight - u.gradient * rate / root, total};
}

constexpr FixedList<AttrRef, 12> kAdamAttrs = {kBeta1, kBeta2, kEpsilon, kWeightDecay, kAmsgrad, kKeras};
constexpr Gradient kNoGradient = no_gradient("it is an update, not a function to be trained");

}  // namespace

constinit const OpDef sgd = {
    .name = "sgd",
    .doc = "stochastic gradient descent with momentum, plain or Nesterov's",
    .inputs = {"weight", "gradient", "learning_rate", "step", "velocity?"},
    .results = {"weight", "velocity"},
    .attrs = {kMomentum, kDampening, kNesterov, kWeightDecay, kKeras},
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_sgd,
};

constinit const OpDef adam = {
    .name = "adam",
    .doc = "Adam (Kingma & Ba 2015), weight decay added to the gradient in PyTorch's convention",
    .inputs = {"weight", "gradient", "learning_rate", "step", "m", "v", "v_max?"},
    .results = {"weight", "m", "v", "v_max"},
    .attrs = kAdamAttrs,
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_adam,
};

constinit const OpDef adamw = {
    .name = "adamw",
    .doc = "Adam with decoupled weight decay (Loshchilov & Hutter 2019)",
    .inputs = {"weight", "gradient", "learning_rate", "step", "m", "v", "v_max?"},
    .results = {"weight", "m", "v", "v_max"},
    .attrs = kAdamAttrs,
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_adam,
};

constinit const OpDef nadam = {
    .name = "nadam",
    .doc = "Adam with Nesterov momentum and a momentum schedule (Dozat 2016)",
    .inputs = {"weight", "gradient", "learning_rate", "step", "m", "v", "mu_product"},
    .results = {"weight", "m", "v", "mu_product"},
    .attrs = {kBeta1, kBeta2, kEpsilon, kMomentumDecay, kWeightDecay, kKeras},
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_nadam,
};

constinit const OpDef rmsprop = {
    .name = "rmsprop",
    .doc = "RMSprop (Hinton 2012), plain, centered or with momentum",
    .inputs = {"weight", "gradient", "learning_rate", "step", "mean_square", "mean?", "velocity?"},
    .results = {"weight", "mean_square", "mean", "velocity"},
    .attrs = {kRho, kEpsilon, kMomentum, kCentered, kWeightDecay, kKeras},
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_rmsprop,
};

constinit const OpDef adagrad = {
    .name = "adagrad",
    .doc = "Adagrad (Duchi et al. 2011)",
    .inputs = {"weight", "gradient", "learning_rate", "step", "sum"},
    .results = {"weight", "sum"},
    .attrs = {kEpsilon, kLrDecay, kWeightDecay, kKeras},
    .infer = infer_update,
    .grad = kNoGradient,
    .lower = lower_adagrad,
};

}  // namespace hone::op
