// Ops that sort or choose: host functions.
#include <limits>

#include "tests/ops/op_cases.h"

namespace hone::test {

void add_sort_cases(Cases& cases) {
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

  const auto unique = [&](std::string says, Operand x, std::int64_t axis, bool sorted, std::vector<double> first) {
    cases.add(op::unique_positions, std::move(says), {std::move(x)}, {kAxis = axis, kSorted = sorted}).equals(std::move(first));
  };
  unique("sorted", given({6}, {2, 1, 1, 3, 4, 3}), 0, true, {1, 0, 3, 4, 0, 0});
  unique("as they come", given({6}, {2, 1, 1, 3, 4, 3}), 0, false, {0, 1, 3, 4, 0, 0});
  unique("rows", given({3, 2}, {1, 0, 1, 0, -2, 3}), 0, true, {2, 0, 0});
  unique("columns", given(DType::kI64, {2, 3}, {5, 4, 5, 1, 1, 1}), 1, true, {1, 0, 0});
  unique("NaN equals NaN and is the largest", given({4}, {kNan, kInf, kNan, 0}), 0, true, {3, 1, 0, 0});
  unique("one", f64({1}), 0, false, {0});
  cases.add(op::unique_positions, "nothing", {f32({kEmpty})}, {kAxis = 0}).gives({kEmpty});

  cases.add(op::nonzero_positions, "bools", {given(DType::kBool, {5}, {0, 1, 1, 0, 1})}).gives({5}).equals({1, 2, 4, 0, 0});
  cases.add(op::nonzero_positions, "floats", {given({4}, {-0.0, kNan, 0, 2})}).equals({1, 3, 0, 0});
  cases.add(op::nonzero_positions, "integers, a symbolic extent", {given(DType::kI64, {kN}, {0, 0, -1})}).equals({2, 0, 0});
  cases.add(op::nonzero_positions, "none", {f32({kEmpty})}).gives({kEmpty});

  const Operand corners = given({1, 3, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 10, 1, 11}), scores = given({1, 1, 3}, {0.9, 0.75, 0.6});
  const auto most = [](double count) { return given(DType::kI64, {1}, {count}); };
  const auto threshold = [](double value) { return given({1}, {value}); };
  cases.add(op::non_max_suppression, "one overlaps", {corners, scores, most(3), threshold(0.5), threshold(0)}).gives({3, 3}).equals({0, 0, 0, 0, 0, 2, 0, 0, 0});
  cases.add(op::non_max_suppression, "at most one", {corners, scores, most(1), threshold(0.5)}).equals({0, 0, 0, 0, 0, 0, 0, 0, 0});
  cases.add(op::non_max_suppression, "all scores will do, and any overlap", {corners, scores, most(9), threshold(1), absent()}).equals({0, 0, 0, 0, 0, 1, 0, 0, 2});
  cases.add(op::non_max_suppression, "none unless asked for", {corners, scores}).equals({0, 0, 0, 0, 0, 0, 0, 0, 0});
  cases.add(op::non_max_suppression, "by center, corners in any order",
            {given({1, 2, 4}, {0.5, 0.5, 1, 1, 0.5, 0.6, 1, 1}), given({1, 1, 2}, {0.5, 0.75}), most(2), threshold(0.5)}, {kCenterBox = true})
      .equals({0, 0, 1, 0, 0, 0});
  cases.add(op::non_max_suppression, "classes and batches", {f32({kM, 2, 4}), f32({kM, kN, 2}), most(1)}).gives({kM * kN * 2, 3});
}

}  // namespace hone::test
