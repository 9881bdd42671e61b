// Activations.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

using Attributes = std::vector<GradientAttribute>;

/// Shapes with the attributes' defaults, then each of `attributes`, of which the last comes with a symbolic batch, too.
void add_activation(GradientCases& cases, const char* op, double low, double high, const std::vector<Attributes>& attributes = {},
                    std::int64_t opset = 17) {
  cases.add(op, "a vector", {x({8}, low, high)}).opset(opset);
  cases.add(op, "a scalar", {x({}, low, high)}).opset(opset);
  cases.add(op, "a matrix", {x({3, 5}, low, high)}).opset(opset);
  cases.add(op, "rank 4 with extents of 1", {x({1, 3, 1, 4}, low, high)}).opset(opset);
  cases.add(op, "a symbolic batch", {x({"N", 4}, low, high)}).opset(opset);
  cases.add(op, "two symbols", {x({"N", "M", 2}, low, high)}).opset(opset);
  cases.add(op, "no elements", {x({0, 3}, low, high)}).opset(opset);
  cases.add(op, "a longer vector", {x({53}, low, high)}).opset(opset);
  cases.add(op, "f64", {of_type(DType::kF64, x({3, 4}, low, high))}).opset(opset);
  cases.add(op, "only negative", {x({2, 7}, low, -0.05)}).opset(opset);
  cases.add(op, "only positive", {x({2, 7}, 0.05, high)}).opset(opset);
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const std::string which = "attributes " + std::to_string(i + 1);
    cases.add(op, which, {x({4, 5}, low, high)}, attributes[i]).opset(opset);
    cases.add(op, which + ", a symbolic batch", {x({"N", 3}, low, high)}, attributes[i]).opset(opset);
  }
}

void add_prelu(GradientCases& cases) {
  cases.add("PRelu", "one slope", {x({3, 4}), x({1})});
  cases.add("PRelu", "a slope an element", {x({3, 4}), x({3, 4})});
  cases.add("PRelu", "a slope a column", {x({3, 4}), x({4})});
  cases.add("PRelu", "a slope a channel", {x({2, 3, 2, 2}), x({3, 1, 1})});
  cases.add("PRelu", "a scalar slope", {x({2, 3}), x({})});
  cases.add("PRelu", "a slope a row", {x({3, 4}), x({3, 1})});
  cases.add("PRelu", "a constant slope", {x({3, 4}), constant(x({4}, 0.1, 0.5))});
  cases.add("PRelu", "a symbolic batch", {x({"N", 5}), x({5})});
  cases.add("PRelu", "rank 5", {x({2, 2, 1, 2, 2}), x({2, 1, 1, 1})});
  cases.add("PRelu", "constant data", {constant(x({3, 4})), x({4})});
  cases.add("PRelu", "no elements", {x({0, 4}), x({4})});
}

void add_clip(GradientCases& cases) {
  const auto bound = [](double value) { return constant(x_of({}, {value})); };
  cases.add("Clip", "both bounds", {x({3, 5}), bound(-0.77), bound(1.13)});
  cases.add("Clip", "a lower bound", {x({3, 5}), bound(-0.77)});
  cases.add("Clip", "an upper bound", {x({3, 5}), absent(), bound(0.53)});
  cases.add("Clip", "no bound", {x({3, 5})});
  cases.add("Clip", "bounds that are fed", {x({4, 4}), fed(x_of({}, {-0.93})), fed(x_of({}, {0.47}))});
  cases.add("Clip", "by bounds, too", {x({4, 4}), x_of({}, {-0.93}), x_of({}, {0.47})});
  cases.add("Clip", "by bounds that cross", {x({4, 3}), x_of({}, {0.61}), x_of({}, {-0.47})});
  cases.add("Clip", "a symbolic batch", {x({"N", 4}), bound(-0.79), bound(0.79)});
  cases.add("Clip", "bounds beyond all elements", {x({2, 3}), bound(-9), bound(9)});
  cases.add("Clip", "all elements clipped", {x({2, 3}, 1, 2), bound(-0.5), bound(0.5)});
  cases.add("Clip", "a scalar", {x_of({}, {0.3}), bound(0), bound(1)});
  cases.add("Clip", "rank 4", {x({2, 1, 3, 2}), bound(-1.03), bound(1.03)});
  cases.add("Clip", "bounds as attributes", {x({3, 4})}, {{"min", -0.77}, {"max", 1.13}}).opset(7);
  cases.add("Clip", "no elements", {x({0, 2}), bound(0), bound(1)});
}

void add_swiglu(GradientCases& cases) {
  const auto add = [&](const char* says, GradientInput a, GradientInput b, std::vector<GradientAttribute> attributes = {}) {
    cases.add("SwiGLU", says, {std::move(a), std::move(b)}, std::move(attributes)).opset(28);
  };
  add("a matrix", x({3, 4}), x({3, 4}));
  add("a vector", x({7}), x({7}));
  add("a scalar", x({}), x({}));
  add("alpha", x({3, 4}), x({3, 4}), {{"alpha", 1.7}});
  add("alpha below 0", x({3, 4}), x({3, 4}), {{"alpha", -0.6}});
  add("a constant gate", constant(x({2, 5})), x({2, 5}));
  add("a constant factor", x({2, 5}), constant(x({2, 5})));
  add("a symbolic batch", x({"N", 4}), x({"N", 4}));
  add("f64", of_type(DType::kF64, x({2, 3})), of_type(DType::kF64, x({2, 3})));
  add("no elements", x({0, 3}), x({0, 3}));
  add("rank 4", x({1, 2, 3, 2}), x({1, 2, 3, 2}));
}

}  // namespace

void add_activation_cases(GradientCases& cases) {
  add_activation(cases, "Relu", -2, 2);
  add_activation(cases, "Sigmoid", -4, 4);
  add_activation(cases, "Tanh", -3, 3);
  add_activation(cases, "Softplus", -4, 4);
  add_activation(cases, "Softsign", -3, 3);
  add_activation(cases, "LeakyRelu", -2, 2, {{{"alpha", 0.3}}, {{"alpha", -0.5}}, {{"alpha", 0.0}}});
  add_activation(cases, "Elu", -3, 2, {{{"alpha", 0.5}}, {{"alpha", 2.5}}});
  add_activation(cases, "Selu", -3, 2, {{{"alpha", 1.2}}, {{"gamma", 0.7}}, {{"alpha", 2.0}, {"gamma", 1.5}}});
  add_activation(cases, "ThresholdedRelu", -3, 3, {{{"alpha", 0.45}}, {{"alpha", -0.45}}});
  add_activation(cases, "HardSigmoid", -4, 4, {{{"alpha", 0.4}}, {{"beta", 0.3}}, {{"alpha", 0.15}, {"beta", 0.45}}});
  add_activation(cases, "HardSwish", -4.5, 4.5);
  add_activation(cases, "Celu", -3, 2, {{{"alpha", 0.5}}, {{"alpha", 2.5}}});
  add_activation(cases, "Mish", -4, 3, {}, 18);
  add_activation(cases, "Swish", -4, 4, {{{"alpha", 1.7}}, {{"alpha", -0.5}}}, 24);
  add_activation(cases, "Gelu", -4, 4, {{{"approximate", "tanh"}}, {{"approximate", "none"}}}, 20);
  add_swiglu(cases);
  add_activation(cases, "Shrink", -3, 3, {{{"lambd", 1.17}}, {{"bias", 0.4}}, {{"lambd", 0.83}, {"bias", -0.3}}});
  add_prelu(cases);
  add_clip(cases);
}

}  // namespace hone::test
