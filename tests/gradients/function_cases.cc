// Functions of one operand.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

void add_function(GradientCases& cases, const char* op, double low, double high) {
  cases.add(op, "a vector", {x({7}, low, high)});
  cases.add(op, "a scalar", {x({}, low, high)});
  cases.add(op, "one element", {x({1, 1}, low, high)});
  cases.add(op, "a matrix", {x({3, 5}, low, high)});
  cases.add(op, "rank 4 with extents of 1", {x({1, 3, 1, 4}, low, high)});
  cases.add(op, "a symbolic batch", {x({"N", 4}, low, high)});
  cases.add(op, "two symbols", {x({"N", "M", 2}, low, high)});
  cases.add(op, "no elements", {x({0, 3}, low, high)});
  cases.add(op, "a longer vector", {x({67}, low, high)});
  cases.add(op, "f64", {of_type(DType::kF64, x({3, 4}, low, high))});
  cases.add(op, "the lower half of its range", {x({2, 9}, low, (low + high) / 2)});
  cases.add(op, "the upper half of its range", {x({2, 9}, (low + high) / 2, high)});
}

}  // namespace

void add_function_cases(GradientCases& cases) {
  add_function(cases, "Abs", -3, 3);
  add_function(cases, "Neg", -3, 3);
  add_function(cases, "Exp", -3, 2);
  add_function(cases, "Log", 0.3, 5);
  add_function(cases, "Sqrt", 0.3, 5);
  add_function(cases, "Erf", -2, 2);
  add_function(cases, "Reciprocal", 0.4, 3);
  cases.add("Reciprocal", "of negative numbers", {x({3, 4}, -3, -0.4)});
  add_function(cases, "Dropout", -2, 2);  // as in inference
  const GradientInput rate = constant(x_of({}, {0.4})), training = constant(given(DType::kBool, {}, {1}));
  cases.add("Dropout", "in training", {x({4, 9}), rate, training}, {{"seed", 3}});
  cases.add("Dropout", "in training, a symbolic batch", {x({"N", 9}), rate, training});
  cases.add("Dropout", "in training, with a mask", {x({4, 9}), rate, training}).outputs(2).varies_in(1);
  add_function(cases, "Sin", -4, 4);
  add_function(cases, "Cos", -4, 4);
  add_function(cases, "Tan", -1.2, 1.2);
  add_function(cases, "Asin", -0.9, 0.9);
  add_function(cases, "Acos", -0.9, 0.9);
  add_function(cases, "Atan", -3, 3);
  add_function(cases, "Sinh", -2, 2);
  add_function(cases, "Cosh", -2, 2);
  add_function(cases, "Asinh", -3, 3);
  add_function(cases, "Acosh", 1.3, 4);
  add_function(cases, "Atanh", -0.9, 0.9);
}

}  // namespace hone::test
