// Elementwise arithmetic, comparison, logic and choice.
#include <cmath>
#include <limits>

#include "tests/ops/op_cases.h"

namespace hone::test {

namespace {

struct Unary {
  const OpDef& op;
  double low = -2, high = 2;
};

void add_unary(Cases& cases) {
  const Unary unary[] = {
      {op::neg}, {op::abs},  {op::exp, -3, 3}, {op::log, 0.2, 4}, {op::sqrt, 0.2, 4}, {op::tanh}, {op::sigmoid, -4, 4}, {op::relu}, {op::softplus, -4, 4},
      {op::erf}, {op::sign}, {op::floor},      {op::is_finite},   {op::stop_gradient}};
  for (const auto& [op, low, high] : unary) {
    cases.add(op, "symbolic batch", {f32({kN, 5}, low, high)});
    cases.add(op, "a scalar", {f32({}, low, high)});
    cases.add(op, "no elements", {f32({2, kEmpty}, low, high)});
    cases.add(op, "extents of 1, rank 4", {f32({1, 3, 1, 2}, low, high)});
    cases.add(op, "a longer vector", {f32({67}, low, high)});
    cases.add(op, "f64", {f64({kN}, low, high)});
  }
  for (const OpDef* op : {&op::neg, &op::abs, &op::sign, &op::relu}) cases.add(*op, "integers", {whole(DType::kI32, {kN, 2}, -9, 9)});
}

struct Binary {
  const OpDef& op;
  double low = -2, high = 2, low_b = -2, high_b = 2;
};

void add_binary(Cases& cases) {
  const Binary binary[] = {
      {op::add},  {op::sub},        {op::mul},     {op::div, -2, 2, 0.5, 3}, {op::pow, 0.3, 3, -2, 2}, {op::maximum}, {op::minimum}, {op::equal},
      {op::less}, {op::less_equal}, {op::greater}, {op::greater_equal}};
  for (const auto& [op, low, high, low_b, high_b] : binary) {
    const auto pair = [&, low = low, high = high, low_b = low_b, high_b = high_b](std::string says, Shape a, Shape b, Shape y) {
      cases.add(op, std::move(says), {f32(std::move(a), low, high), f32(std::move(b), low_b, high_b)}).gives(std::move(y));
    };
    pair("equal shapes", {kN, 3}, {kN, 3}, {kN, 3});
    pair("a row", {kN, 3}, {3}, {kN, 3});
    pair("a scalar on the left", {}, {kN, 3}, {kN, 3});
    pair("a scalar on the right", {2, 3}, {}, {2, 3});
    pair("both broadcast", {kN, 1}, {1, 4}, {kN, 4});
    pair("an axis in the middle", {2, 1, 3}, {4, 1}, {2, 4, 3});
    pair("no elements", {kEmpty, 3}, {3}, {kEmpty, 3});
    pair("two scalars", {}, {}, {});
    pair("ranks 5 and 3", {2, 1, 1, 2, 1}, {3, 1, 2}, {2, 1, 3, 2, 2});
  }
  for (const OpDef* op : {&op::add, &op::sub, &op::mul, &op::div, &op::maximum, &op::minimum, &op::equal, &op::less})
    cases.add(*op, "integers", {whole(DType::kI64, {kN, 2}, -9, 9), whole(DType::kI64, {2}, 1, 4)});
  for (const OpDef* op : {&op::add, &op::mul, &op::maximum}) {
    cases.add(*op, "bf16", {given(DType::kBF16, {3}, {1, 2.5, -3}), given(DType::kBF16, {3}, {0.5, 4, 1.25})})
        .not_differentiated("differences drown in bf16's rounding");
    cases.add(*op, "f16", {given(DType::kF16, {3}, {1, 2.5, -3}), given(DType::kF16, {3}, {0.5, 4, 1.25})})
        .not_differentiated("differences drown in f16's rounding");
  }
}

void add_kinks(Cases& cases) {
  cases.add(op::relu, "the slope at 0 is 0", {given({4}, {0, -0.0, 1, -1})}).equals({0, 0, 1, 0}).slopes({0, 0, 1, 0});
  cases.add(op::abs, "the slope at 0 is 0", {given({3}, {0, -3, 3})}).equals({0, 3, 3}).slopes({0, -1, 1});
  cases.add(op::maximum, "equal operands share the gradient", {given({3}, {1, 2, 3}), given({3}, {1, 3, 2})}).equals({1, 3, 3}).slopes({0.5, 0, 1});
  cases.add(op::minimum, "equal operands share the gradient", {given({3}, {1, 2, 3}), given({3}, {1, 3, 2})}).equals({1, 2, 2}).slopes({0.5, 1, 0});
  const Operand low = constant(given({}, {-1})), high = constant(given({}, {2}));
  cases.add(op::clip, "there is no slope at a bound", {given({5}, {-2, -1, 0.5, 2, 3}), low, high}).equals({-1, -1, 0.5, 2, 2}).slopes({0, 0, 1, 0, 0});
  cases.add(op::clip, "values in and out", {f32({kN, 5}, -4, 4), low, high});
  cases.add(op::clip, "bounds broadcast", {f32({kN, 3}, -4, 4), constant(given({3}, {-1, -2, 0})), constant(given({3}, {1, 1, 2}))});
  cases.add(op::clip, "by the bounds", {f32({kN, 5}, -4, 4), given({}, {-1.3}), given({5}, {1.7, -2, 1, 2.2, 3})});
  cases.add(op::clip, "high wins where the bounds cross", {given({3}, {-5, 0, 5}), constant(given({}, {2})), constant(given({}, {-1}))})
      .equals({-1, -1, -1})
      .slopes({0, 0, 0});
  cases.add(op::pow, "whole exponents of numbers below 0", {given({4}, {-2, -1.5, 0.5, 3}), constant(given({}, {3}))}).equals({-8, -3.375, 0.125, 27});
  cases.add(op::pow, "the square of 0 is flat", {given({2}, {0, 2}), constant(given({}, {2}))}).equals({0, 4}).slopes({0, 4});
  cases.add(op::pow, "anything to the power 0 is 1, and flat", {given({3}, {0, 2, -1}), constant(given({}, {0}))}).equals({1, 1, 1}).slopes({0, 0, 0});
  cases.add(op::pow, "integers", {whole(DType::kI64, {4}, -3, 3), whole(DType::kI64, {4}, 0, 3)});
  cases.add(op::div, "integers truncate, and give 0 over 0", {given(DType::kI32, {5}, {7, -7, 7, -7, 5}), given(DType::kI32, {5}, {2, 2, -2, -2, 0})})
      .equals({3, -3, -3, 3, 0});
}

void add_extremes(Cases& cases) {
  const auto extreme = [&](const OpDef& op, std::vector<double> x, std::vector<double> y) {
    const auto count = static_cast<std::int64_t>(x.size());
    cases.add(op, "extreme values", {given({count}, std::move(x))}).equals(std::move(y)).not_differentiated(kAboutNan);
  };
  extreme(op::exp, {200, -200, kInf, -kInf, kNan, 0}, {kInf, 0, kInf, 0, kNan, 1});
  extreme(op::log, {0, -1, kInf, kNan, 1}, {-kInf, kNan, kInf, kNan, 0});
  extreme(op::sqrt, {0, -1, kInf, kNan, 4}, {0, kNan, kInf, kNan, 2});
  extreme(op::tanh, {50, -50, kInf, -kInf, kNan, 0}, {1, -1, 1, -1, kNan, 0});
  extreme(op::sigmoid, {100, -200, kInf, -kInf, kNan, 0}, {1, 0, 1, 0, kNan, 0.5});
  extreme(op::softplus, {100, -200, kInf, -kInf, kNan}, {100, 0, kInf, 0, kNan});
  extreme(op::erf, {10, -10, kInf, -kInf, kNan, 0}, {1, -1, 1, -1, kNan, 0});
  extreme(op::relu, {kNan, kInf, -kInf}, {kNan, kInf, 0});
  extreme(op::abs, {kNan, kInf, -kInf}, {kNan, kInf, kInf});
  extreme(op::sign, {0, kInf, -kInf}, {0, 1, -1});
  extreme(op::floor, {-0.5, 2.5, -2.5, kInf, kNan, 3}, {-1, 2, -3, kInf, kNan, 3});
  extreme(op::is_finite, {0, kInf, -kInf, kNan, 1e38}, {1, 0, 0, 0, 1});
  const auto pair = [&](const OpDef& op, std::vector<double> a, std::vector<double> b, std::vector<double> y) {
    const auto count = static_cast<std::int64_t>(a.size());
    cases.add(op, "extreme values", {given({count}, std::move(a)), given({count}, std::move(b))}).equals(std::move(y)).not_differentiated(kAboutNan);
  };
  pair(op::maximum, {kNan, 1, kInf, -kInf}, {1, kNan, 1, 1}, {kNan, kNan, kInf, 1});
  pair(op::minimum, {kNan, 1, kInf, -kInf}, {1, kNan, 1, 1}, {kNan, kNan, 1, -kInf});
  pair(op::div, {1, -1, 0, kInf}, {0, 0, 0, kInf}, {kInf, -kInf, kNan, kNan});
  pair(op::pow, {0, -1, 2, 0}, {-1, 0.5, 200, 0}, {kInf, kNan, kInf, 1});
  pair(op::equal, {kNan, 1, kInf}, {kNan, 1, kInf}, {0, 1, 1});
  pair(op::less, {kNan, 1, -kInf, 2}, {1, kNan, kInf, 2}, {0, 0, 1, 0});
  pair(op::less_equal, {kNan, 1, -kInf, 2}, {1, kNan, kInf, 2}, {0, 0, 1, 1});
  pair(op::greater, {kNan, 1, kInf, 2}, {1, kNan, -kInf, 2}, {0, 0, 1, 0});
  pair(op::greater_equal, {kNan, 1, kInf, 2}, {1, kNan, -kInf, 2}, {0, 0, 1, 1});
}

void add_casts(Cases& cases) {
  const auto to = [&](DType dtype, Operand x) -> Cases& {
    return cases.add(op::cast, "to " + std::string(to_string(dtype)) + " from " + to_string(x.type), {std::move(x)}, {kTo = dtype});
  };
  to(DType::kF64, f32({kN, 2}));
  to(DType::kF32, f64({kN, 2}));
  to(DType::kF32, f32({kN}));
  to(DType::kI64, given({6}, {1.9, -1.9, 0.5, -0.5, 3, -3})).equals({1, -1, 0, 0, 3, -3});
  to(DType::kI8, given({4}, {300, -300, kNan, 5})).equals({127, -128, 0, 5});
  to(DType::kU8, given({3}, {300, -4, 7})).equals({255, 0, 7});
  to(DType::kI32, given({2}, {1e20, -kInf})).equals({2147483647.0, -2147483648.0});
  to(DType::kBool, given({4}, {0, -0.0, 0.1, kNan})).equals({0, 0, 1, 1});
  to(DType::kF32, bools({kN, 2}));
  to(DType::kF32, whole(DType::kI64, {kN}, -99, 99));
  to(DType::kI64, bools({5}));
  to(DType::kBool, given(DType::kI64, {3}, {0, 2, -1})).equals({0, 1, 1});
  to(DType::kI32, given(DType::kI64, {2}, {5, -7})).equals({5, -7});
  to(DType::kF32, whole(DType::kU8, {kEmpty, 2}, 0, 9)).gives({kEmpty, 2});
  for (const DType narrow : {DType::kBF16, DType::kF16}) to(narrow, f32({kN})).not_differentiated("differences drown in the rounding");
  to(DType::kF32, given(DType::kBF16, {2}, {1.5, -2})).equals({1.5, -2}).not_differentiated("differences drown in bf16's rounding");
}

}  // namespace

void add_elementwise_cases(Cases& cases) {
  add_unary(cases);
  add_binary(cases);
  add_kinks(cases);
  add_extremes(cases);
  add_casts(cases);
}

void add_compare_cases(Cases& cases) {
  for (const OpDef* op : {&op::logical_and, &op::logical_or}) {
    cases.add(*op, "the four combinations", {given(DType::kBool, {4}, {0, 0, 1, 1}), given(DType::kBool, {4}, {0, 1, 0, 1})});
    cases.add(*op, "broadcast", {bools({kN, 1}), bools({4})}).gives({kN, 4});
  }
  cases.add(op::logical_not, "both", {given(DType::kBool, {2}, {0, 1})}).equals({1, 0});
  cases.add(op::logical_not, "a scalar", {bools({})});
  cases.add(op::where, "equal shapes", {bools({kN, 3}), f32({kN, 3}), f32({kN, 3})});
  cases.add(op::where, "the condition broadcasts", {bools({kN, 1}), f32({kN, 4}), f32({kN, 4})}).gives({kN, 4});
  cases.add(op::where, "the choices broadcast", {bools({kN, 4}), f32({4}), f32({})}).gives({kN, 4});
  cases.add(op::where, "all three broadcast", {bools({2, 1, 1}), f32({3, 1}), f32({4})}).gives({2, 3, 4});
  cases.add(op::where, "no elements", {bools({kEmpty}), f32({kEmpty}), f32({1})}).gives({kEmpty});
  cases.add(op::where, "integers", {bools({kN}), whole(DType::kI64, {kN}, -5, 5), whole(DType::kI64, {}, -5, 5)});
  cases.add(op::where, "the side not taken may be NaN", {given(DType::kBool, {2}, {0, 1}), given({2}, {kNan, 1}), given({2}, {2, kNan})})
      .equals({2, 1})
      .not_differentiated(kAboutNan);
}

}  // namespace hone::test
