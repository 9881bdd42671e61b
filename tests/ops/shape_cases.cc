// Ops that move elements, and reductions.
#include <limits>

#include "tests/ops/op_cases.h"

namespace hone::test {

namespace {

void add_reshapes(Cases& cases) {
  const auto reshape = [&](Shape from, Shape to) { cases.add(op::reshape, to_string(from) + " to " + to_string(to), {f32(from)}, {kShape = to}).gives(to); };
  reshape({kN, 6}, {kN, 2, 3});
  reshape({kN, 2, 3}, {6 * kN});
  reshape({6 * kN}, {kN, 3, 2});
  reshape({1, 1}, {});
  reshape({}, {1, 1, 1});
  reshape({kEmpty, 4}, {2, 2, kEmpty});
  reshape({2, 3, 4}, {4, 6});
  reshape({kN, kM, 2}, {kN * kM, 2});
  cases.add(op::reshape, "integers", {whole(DType::kI64, {4}, -9, 9)}, {kShape = Shape{2, 2}});

  const auto transpose = [&](Shape from, Ints perm, Shape to) {
    cases.add(op::transpose, to_string(from) + " to " + to_string(to), {f32(from)}, {kPerm = perm}).gives(to);
  };
  transpose({kN, 4}, {1, 0}, {4, kN});
  transpose({2, kN, 3}, {2, 0, 1}, {3, 2, kN});
  transpose({2, 3, 4, 2}, {0, 3, 1, 2}, {2, 2, 3, 4});
  transpose({3}, {0}, {3});
  transpose({}, {}, {});
  transpose({kEmpty, 2}, {1, 0}, {2, kEmpty});
  transpose({1, 2, 1, 3, 2}, {4, 3, 2, 1, 0}, {2, 3, 1, 2, 1});

  const auto broadcast = [&](Shape from, Shape to) {
    cases.add(op::broadcast_to, to_string(from) + " to " + to_string(to), {f32(from)}, {kShape = to}).gives(to);
  };
  broadcast({3}, {kN, 3});
  broadcast({}, {2, kN});
  broadcast({kN, 1}, {kN, 4});
  broadcast({2, 1, 1}, {3, 2, 1, 4});
  broadcast({1}, {kEmpty});
  broadcast({2, 2}, {2, 2});
}

void add_concats(Cases& cases) {
  cases.add(op::concat, "two, first axis", {f32({kN, 2}), f32({kM, 2})}, {kAxis = 0}).gives({kN + kM, 2});
  cases.add(op::concat, "three, last axis", {f32({kN, 2}), f32({kN, 1}), f32({kN, 3})}, {kAxis = 1}).gives({kN, 6});
  cases.add(op::concat, "axis in the middle", {f32({2, 1, 3}), f32({2, 2, 3})}, {kAxis = 1}).gives({2, 3, 3});
  cases.add(op::concat, "one without elements", {f32({kEmpty}), f32({2})}, {kAxis = 0}).gives({kEmpty + 2});
  cases.add(op::concat, "a single one", {f32({kN, 2})}, {kAxis = 0}).gives({kN, 2});
  cases.add(op::concat, "integers in order", {given(DType::kI64, {2}, {1, 2}), given(DType::kI64, {1}, {3})}, {kAxis = 0}).equals({1, 2, 3});
}

void add_slices(Cases& cases) {
  const auto slice = [&](std::string says, Shape x, Shape starts, Shape extents, Ints steps) {
    cases.add(op::slice, std::move(says), {f32(std::move(x))}, {kStarts = std::move(starts), kSizes = extents, kSteps = std::move(steps)}).gives(extents);
  };
  slice("part of two axes", {4, 5}, {1, 2}, {2, 3}, {1, 1});
  slice("every other", {kN, 7}, {0, 1}, {kN, 3}, {1, 2});
  slice("backwards", {5}, {4}, {5}, {-1});
  slice("backwards, every other", {2, 6}, {0, 5}, {2, 3}, {1, -2});
  slice("the last of a symbolic axis", {kN, 2}, {kN - 1, 0}, {1, 2}, {1, 1});
  slice("all but the first of a symbolic axis", {kN, 2}, {1, 0}, {kN - 1, 2}, {1, 1});
  slice("nothing", {4}, {4}, {0}, {1});
  slice("all", {2, 3}, {0, 0}, {2, 3}, {1, 1});
  cases.add(op::slice, "elements in order", {given({5}, {10, 11, 12, 13, 14})}, {kStarts = Shape{3}, kSizes = Shape{2}, kSteps = Ints{-2}}).equals({13, 11});

  const auto pad = [&](std::string says, Shape x, Shape starts, Shape extents, Ints steps) {
    cases.add(op::pad, std::move(says), {f32(std::move(x))}, {kStarts = std::move(starts), kSizes = extents, kSteps = std::move(steps)}).gives(extents);
  };
  pad("both sides", {2, 3}, {1, 2}, {4, 6}, {1, 1});
  pad("between elements", {kN, 3}, {0, 1}, {kN, 7}, {1, 2});
  pad("backwards", {5}, {4}, {5}, {-1});
  pad("backwards, between elements", {3}, {5}, {6}, {-2});
  pad("a symbolic start", {1, 2}, {kN - 1, 0}, {kN, 2}, {1, 1});
  pad("nothing to put", {0}, {2}, {4}, {1});
  pad("all of a matrix", {2, 3}, {0, 0}, {2, 3}, {1, 1});
  cases.add(op::pad, "elements in order", {given({2}, {7, 8})}, {kStarts = Shape{3}, kSizes = Shape{5}, kSteps = Ints{-2}}).equals({0, 8, 0, 7, 0});
  cases.add(op::pad, "what falls outside is dropped", {given({4}, {1, 2, 3, 4})}, {kStarts = Shape{-1}, kSizes = Shape{2}, kSteps = Ints{1}}).equals({2, 3});
  cases.add(op::pad, "drops the first of every second", {given({3}, {1, 2, 3})}, {kStarts = Shape{-1}, kSizes = Shape{3}, kSteps = Ints{2}}).equals({0, 2, 0});
  cases.add(op::pad, "drops at both ends of what goes back", {given({4}, {1, 2, 3, 4})}, {kStarts = Shape{4}, kSizes = Shape{4}, kSteps = Ints{-2}})
      .equals({3, 0, 2, 0});
  cases.add(op::pad, "drops in front, adds behind", {f32({kN, 4})}, {kStarts = Shape{-1, 1}, kSizes = Shape{kN, 4}, kSteps = Ints{1, 1}}).gives({kN, 4});

  cases.add(op::sizes, "numbers and symbols", {}, {kSizes = Shape{kN, 7, kN * kM + 1}}).equals({3, 7, 7});
  cases.add(op::sizes, "one", {}, {kSizes = Shape{kEmpty}}).equals({0});
}

}  // namespace

void add_shape_cases(Cases& cases) {
  add_reshapes(cases);
  add_concats(cases);
  add_slices(cases);
}

void add_reduce_cases(Cases& cases) {
  for (const OpDef* op : {&op::reduce_sum, &op::reduce_prod, &op::reduce_max, &op::reduce_min, &op::reduce_mean}) {
    const auto reduce = [&](std::string says, Shape x, Ints axes, bool keep, Shape y) {
      cases.add(*op, std::move(says), {f32(std::move(x))}, {kAxes = std::move(axes), kKeepDims = keep}).gives(std::move(y));
    };
    reduce("the last axis", {kN, 4}, {1}, false, {kN});
    reduce("the last axis, kept", {kN, 4}, {1}, true, {kN, 1});
    reduce("the first axis", {kN, 4}, {0}, false, {4});
    reduce("outer and inner axis", {2, kN, 3}, {0, 2}, false, {kN});
    reduce("outer and inner axis, kept", {2, kN, 3}, {0, 2}, true, {1, kN, 1});
    reduce("all", {2, 3, 2}, {0, 1, 2}, false, {});
    reduce("no axis", {kN, 2}, {}, false, {kN, 2});
    reduce("an axis of 1", {kN, 1}, {1}, false, {kN});
    reduce("batch of an image", {kN, 2, 3, 2}, {0, 2, 3}, false, {2});
    reduce("many elements", {301}, {0}, false, {});
    reduce("no rows", {kEmpty, 3}, {1}, false, {kEmpty});
  }
  cases.add(op::reduce_sum, "over no elements", {f32({2, kEmpty})}, {kAxes = Ints{1}}).equals({0, 0});
  cases.add(op::reduce_max, "over no elements", {f32({2, kEmpty})}, {kAxes = Ints{1}}).equals({-kInf, -kInf}).not_differentiated("it has no variable");
  cases.add(op::reduce_mean, "over no elements", {f32({kEmpty})}, {kAxes = Ints{0}}).equals({kNan}).not_differentiated("it has no variable");
  cases.add(op::reduce_max, "ties share the gradient", {given({2, 3}, {1, 5, 5, 2, 2, 2})}, {kAxes = Ints{1}})
      .equals({5, 2})
      .slopes({0, 0.5, 0.5, 1. / 3, 1. / 3, 1. / 3});
  cases.add(op::reduce_max, "NaN", {given({2, 2}, {1, kNan, 3, 4})}, {kAxes = Ints{1}}).equals({kNan, 4}).not_differentiated("the case is about NaN");
  cases.add(op::reduce_min, "over no elements", {f32({2, kEmpty})}, {kAxes = Ints{1}}).equals({kInf, kInf}).not_differentiated("it has no variable");
  cases.add(op::reduce_prod, "over no elements", {f32({2, kEmpty})}, {kAxes = Ints{1}}).equals({1, 1}).not_differentiated("it has no variable");
  cases.add(op::reduce_min, "ties share the gradient", {given({2, 3}, {5, 1, 1, 2, 2, 2})}, {kAxes = Ints{1}})
      .equals({1, 2})
      .slopes({0, 0.5, 0.5, 1. / 3, 1. / 3, 1. / 3});
  cases.add(op::reduce_prod, "the others' product, also beside 0", {given({3, 3}, {2, 3, 4, 2, 0, 4, 0, 3, 0})}, {kAxes = Ints{1}})
      .equals({24, 0, 0})
      .slopes({12, 8, 6, 0, 8, 0, 0, 0, 0});
  cases.add(op::reduce_prod, "integers", {given(DType::kI32, {2, 2}, {1, 2, -3, -9})}, {kAxes = Ints{1}}).equals({2, 27});
  cases.add(op::reduce_min, "integers", {given(DType::kI64, {2, 2}, {1, 2, -3, -9})}, {kAxes = Ints{1}}).equals({1, -9});
  cases.add(op::reduce_min, "of u64", {given(DType::kU64, {3}, {-1, 7, 8})}, {kAxes = Ints{0}}).equals({7});
  cases.add(op::reduce_sum, "integers", {given(DType::kI64, {2, 2}, {1, 2, 3, -9})}, {kAxes = Ints{1}}).equals({3, -6});
  cases.add(op::reduce_max, "integers", {given(DType::kI32, {2, 2}, {1, 2, -3, -9})}, {kAxes = Ints{1}}).equals({2, -3});
  cases.add(op::reduce_sum, "f64", {f64({kN, 3})}, {kAxes = Ints{0}});

  cases.add(op::argmin, "last axis", {given({2, 3}, {5, 1, 1, 2, 9, 9})}, {kAxis = 1}).equals({1, 0});
  cases.add(op::argmin, "axis in the middle", {f32({2, 5, kM})}, {kAxis = 1}).gives({2, kM});
  cases.add(op::argmin, "NaN and inf", {given({3, 2}, {1, kNan, kInf, kInf, kNan, kNan})}, {kAxis = 1}).equals({1, 0, 0});
  cases.add(op::argmin, "integers", {given(DType::kI64, {3}, {-2, -5, -5})}, {kAxis = 0}).equals({1});
  cases.add(op::argmax, "last axis", {given({2, 3}, {1, 5, 5, 9, 2, 2})}, {kAxis = 1}).equals({1, 0});
  cases.add(op::argmax, "first axis", {f32({kN, 4})}, {kAxis = 0}).gives({4});
  cases.add(op::argmax, "axis in the middle", {f32({2, 5, kM})}, {kAxis = 1}).gives({2, kM});
  cases.add(op::argmax, "NaN and -inf", {given({3, 2}, {1, kNan, -kInf, -kInf, kNan, kNan})}, {kAxis = 1}).equals({1, 0, 0});
  cases.add(op::argmax, "integers", {given(DType::kI64, {3}, {-5, -2, -2})}, {kAxis = 0}).equals({1});
}

}  // namespace hone::test
