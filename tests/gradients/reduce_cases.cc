// Reductions over axes. Axes are an attribute before opset 18 (ReduceSum: 13), an input from then on.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

void add_reduction(GradientCases& cases, const char* op, double low, double high) {
  const auto xs = [&](std::vector<Extent> shape) { return x(std::move(shape), low, high); };
  cases.add(op, "all axes", {xs({3, 4})}).opset(18);
  cases.add(op, "all axes without keeping them", {xs({3, 4})}, {{"keepdims", 0}}).opset(18);
  cases.add(op, "axis 0", {xs({3, 4}), numbers({0})}).opset(18);
  cases.add(op, "the last axis, not kept", {xs({3, 4}), numbers({-1})}, {{"keepdims", 0}}).opset(18);
  cases.add(op, "the middle axis", {xs({2, 5, 3}), numbers({1})}, {{"keepdims", 0}}).opset(18);
  cases.add(op, "two axes that are no neighbours", {xs({2, 3, 4}), numbers({0, 2})}).opset(18);
  cases.add(op, "axes in falling order, not kept", {xs({2, 3, 4}), numbers({-1, 0})}, {{"keepdims", 0}}).opset(18);
  cases.add(op, "empty axes reduce nothing", {xs({2, 3}), numbers({})}, {{"noop_with_empty_axes", 1}}).opset(18);
  cases.add(op, "empty axes reduce everything", {xs({2, 3}), numbers({})}).opset(18);
  cases.add(op, "a symbolic batch", {xs({"N", 4}), numbers({1})}).opset(18);
  cases.add(op, "over a symbolic axis", {xs({"N", 4}), numbers({0})}, {{"keepdims", 0}}).opset(18);
  cases.add(op, "an extent of 1", {xs({3, 1, 2}), numbers({1})}, {{"keepdims", 0}}).opset(18);
  cases.add(op, "a scalar", {xs({})}).opset(18);
  cases.add(op, "rank 4", {xs({2, 1, 3, 2}), numbers({1, 3})}).opset(18);
  cases.add(op, "a longer axis", {xs({2, 41}), numbers({1})}).opset(18);
  const bool by_input = std::string_view(op) == "ReduceSum";
  cases.add(op, "axes as an attribute", {xs({3, 2, 2})}, {{"axes", Ints{0, -1}}}).opset(by_input ? 11 : 17);
}

}  // namespace

void add_reduce_cases(GradientCases& cases) {
  add_reduction(cases, "ReduceSum", -2, 2);
  add_reduction(cases, "ReduceMean", -2, 2);
  add_reduction(cases, "ReduceMax", -2, 2);
  add_reduction(cases, "ReduceMin", -2, 2);
  add_reduction(cases, "ReduceSumSquare", -2, 2);
  add_reduction(cases, "ReduceL1", -2, 2);
  add_reduction(cases, "ReduceL2", -2, 2);
  add_reduction(cases, "ReduceLogSum", 0.2, 3);
  add_reduction(cases, "ReduceLogSumExp", -3, 3);
  add_reduction(cases, "ReduceProd", -1.5, 1.5);
  cases.add("ReduceProd", "one element is 0", {x_of({2, 3}, {0.5, 0, -1.5, 2, 1.1, 0.7}), numbers({1})}).opset(18);
  cases.add("ReduceProd", "two elements are 0", {x_of({2, 3}, {0.5, 0, 0, 2, 1.1, 0.7}), numbers({1})}).opset(18);
}

}  // namespace hone::test
