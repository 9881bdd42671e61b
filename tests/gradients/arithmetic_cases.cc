// Arithmetic of two operands and more, with broadcasting.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

struct Range {
  double low, high;
};

/// Pairs of operands: equal shapes, broadcasting of either and both, scalars, constants, no elements.
void add_pairs(GradientCases& cases, const char* op, Range a, Range b) {
  const auto xa = [&](std::vector<Extent> shape) { return x(std::move(shape), a.low, a.high); };
  const auto xb = [&](std::vector<Extent> shape) { return x(std::move(shape), b.low, b.high); };
  cases.add(op, "equal shapes", {xa({3, 4}), xb({3, 4})});
  cases.add(op, "a row on the right", {xa({3, 4}), xb({4})});
  cases.add(op, "a row on the left", {xa({4}), xb({2, 3, 4})});
  cases.add(op, "a column on the right", {xa({3, 4}), xb({3, 1})});
  cases.add(op, "both broadcast", {xa({2, 1, 3}), xb({4, 1})});
  cases.add(op, "a scalar on the right", {xa({2, 5}), xb({})});
  cases.add(op, "a scalar on the left", {xa({}), xb({2, 5})});
  cases.add(op, "two scalars", {xa({}), xb({})});
  cases.add(op, "a symbolic batch", {xa({"N", 5}), xb({5})});
  cases.add(op, "symbols on both sides", {xa({"N", 1, "M"}), xb({"N", 2, 1})});
  cases.add(op, "the left one is constant", {constant(xa({3, 1})), xb({3, 4})});
  cases.add(op, "the right one is constant", {xa({3, 4}), constant(xb({1, 4}))});
  cases.add(op, "rank 5", {xa({1, 2, 1, 3, 1}), xb({2, 2, 1, 1, 2})});
  cases.add(op, "no elements", {xa({2, 0}), xb({1})});
}

/// Any number of operands.
void add_lists(GradientCases& cases, const char* op) {
  cases.add(op, "one operand", {x({3, 4})});
  cases.add(op, "two operands", {x({3, 4}), x({3, 4})});
  cases.add(op, "three operands", {x({2, 3}), x({2, 3}), x({2, 3})});
  cases.add(op, "broadcast from the right", {x({2, 3, 4}), x({4})});
  cases.add(op, "broadcast from the left", {x({3}), x({2, 1}), x({2, 3})});
  cases.add(op, "all broadcast", {x({2, 1, 1}), x({3, 1}), x({4})});
  cases.add(op, "a scalar among them", {x({2, 3}), x({}), x({3})});
  cases.add(op, "a symbolic batch", {x({"N", 4}), x({4}), x({"N", 1})});
  cases.add(op, "a constant among them", {x({3, 2}), constant(x({3, 2})), x({2})});
  cases.add(op, "five operands", {x({2, 2}), x({2}), x({2, 1}), x({1, 2}), x({1})});
  cases.add(op, "the same shape of rank 4", {x({1, 2, 3, 2}), x({1, 2, 3, 2})});
}

/// Quotients stay away from whole numbers, where the remainder jumps.
void add_mod(GradientCases& cases) {
  for (const std::int64_t fmod : {0, 1}) {
    const auto add = [&](const char* says, GradientInput a, GradientInput b) {
      cases.add("Mod", std::string(fmod == 1 ? "truncated: " : "floored: ") + says, {std::move(a), std::move(b)}, {{"fmod", fmod}}).opset(28);
    };
    add("values of all signs", x_of({4}, {5.3, -5.3, 5.3, -5.3}), x_of({4}, {2, 2, -2, -2}));
    add("a row", x_of({2, 2}, {5.3, 4.2, -7.7, 0.6}), x_of({2}, {1.5, -2.5}));
    add("a column", x_of({2, 3}, {5.3, 4.2, -7.7, 0.6, 8.1, -3.2}), x_of({2, 1}, {1.7, -2.3}));
    add("a constant divisor", x({3, 4}, 2.1, 3.9), constant(x_of({}, {2})));
    add("a constant dividend", constant(x({3, 4}, 2.1, 3.9)), x_of({}, {2}));
    add("a symbolic batch", x({"N", 3}, 4.2, 5.8), x_of({3}, {2, -2, 2}));
  }
}

}  // namespace

void add_arithmetic_cases(GradientCases& cases) {
  add_mod(cases);
  add_pairs(cases, "Add", {-2, 2}, {-3, 3});
  add_pairs(cases, "Sub", {-2, 2}, {-3, 3});
  add_pairs(cases, "Mul", {-2, 2}, {-3, 3});
  add_pairs(cases, "Div", {-2, 2}, {0.5, 3});
  add_pairs(cases, "Pow", {0.4, 2.5}, {-2, 3});
  cases.add("Div", "by negative numbers", {x({3, 4}), x({3, 4}, -3, -0.5)});
  cases.add("Pow", "squares of negative numbers", {x({3, 4}), constant(x_of({}, {2}))});
  cases.add("Pow", "integer exponents", {x({2, 3}), given(DType::kI64, {3}, {1, 2, 3})});
  cases.add("Pow", "cubes", {x({2, 3}, -1.5, 1.5), constant(x_of({}, {3}))});
  for (const char* op : {"Sum", "Mean", "Max", "Min"}) add_lists(cases, op);
}

}  // namespace hone::test
