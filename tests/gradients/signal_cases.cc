// Fourier transforms.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

void add_dft(GradientCases& cases) {
  const auto add = [&](const char* says, GradientInput x, GradientInput length, std::vector<GradientAttribute> attributes = {}) {
    cases.add("DFT", says, {std::move(x), std::move(length)}, std::move(attributes));
  };
  const auto length = [](double n) { return constant(given(DType::kI64, {}, {n})); };
  add("real", x({2, 5, 1}), absent());
  add("complex", x({2, 5, 2}), absent());
  add("an even length", x({2, 6, 2}), absent());
  add("inverse", x({2, 5, 2}), absent(), {{"inverse", 1}});
  add("one-sided, odd", x({2, 7, 1}), absent(), {{"onesided", 1}});
  add("one-sided, even", x({2, 8, 1}), absent(), {{"onesided", 1}});
  add("longer than the signal", x({2, 5, 1}), length(8));
  add("shorter than the signal", x({2, 5, 2}), length(3));
  add("one-sided, longer", x({1, 4, 1}), length(7), {{"onesided", 1}});
  add("axis 0", x({4, 3, 2}), absent(), {{"axis", 0}});
  add("the axis in the middle", x({2, 3, 4, 1}), absent(), {{"axis", 2}});
  add("an axis from the end", x({2, 3, 4, 1}), absent(), {{"axis", -3}});
  add("a symbolic batch", x({"N", 4, 2}), absent());
  add("a symbolic length", x({2, "N", 2}), absent());
  add("f64", of_type(DType::kF64, x({1, 5, 2})), absent());
  const auto newest = [&](const char* says, GradientInput x, GradientInput length, std::int64_t axis, std::vector<GradientAttribute> attributes = {}) {
    cases.add("DFT", says, {std::move(x), std::move(length), constant(given(DType::kI64, {}, {static_cast<double>(axis)}))}, std::move(attributes)).opset(20);
  };
  newest("the axis as an input", x({3, 4, 2}), absent(), 0);
  newest("back from a one-sided spectrum", x({2, 4, 2}), absent(), 1, {{"inverse", 1}, {"onesided", 1}});
  newest("back from a one-sided spectrum, odd", x({2, 4, 2}), length(7), -2, {{"inverse", 1}, {"onesided", 1}});
}

void add_stft(GradientCases& cases) {
  const auto number = [](double n) { return constant(given(DType::kI64, {}, {n})); };
  const auto add = [&](const char* says, GradientInput x, double step, GradientInput window, GradientInput frame, std::vector<GradientAttribute> attributes = {}) {
    cases.add("STFT", says, {std::move(x), number(step), std::move(window), std::move(frame)}, std::move(attributes));
  };
  add("frames that overlap", x({2, 10, 1}), 2, absent(), number(4));
  add("frames side by side", x({1, 12, 1}), 4, absent(), number(4));
  add("frames apart", x({1, 13, 1}), 5, absent(), number(3));
  add("a window", x({1, 10, 1}), 3, x({4}), number(4));
  add("a window says the length", x({1, 10, 1}), 2, x({5}), absent());
  add("a constant window", x({1, 9, 1}), 2, constant(x({4})), absent());
  add("a constant signal", constant(x({1, 9, 1})), 2, x({4}), absent());
  add("two-sided", x({1, 9, 1}), 3, x({4}), absent(), {{"onesided", 0}});
  add("complex", x({1, 9, 2}), 3, x({4}), absent(), {{"onesided", 0}});
  add("a symbolic batch", x({"N", 8, 1}), 2, absent(), number(4));
  add("one frame", x({2, 6, 1}), 1, absent(), number(6));
  add("f64", of_type(DType::kF64, x({1, 8, 1})), 2, absent(), number(4));
}

}  // namespace

void add_signal_cases(GradientCases& cases) {
  add_dft(cases);
  add_stft(cases);
}

}  // namespace hone::test
