// Running sums and products.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

void add_running(GradientCases& cases, const char* op, std::int64_t opset) {
  const auto add = [&](const char* says, GradientInput x, std::int64_t axis, std::vector<GradientAttribute> attributes = {}) {
    cases.add(op, says, {std::move(x), numbers({axis})}, std::move(attributes)).opset(opset);
  };
  add("a vector", x({6}), 0);
  add("the first axis", x({4, 3}), 0);
  add("the last axis", x({3, 4}), -1);
  add("the middle axis", x({2, 3, 4}), 1);
  add("exclusive", x({3, 4}), 1, {{"exclusive", 1}});
  add("reverse", x({3, 4}), 1, {{"reverse", 1}});
  add("exclusive and reverse", x({3, 4}), 0, {{"exclusive", 1}, {"reverse", 1}});
  add("a symbolic batch", x({"N", 4}), 1);
  add("along a symbolic axis", x({"N", 2}), 0);
  add("along a symbolic axis, exclusive", x({2, "N"}), 1, {{"exclusive", 1}});
  add("one element", x({3, 1}), 1);
  add("one element, exclusive", x({3, 1}), 1, {{"exclusive", 1}});
  add("no elements", x({0, 3}), 0);
  add("f64", of_type(DType::kF64, x({2, 5})), 1);
  add("a longer axis", x({2, 23}, -1.2, 1.2), 1);
}

}  // namespace

void add_cumulative_cases(GradientCases& cases) {
  add_running(cases, "CumSum", 17);
  add_running(cases, "CumProd", 26);
  cases.add("CumProd", "one element is 0", {x_of({5}, {2, 0.5, 0, 1.5, -3}), numbers({0})}).opset(26);
  cases.add("CumProd", "two elements are 0", {x_of({5}, {2, 0, 1.5, 0, -3}), numbers({0})}).opset(26);
  cases.add("CumProd", "the first element is 0", {x_of({2, 3}, {0, 1, 2, 3, 0, 4}), numbers({1})}, {{"exclusive", 1}}).opset(26);
  cases.add("CumProd", "0 from the end", {x_of({2, 3}, {0, 1, 2, 3, 0, 4}), numbers({1})}, {{"reverse", 1}}).opset(26);
}

}  // namespace hone::test
