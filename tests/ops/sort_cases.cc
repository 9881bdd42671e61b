// Ops that sort.
#include <limits>

#include "tests/ops/op_cases.h"

namespace hone::test {

void add_sort_cases(Cases& cases) {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  const auto top = [](std::int64_t axis, Dim k, bool smallest = false) { return Attrs{kAxis = axis, kSizes = Shape{k}, kSmallest = smallest}; };
  cases.add(op::arg_top_k, "the two largest", {given({5}, {3, 9, -1, 9, 4})}, top(0, 2)).gives({2}).equals({1, 3});
  cases.add(op::arg_top_k, "the two smallest", {given({5}, {3, 9, -1, 9, -1})}, top(0, 2, true)).equals({2, 4});
  cases.add(op::arg_top_k, "all, in order", {given({2, 3}, {2, 3, 1, 5, 5, 6})}, top(1, 3)).equals({1, 0, 2, 2, 0, 1});
  cases.add(op::arg_top_k, "first axis", {given({3, 2}, {1, 6, 3, 4, 2, 5})}, top(0, 1)).equals({1, 0});
  cases.add(op::arg_top_k, "axis in the middle, symbolic sizes", {f32({kN, 5, kM})}, top(1, kM)).gives({kN, kM, kM});
  cases.add(op::arg_top_k, "NaN counts as the largest", {given({4}, {kInf, kNan, 1, kNan})}, top(0, 3)).equals({1, 3, 0});
  cases.add(op::arg_top_k, "NaN comes last of the smallest", {given({3}, {kNan, kInf, -kInf})}, top(0, 3, true)).equals({2, 1, 0});
  cases.add(op::arg_top_k, "no elements of each row", {f32({kN, 4})}, top(1, 0)).gives({kN, 0});
  cases.add(op::arg_top_k, "no rows", {f32({kEmpty, 4})}, top(1, 2)).gives({kEmpty, 2});
  cases.add(op::arg_top_k, "integers", {given(DType::kI64, {4}, {-7, 3, 8, 3})}, top(0, 3)).equals({2, 1, 3});
  cases.add(op::arg_top_k, "bytes", {given(DType::kU8, {3}, {200, 3, 255})}, top(0, 1)).equals({2});
  cases.add(op::arg_top_k, "f64", {f64({kN})}, top(0, kN)).gives({kN});
}

}  // namespace hone::test
