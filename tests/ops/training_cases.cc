// Normalization, losses, metrics, optimizers, collectives.
#include <fmt/format.h>

#include <limits>

#include "tests/ops/op_cases.h"

namespace hone::test {

void add_normalization_cases(Cases& cases) {
  for (const OpDef* op : {&op::softmax, &op::safe_softmax, &op::log_softmax}) {
    cases.add(*op, "last axis", {f32({kN, 5})}, {kAxis = 1}).gives({kN, 5});
    cases.add(*op, "first axis", {f32({kN, 2})}, {kAxis = 0});
    cases.add(*op, "axis in the middle", {f32({2, 3, 2})}, {kAxis = 1});
    cases.add(*op, "one class", {f32({kN, 1})}, {kAxis = 1});
    cases.add(*op, "no rows", {f32({kEmpty, 3})}, {kAxis = 1});
    cases.add(*op, "a vector", {f32({7})}, {kAxis = 0});
  }
  cases.add(op::softmax, "large numbers", {given({2, 2}, {1000, 1000, -1000, 1000})}, {kAxis = 1}).equals({0.5, 0.5, 0, 1}).slopes({0, 0, 0, 0});
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  cases.add(op::safe_softmax, "a row that is masked as a whole", {given({3, 2}, {kNever, kNever, 1, 1, kNever, 2})}, {kAxis = 1}).equals({0, 0, 0.5, 0.5, 0, 1}).slopes({0, 0, 0, 0, 0, 0});
  cases.add(op::log_softmax, "large numbers", {given({2}, {1000, -1000})}, {kAxis = 0}).equals({0, -2000}).slopes({-1, 1});

  const auto within_sample = [&](std::string says, Shape x, std::int64_t axis, Shape scale, Shape bias) {
    const Attrs attrs = {kAxis = axis, kEpsilon = 1e-5};
    cases.add(op::layer_norm, says, {f32(x), f32(scale), f32(bias)}, attrs).gives(x);
    cases.add(op::layer_norm, says + ", scaled only", {f32(x), f32(scale)}, attrs);
    cases.add(op::layer_norm, says + ", shifted only", {f32(x), absent(), f32(bias)}, attrs);
    cases.add(op::layer_norm, says + ", neither", {f32(x)}, attrs);
    cases.add(op::rms_norm, says, {f32(x), f32(scale)}, attrs).gives(x);
    cases.add(op::rms_norm, says + ", not scaled", {f32(x)}, attrs);
  };
  within_sample("last axis", {kN, 5}, 1, {5}, {5});
  within_sample("last two axes", {kN, 2, 3}, 1, {2, 3}, {2, 3});
  within_sample("all axes", {3, 4}, 0, {3, 4}, {4});
  within_sample("scale and bias broadcast", {2, 3, 4}, 2, {3, 1}, {});
  within_sample("symbolic extents", {2, kM, 4}, 1, {kM, 4}, {4});
  within_sample("no rows", {kEmpty, 3}, 1, {3}, {3});
  cases.add(op::layer_norm, "by hand", {given({1, 4}, {1, 3, 5, 7}), given({4}, {1, 1, 2, 2}), given({4}, {0, 1, 0, 0})}, {kAxis = 1, kEpsilon = 4})
      .equals({-1, 1. - 1. / 3, 2. / 3, 2});
  cases.add(op::layer_norm, "far from 0", {given({1, 2}, {10000, 10001})}, {kAxis = 1, kEpsilon = 0.75})
      .equals({-0.5, 0.5})
      .not_differentiated("differences of sums around 10000 keep too few digits");
  cases.add(op::layer_norm, "one element: all 0", {f32({kN, 1})}, {kAxis = 1, kEpsilon = 1e-5}).equals({0, 0, 0});
  cases.add(op::rms_norm, "by hand", {given({1, 2}, {3, 1}), given({2}, {1, 2})}, {kAxis = 1, kEpsilon = 4}).equals({1, 2. / 3});

  const auto normalize = [&](const OpDef& op, std::string says, Shape x, Attrs attrs) {
    const Dim channels = x[1];
    cases.add(op, std::move(says), {f32(std::move(x)), f32({channels}, 0.5, 2), f32({channels}), f32({channels}), f32({channels}, 0.5, 2)}, std::move(attrs));
  };
  const std::pair<std::string, Shape> inputs[] = {{"rank 2", {kN, 4}}, {"rank 3", {kN, 2, 5}}, {"an image", {2, 3, 2, 3}}, {"rank 5", {2, 2, 1, 2, 2}}};
  for (const auto& [says, x] : inputs) {
    normalize(op::batch_norm, says, x, {kEpsilon = 1e-5});
    for (const bool keras : {false, true}) {
      normalize(op::batch_norm_train, says + (keras ? ", Keras" : ", PyTorch"), x, {kEpsilon = 1e-3, kMomentum = 0.9, kKeras = keras});
      cases.gives(x).gives({x[1]}).gives({x[1]}).varies_in(1);
    }
  }
  normalize(op::batch_norm_train, "one element a channel", {1, 3}, {kEpsilon = 1e-3, kMomentum = 0.5});
  cases.varies_in(1);
}

namespace {

Operand classes(Shape shape, double count) { return whole(DType::kI64, std::move(shape), 0, count - 1); }

void add_class_losses(Cases& cases, const OpDef& op, double low, double high) {
  const auto loss = [&](std::string says, Shape output, Operand target, Attrs attrs) {
    cases.add(op, std::move(says), {f32(std::move(output), low, high), std::move(target)}, std::move(attrs)).gives({}).gives({});
  };
  loss("rows", {kN, 4}, classes({kN}, 4), {kAxis = 1});
  loss("classes in the middle", {2, 3, kM}, classes({2, kM}, 3), {kAxis = 1});
  loss("an image", {2, 3, 2, 2}, classes({2, 2, 2}, 3), {kAxis = 1});
  loss("classes first", {3, kN}, classes({kN}, 3), {kAxis = 0});
  loss("one target", {5}, classes({}, 5), {kAxis = 0});
  loss("label smoothing", {kN, 4}, classes({kN}, 4), {kAxis = 1, kLabelSmoothing = 0.1});
  loss("an ignored target", {3, 4}, given(DType::kI64, {3}, {1, -100, 3}), {kAxis = 1, kHasIgnoreIndex = true, kIgnoreIndex = -100});
  loss("all targets ignored", {2, 3}, given(DType::kI64, {2}, {0, 0}), {kAxis = 1, kHasIgnoreIndex = true, kIgnoreIndex = 0});
  loss("an ignored target with label smoothing", {3, 4}, given(DType::kI64, {3}, {1, 2, 2}),
       {kAxis = 1, kLabelSmoothing = 0.2, kHasIgnoreIndex = true, kIgnoreIndex = 1});
  const auto weighted = [&](std::string says, Shape output, Operand target, std::vector<Operand> weights, Attrs attrs) {
    std::vector<Operand> operands = {f32(std::move(output), low, high), std::move(target)};
    operands.insert(operands.end(), weights.begin(), weights.end());
    cases.add(op, std::move(says), std::move(operands), std::move(attrs)).gives({}).gives({});
  };
  for (const bool keras : {false, true}) {
    const std::string kind = keras ? ", Keras" : ", PyTorch";
    weighted("class weights" + kind, {kN, 4}, classes({kN}, 4), {f32({4}, 0.5, 2)}, {kAxis = 1, kKeras = keras});
    weighted("sample weights" + kind, {kN, 4}, classes({kN}, 4), {absent(), f32({kN}, 0.5, 2)}, {kAxis = 1, kKeras = keras});
    weighted("both, in the middle" + kind, {2, 3, kM}, classes({2, kM}, 3), {f32({3}, 0.5, 2), f32({2}, 0.5, 2)}, {kAxis = 1, kKeras = keras, kLabelSmoothing = 0.1});
    weighted("both, ignoring" + kind, {3, 4}, given(DType::kI64, {3}, {1, -100, 3}), {f32({4}, 0.5, 2), f32({3}, 0.5, 2)},
             {kAxis = 1, kKeras = keras, kHasIgnoreIndex = true, kIgnoreIndex = -100});
  }
  loss("probabilities", {kN, 4}, f32({kN, 4}, 0.05, 0.95), {kAxis = 1});
  loss("probabilities in the middle, smoothed", {2, 3, kM}, f32({2, 3, kM}, 0.05, 0.95), {kAxis = 1, kLabelSmoothing = 0.1});
  for (const bool keras : {false, true})
    weighted(fmt::format("probabilities, both weights, {}", keras ? "Keras" : "PyTorch"), {2, 3, kM}, f32({2, 3, kM}, 0.05, 0.95), {f32({3}, 0.5, 2), f32({2}, 0.5, 2)}, {kAxis = 1, kKeras = keras, kLabelSmoothing = 0.1});
  loss("targets of 32 bits", {kN, 3}, whole(DType::kI32, {kN}, 0, 2), {kAxis = 1});
  loss("no rows", {kEmpty, 3}, classes({kEmpty}, 3), {kAxis = 1});
}

/// `outputs` and `targets` lie between their bounds; `axis` is for losses that have one.
struct ValueLoss {
  const OpDef& op;
  double low, high, target_low, target_high;
  Attrs attrs = {};
  bool has_axis = false, knows_classes = false;
};

void add_value_losses(Cases& cases, const ValueLoss& loss) {
  for (const bool keras : {false, true}) {
    const std::string kind = keras ? ", Keras" : ", PyTorch";
    Attrs attrs = loss.attrs;
    attrs.set(kKeras = keras);
    const auto operands = [&](const Shape& shape) { return std::vector{f32(shape, loss.low, loss.high), f32(shape, loss.target_low, loss.target_high)}; };
    for (const Shape& shape : {Shape{kN, 4}, Shape{kN}, Shape{}, Shape{2, 3, 2}, Shape{kEmpty, 2}}) {
      if (loss.has_axis and shape.size() < 2) continue;
      if (loss.has_axis) attrs.set(kAxis = static_cast<std::int64_t>(shape.size()) - 1);
      cases.add(loss.op, "f32[" + to_string(shape) + "]" + kind, operands(shape), attrs).gives({}).gives({});
    }
    if (loss.has_axis) attrs.set(kAxis = std::int64_t{1});
    std::vector<Operand> with_weights = operands({kN, 4, 2});
    if (loss.knows_classes) {
      with_weights.push_back(f32({2}, 0.5, 2));
      attrs.set(kLabelSmoothing = 0.2);
    }
    with_weights.push_back(f32({kN}, 0.5, 2));
    cases.add(loss.op, "sample weights" + kind, with_weights, attrs).gives({}).gives({});
  }
}

void add_metrics(Cases& cases) {
  const auto metric = [&](const OpDef& op, std::string says, Operand output, Operand target, Attrs attrs) -> Cases& {
    if (op == op::top_k_accuracy) attrs.set(kTopK = 2);
    return cases.add(op, std::move(says), {std::move(output), std::move(target)}, std::move(attrs)).gives({});
  };
  for (const OpDef* op : {&op::accuracy, &op::top_k_accuracy}) {
    metric(*op, "symbolic batch", f32({kN, 4}), classes({kN}, 4), {kAxis = 1});
    metric(*op, "classes in the middle", f32({2, 3, kM}), classes({2, kM}, 3), {kAxis = 1});
    metric(*op, "no rows", f32({kEmpty, 3}), classes({kEmpty}, 3), {kAxis = 1}).equals({0});
  }
  const Operand output = given({4, 3}, {1, 2, 3, 3, 2, 1, 2, 3, 1, 1, 3, 2}), target = given(DType::kI64, {4}, {2, 1, 2, 0});
  metric(op::accuracy, "by hand", output, target, {kAxis = 1}).equals({1});
  metric(op::top_k_accuracy, "by hand", output, target, {kAxis = 1}).equals({2});
  metric(op::accuracy, "ignored targets", output, target, {kAxis = 1, kHasIgnoreIndex = true, kIgnoreIndex = 2}).equals({0});
  metric(op::top_k_accuracy, "ignored targets", output, target, {kAxis = 1, kHasIgnoreIndex = true, kIgnoreIndex = 2}).equals({1});
}

}  // namespace

void add_loss_cases(Cases& cases) {
  add_class_losses(cases, op::softmax_cross_entropy, -2, 2);
  add_class_losses(cases, op::cross_entropy, 0.05, 0.95);
  cases.add(op::cross_entropy, "probabilities of 0 and 1 are clipped, and flat", {given({2, 2}, {0, 1, 1, 0}), given(DType::kI64, {2}, {0, 0})}, {kAxis = 1})
      .slopes({0, 0, 0, 0});
  add_class_losses(cases, op::nll, -3, -0.1);
  add_value_losses(cases, {op::mse, -2, 2, -2, 2});
  add_value_losses(cases, {op::mae, -2, -0.1, 0.1, 2});
  add_value_losses(cases, {op::huber, -2, 2, -2, 2, {kDelta = 0.6}});
  add_value_losses(cases, {op::bce, 0.05, 0.95, 0.05, 0.45, {}, false, true});  // Keras's weight leaps at 1/2
  add_value_losses(cases, {op::bce_with_logits, -2, 2, 0.55, 0.95, {}, false, true});
  add_value_losses(cases, {op::hinge, -0.9, 0.9, 0.1, 1});
  add_value_losses(cases, {op::squared_hinge, -0.9, 0.9, 0.1, 1});
  add_value_losses(cases, {op::log_cosh, -2, 2, -2, 2});
  add_value_losses(cases, {op::msle, 0.1, 2, 0.1, 2});
  add_value_losses(cases, {op::mape, -2, -0.1, 0.5, 2});
  add_value_losses(cases, {op::poisson, 0.1, 2, 0.1, 3});
  add_value_losses(cases, {op::kl_divergence, 0.05, 0.95, 0.05, 0.95, {}, true});
  add_value_losses(cases, {op::cosine, -2, 2, -2, 2, {}, true});
  for (const Shape& shape : {Shape{kN, 4}, Shape{kN}, Shape{}}) cases.add(op::given_loss, "f32[" + to_string(shape) + "]", {f32(shape)}).gives({}).gives({});
  cases.add(op::given_loss, "sample weights", {f32({kN, 4}), f32({kN}, 0.5, 2)}).gives({}).gives({});
  cases.add(op::mae, "where they meet", {given({2}, {1, 2}), given({2}, {1, 3})}).equals({1}).slopes({0, -1});
  cases.add(op::hinge, "labels of 0 and 1, and the bend", {given({3}, {0.5, 1, -3}), given({3}, {0, 1, 1})}).equals({5.5}).slopes({1, -0.5, -1});
  cases.add(op::bce, "certainty ends at 100, and is flat", {given({3}, {0, 1, 0}), given({3}, {1, 0, 0})}).equals({200}).slopes({0, 0, 1});
  cases.add(op::kl_divergence, "a probability of 0", {given({1, 2}, {-1, -2}), given({1, 2}, {0, 1})}, {kAxis = 1}).equals({2}).slopes({0, -1});
  cases.add(op::bce_with_logits, "large logits", {given({4}, {100, -100, 100, -100}), given({4}, {1, 0, 0, 1})}).equals({200}).slopes({0, 0, 1, -1});
  add_metrics(cases);
}

void add_optimizer_cases(Cases& cases) {
  const Operand rate = given(DType::kF64, {}, {0.01}), first = given(DType::kF64, {}, {1}), third = given(DType::kF64, {}, {3});
  const Operand state = f32({3, 2}), square = f32({3, 2}, 0.1, 2), large = f32({3, 2}, 1, 3);
  const auto update = [&](const OpDef& op, std::string says, const Operand& step, std::vector<Operand> states, Attrs attrs) {
    std::vector<Operand> operands = {f32({3, 2}), f32({3, 2}), rate, step};
    operands.insert(operands.end(), states.begin(), states.end());
    cases.add(op, std::move(says), std::move(operands), std::move(attrs)).gives({3, 2});
  };
  const auto with = [](Attrs attrs, std::initializer_list<Attr> more) {
    for (const Attr& attr : more) attrs.set(attr);
    return attrs;
  };
  for (const bool keras : {false, true}) {
    const std::string kind = keras ? "Keras" : "PyTorch";
    const Attrs base = {kKeras = keras, kEpsilon = 1e-7, kBeta1 = 0.9, kBeta2 = 0.999, kRho = 0.9, kMomentumDecay = 0.004, kBeta2Decay = -0.8, kEpsilon2 = 1e-3, kClipThreshold = 1.0};
    const auto of = [&](const OpDef& op, std::initializer_list<Attr> more) {
      Attrs used;
      for (const AttrRef& key : op.attrs)
        for (const auto& [name, attr] : with(base, more))
          if (attr.spec == key.spec) used.set(attr);
      return used;
    };
    update(op::sgd, kind, first, {}, of(op::sgd, {}));
    update(op::sgd, kind + ", weight decay", third, {}, of(op::sgd, {kWeightDecay = 0.1}));
    update(op::sgd, kind + ", momentum", third, {state}, of(op::sgd, {kMomentum = 0.9}));
    update(op::sgd, kind + ", Nesterov", third, {state}, of(op::sgd, {kMomentum = 0.9, kNesterov = true}));
    update(op::sgd, kind + ", dampening", first, {state}, of(op::sgd, {kMomentum = 0.9, kDampening = 0.3}));
    for (const OpDef* op : {&op::adam, &op::adamw}) {
      update(*op, kind, first, {state, square}, of(*op, {}));
      update(*op, kind + ", AMSGrad and weight decay", third, {state, square, large}, of(*op, {kAmsgrad = true, kWeightDecay = 0.1}));
    }
    update(op::nadam, kind, third, {state, square, given(DType::kF64, {}, {0.8})}, of(op::nadam, {kWeightDecay = 0.01}));
    update(op::rmsprop, kind, third, {square}, of(op::rmsprop, {}));
    update(op::rmsprop, kind + ", momentum", third, {large, absent(), state}, of(op::rmsprop, {kMomentum = 0.9}));
    update(op::rmsprop, kind + ", centered with momentum", third, {f32({3, 2}, 5, 6), state, state}, of(op::rmsprop, {kMomentum = 0.9, kCentered = true}));
    const auto decayed = [&](const OpDef& op, const std::vector<Operand>& states, const std::string& with = "") {
      update(op, kind + with, first, states, of(op, {}));
      update(op, kind + with + ", weight decay", third, states, of(op, {kWeightDecay = 0.1}));
    };
    decayed(op::adamax, {state, square});
    decayed(op::adadelta, {square, square});
    decayed(op::lamb, {state, square});
    decayed(op::lion, {state});
    decayed(op::muon, {state});
    update(op::muon, kind + ", Nesterov", third, {state}, of(op::muon, {kMomentum = 0.9, kNesterov = true}));
    decayed(op::adafactor, {f32({3, 1}, 0.1, 2), f32({1, 2}, 0.1, 2)});
    decayed(op::adafactor, {absent(), absent(), square}, ", whole");
    const Operand nothing = given({2, 2}, {0, 0, 0, 0}), weight = given({2, 2}, {1, 2, 3, 4});
    cases.add(op::adafactor, kind + ", nothing to learn", {weight, nothing, rate, first, given({2, 1}, {0, 0}), given({1, 2}, {0, 0})}, of(op::adafactor, {kEpsilon = keras ? 1e-30 : 1e-7}))
        .gives({2, 2})
        .equals({1, 2, 3, 4});
    update(op::adagrad, kind, third, {square}, of(op::adagrad, {kLrDecay = 0.1}));
  }
}

void add_collective_cases(Cases& cases) {
  cases.add(op::all_reduce, "one replica", {given({2}, {1, 2})}, {kBucket = 1}).gives({2}).equals({1, 2});
  cases.add(op::all_reduce, "f64", {f64({})}, {kBucket = 0});
  cases.add(op::gradient, "of what does not depend on it", {f32({kN, 2}), f32({3})}).gives({3}).equals({0, 0, 0});
  cases.add(op::gradient, "with respect to several", {f32({}), f32({kN}), f64({2})}).gives({kN}).gives({2});
}

}  // namespace hone::test
