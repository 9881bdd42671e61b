// Ops whose index is data, and positions.
#include <limits>

#include "tests/ops/op_cases.h"

namespace hone::test {

namespace {

Operand index(Shape shape, double low, double high) { return whole(DType::kI64, std::move(shape), low, high); }
Operand places(Shape shape, std::vector<double> values) { return given(DType::kI64, std::move(shape), std::move(values)); }
const std::string kAdd = "add", kMul = "mul", kMax = "max", kMin = "min";

void add_gathers(Cases& cases) {
  cases.add(op::gather, "rows of a table", {f32({5, 3}), index({kN}, 0, 4)}, {kAxis = 0}).gives({kN, 3});
  cases.add(op::gather, "a scalar index drops the axis", {f32({kN, 4}), index({}, 0, 3)}, {kAxis = 1}).gives({kN});
  cases.add(op::gather, "an index of rank 2", {f32({6, 2}), index({kN, 4}, -6, 5)}, {kAxis = 0}).gives({kN, 4, 2});
  cases.add(op::gather, "axis in the middle", {f32({2, 4, 3}), index({2}, 0, 3)}, {kAxis = 1}).gives({2, 2, 3});
  cases.add(op::gather, "no index", {f32({2, 3}), index({kEmpty}, 0, 1)}, {kAxis = 0}).gives({kEmpty, 3});
  cases.add(op::gather, "indices of 32 bits, from the end", {given({3}, {10, 20, 30}), given(DType::kI32, {4}, {0, -1, 2, -3})}, {kAxis = 0})
      .equals({10, 30, 30, 10});
  cases.add(op::gather, "out of range", {given({2}, {10, 20}), given(DType::kI64, {4}, {2, -3, 1, -2})}, {kAxis = 0})
      .equals({kNan, kNan, 20, 10})
      .not_differentiated("it gives NaN");
  cases.add(op::gather, "integers", {given(DType::kI64, {3}, {7, 8, 9}), given(DType::kI64, {3}, {2, 0, 3})}, {kAxis = 0}).equals({9, 7, 0});

  const auto scatter = [&](std::string says, Shape x, Operand at, std::int64_t axis, Shape y) {
    cases.add(op::scatter_add, std::move(says), {f32(std::move(x)), std::move(at)}, {kAxis = axis, kShape = y}).gives(y);
  };
  scatter("rows of a table", {kN, 3}, index({kN}, 0, 4), 0, {5, 3});
  scatter("one place for all", {kN, 2}, index({kN}, 1, 1), 0, {2, 2});
  scatter("a scalar index", {kN}, index({}, 2, 2), 1, {kN, 4});
  scatter("an index of rank 2", {kN, 4, 2}, index({kN, 4}, -6, 5), 0, {6, 2});
  scatter("axis in the middle", {2, 2, 3}, index({2}, 0, 3), 1, {2, 4, 3});
  scatter("nothing to add", {kEmpty, 3}, index({kEmpty}, 0, 1), 0, {2, 3});
  scatter("into no rows", {kEmpty, 2}, index({2}, 0, 2), 1, {kEmpty, 3});
  cases.add(op::scatter_add, "out of range adds nothing", {given({4}, {1, 2, 4, 8}), given(DType::kI64, {4}, {0, 2, -3, -1})}, {kAxis = 0, kShape = Shape{2}})
      .equals({1, 8})
      .not_differentiated("the gradient of an index out of range is NaN");
}

void add_gather_elements(Cases& cases) {
  const auto gather = [&](std::string says, Shape x, Operand at, std::int64_t axis) {
    const Shape y = at.type.shape;
    cases.add(op::gather_elements, std::move(says), {f32(std::move(x)), std::move(at)}, {kAxis = axis}).gives(y);
  };
  gather("first axis", {4, 3}, index({kN, 3}, -4, 3), 0);
  gather("last axis", {kN, 5}, index({kN, 2}, 0, 4), 1);
  gather("axis in the middle", {2, 4, 3}, index({2, 6, 3}, -4, 3), 1);
  gather("other axes of the index are shorter", {4, 3}, index({2, 2}, 0, 3), 0);
  gather("a vector", {5}, index({kN}, 1, 1), 0);
  gather("no index", {2, 3}, index({2, kEmpty}, 0, 1), 1);
  cases.add(op::gather_elements, "from the end, and out of range", {given({2, 2}, {1, 2, 3, 4}), places({2, 2}, {-1, 0, 2, -3})}, {kAxis = 1})
      .equals({2, 1, kNan, kNan})
      .not_differentiated("it gives NaN");
  cases.add(op::gather_elements, "integers", {given(DType::kU8, {3}, {7, 8, 9}), given(DType::kI32, {2}, {2, 0})}, {kAxis = 0}).equals({9, 7});
}

void add_gather_nd(Cases& cases) {
  const auto gather = [&](std::string says, Shape x, Operand at, std::int64_t batch, Shape y) {
    cases.add(op::gather_nd, std::move(says), {f32(std::move(x)), std::move(at)}, {kBatchDims = batch}).gives(std::move(y));
  };
  gather("elements", {2, 3}, index({kN, 2}, -2, 1), 0, {kN});
  gather("slices", {4, 3}, index({kN, 2, 1}, 0, 3), 0, {kN, 2, 3});
  gather("a tuple of all axes", {2, 2, 2}, index({3}, 0, 1), 0, {});
  gather("one batch axis", {kN, 3, 2}, index({kN, 1}, 0, 2), 1, {kN, 2});
  gather("two batch axes", {2, kN, 3}, index({2, kN, 4, 1}, -3, 2), 2, {2, kN, 4});
  gather("an empty tuple takes all", {2, 3}, index({kN, 0}, 0, 0), 0, {kN, 2, 3});
  cases.add(op::gather_nd, "elements in order, from the end", {given({2, 2}, {1, 2, 3, 4}), places({3, 2}, {0, 1, -1, 0, 1, -1})}).equals({2, 3, 4});
  cases.add(op::gather_nd, "out of range", {given({2, 2}, {1, 2, 3, 4}), places({2, 2}, {0, 2, 1, 1})}).equals({kNan, 4}).not_differentiated("it gives NaN");
}

void add_scatter_elements(Cases& cases) {
  const auto scatter = [&](std::string says, Operand updates, Operand at, Operand x, std::int64_t axis, const std::string& reduction) {
    const Shape y = x.type.shape;
    cases.add(op::scatter_elements, std::move(says), {std::move(updates), std::move(at), std::move(x)}, {kAxis = axis, kShape = y, kReduction = reduction}).gives(y);
  };
  scatter("rows, distinct", f32({2, 3}), places({2, 3}, {0, 2, 1, 3, -4, -1}), f32({4, 3}), 0, "");
  scatter("the last of those that meet", f32({kN, 3}), index({kN, 3}, 0, 2), f32({kN, 4}), 1, "");
  scatter("added", f32({2, 5}), index({2, 5}, -3, 2), f32({kN, 3}), 1, kAdd);
  scatter("added, axis in the middle", f32({2, 4, 2}), index({2, 4, 2}, 0, 2), f32({2, 3, kM}), 1, kAdd);
  scatter("multiplied", f32({kN, 4}), index({kN, 4}, 0, 1), f32({kN, 2}), 1, kMul);
  scatter("the largest", f32({4, 2}), index({4, 2}, 0, 2), f32({3, kM}), 0, kMax);
  scatter("the smallest", f32({4, 2}), index({4, 2}, 0, 2), f32({3, kM}), 0, kMin);
  scatter("nothing", f32({kEmpty}), index({kEmpty}, 0, 0), f32({kN}), 0, "");
  scatter("f64", f64({4}), index({4}, 0, 1), f64({2}), 0, kMul);
  cases.add(op::scatter_elements, "into 0s", {f32({kN, 2}), index({kN, 2}, 0, 3)}, {kAxis = 0, kShape = Shape{4, 2}, kReduction = kAdd}).gives({4, 2});
  cases.add(op::scatter_elements, "replaced in 0s", {given({3}, {5, 6, 7}), places({3}, {1, 3, 1})}, {kAxis = 0, kShape = Shape{4}}).equals({0, 7, 0, 6}).slopes({0, 1, 1});
  cases.add(op::scatter_elements, "products with zeros", {given({5}, {2, 0, 3, 0, 0}), places({5}, {0, 0, 0, 1, 1}), given({3}, {5, 7, 9})},
            {kAxis = 0, kShape = Shape{3}, kReduction = kMul})
      .equals({0, 0, 9});
  cases.add(op::scatter_elements, "ties share the gradient", {given({3}, {4, 4, 1}), places({3}, {0, 0, 1}), given({2}, {4, 2})},
            {kAxis = 0, kShape = Shape{2}, kReduction = kMax})
      .equals({4, 2})
      .slopes({1. / 3, 1. / 3, 0});
  cases.add(op::scatter_elements, "the larger of a NaN", {given({2}, {1, kNan}), places({2}, {0, 1}), given({2}, {kNan, 2})},
            {kAxis = 0, kShape = Shape{2}, kReduction = kMax})
      .equals({kNan, kNan})
      .not_differentiated("the case is about NaN");
  cases.add(op::scatter_elements, "out of range changes nothing", {given({3}, {7, 8, 9}), places({3}, {2, -3, -1}), given({2}, {1, 2})}, {kAxis = 0, kShape = Shape{2}})
      .equals({1, 9});
  cases.add(op::scatter_elements, "integers", {given(DType::kI32, {3}, {7, 8, 9}), places({3}, {0, 0, 1}), given(DType::kI32, {2}, {1, 2})},
            {kAxis = 0, kShape = Shape{2}, kReduction = kMul})
      .equals({56, 18});
  cases.add(op::scatter_elements, "bools", {given(DType::kBool, {1}, {1}), places({1}, {1}), given(DType::kBool, {3}, {0, 0, 1})}, {kAxis = 0, kShape = Shape{3}})
      .equals({0, 1, 1});
}

void add_scatter_nd(Cases& cases) {
  const auto scatter = [&](std::string says, Shape updates, Operand at, Shape x, const std::string& reduction, std::int64_t batch = 0) {
    cases.add(op::scatter_nd, std::move(says), {f32(std::move(updates)), std::move(at), f32(x)}, {kBatchDims = batch, kShape = x, kReduction = reduction}).gives(x);
  };
  scatter("elements", {kN}, index({kN, 2}, 0, 1), {2, 4}, "");
  scatter("slices", {2, 3}, places({2, 1}, {3, -3}), {4, 3}, "");
  scatter("slices that meet", {4, 2}, index({4, 1}, 0, 1), {kN, 2}, "");
  scatter("added", {kN, 2, 3}, index({kN, 2, 1}, -4, 3), {4, 3}, kAdd);
  scatter("added by batch", {kN, 3}, index({kN, 3, 1}, 0, 1), {kN, 2}, kAdd, 1);
  scatter("multiplied", {5, 2}, index({5, 1}, 0, 1), {2, kM}, kMul);
  scatter("the largest", {5}, index({5, 2}, 0, 1), {2, kM}, kMax);
  scatter("the smallest", {5}, index({5, 2}, 0, 1), {2, kM}, kMin);
  scatter("an empty tuple means all", {2, 3}, index({0}, 0, 0), {2, 3}, kAdd);
  cases.add(op::scatter_nd, "into 0s", {f32({kN, 2}), index({kN, 1}, 0, 3)}, {kShape = Shape{4, 2}, kReduction = kAdd}).gives({4, 2});
  cases.add(op::scatter_nd, "in index order", {given({3}, {1, 2, 3}), places({3, 1}, {1, 1, 0}), given({2}, {8, 9})}, {kShape = Shape{2}}).equals({3, 2}).slopes({0, 1, 1});
  cases.add(op::scatter_nd, "out of range changes nothing", {given({2}, {7, 8}), places({2, 2}, {0, 2, 1, 1}), given({2, 2}, {1, 2, 3, 4})}, {kShape = Shape{2, 2}})
      .equals({1, 2, 3, 8});
}

void add_positions(Cases& cases) {
  cases.add(op::iota, "a vector", {}, {kShape = Shape{4}}).equals({0, 1, 2, 3});
  cases.add(op::iota, "an axis of several", {}, {kAxis = 1, kShape = Shape{2, kN}}).equals({0, 1, 2, 0, 1, 2});
  cases.add(op::iota, "nothing", {}, {kShape = Shape{kEmpty}}).gives({kEmpty});

  const auto pad = [&](std::string says, const std::string& mode, Dim start, Dim extent, Dim size, std::vector<double> y) {
    cases.add(op::pad_positions, mode + ": " + says, {}, {kStarts = Shape{start}, kSizes = Shape{size}, kShape = Shape{extent}, kMode = mode}).equals(std::move(y));
  };
  for (const std::string mode : {"edge", "reflect", "wrap"}) {
    pad("all of it", mode, 0, kN, kN, {0, 1, 2});
    pad("a part", mode, -1, 4, 2, {1, 2});
    pad("of one", mode, 1, 1, 4, {0, 0, 0, 0});
  }
  pad("both sides", "edge", 2, kN, 7, {0, 0, 0, 1, 2, 2, 2});
  pad("both sides", "reflect", 2, kN, 7, {2, 1, 0, 1, 2, 1, 0});
  pad("more than once", "reflect", 3, 2, 8, {1, 0, 1, 0, 1, 0, 1, 0});
  pad("both sides", "wrap", 2, kN, 7, {1, 2, 0, 1, 2, 0, 1});
  pad("more than once", "wrap", 5, 2, 8, {1, 0, 1, 0, 1, 0, 1, 0});

  cases.add(op::one_hot, "a vector", {given(DType::kI64, {3}, {2, 0, 3})}, {kShape = Shape{3, 3}}).equals({0, 0, 1, 1, 0, 0, 0, 0, 0});
  cases.add(op::one_hot, "symbolic batch", {index({kN, 2}, 0, 3)}, {kShape = Shape{kN, 2, 4}}).gives({kN, 2, 4});
  cases.add(op::one_hot, "a scalar", {given(DType::kI32, {}, {1})}, {kShape = Shape{2}}).equals({0, 1});
  cases.add(op::one_hot, "one below 0 is nowhere", {given(DType::kI64, {1}, {-1})}, {kShape = Shape{1, 2}}).equals({0, 0});

  const auto reverse = [&](std::string says, Shape x, Operand lengths, std::int64_t axis, std::int64_t batch) {
    cases.add(op::reverse_sequence, std::move(says), {f32(x), std::move(lengths)}, {kAxis = axis, kBatchAxis = batch}).gives(x);
  };
  reverse("time first", {4, kN, 2}, index({kN}, 0, 4), 0, 1);
  reverse("batch first", {kN, 4}, index({kN}, 1, 4), 1, 0);
  reverse("axes further back", {2, 3, kM, 4}, index({kM}, 0, 4), 3, 2);
  reverse("no samples", {4, kEmpty}, index({kEmpty}, 0, 4), 0, 1);
  cases.add(op::reverse_sequence, "elements in order", {given({2, 3}, {1, 2, 3, 4, 5, 6}), given(DType::kI32, {2}, {2, 3})}, {kAxis = 1, kBatchAxis = 0})
      .equals({2, 1, 3, 6, 5, 4});
  cases.add(op::reverse_sequence, "lengths are cut", {given({2, 2}, {1, 2, 3, 4}), places({2}, {-1, 5})}, {kAxis = 1, kBatchAxis = 0}).equals({1, 2, 4, 3});
}

void add_folds(Cases& cases) {
  const auto window = [](Ints kernel, Ints strides, Ints dilations, Shape pads, Shape extents) {
    return Attrs{kKernel = std::move(kernel), kStrides = std::move(strides), kDilations = std::move(dilations), kPadsBegin = std::move(pads), kSpatial = std::move(extents)};
  };
  cases.add(op::im2col, "one axis", {f32({kN, 2, 5})}, window({3}, {1}, {1}, {0}, {3})).gives({kN, 2, 3, 3});
  cases.add(op::im2col, "two axes, strides, dilations and pads", {f32({2, 1, 4, 5})}, window({2, 2}, {2, 1}, {1, 2}, {1, 0}, {2, 3})).gives({2, 1, 2, 2, 2, 3});
  cases.add(op::im2col, "elements in order", {given({1, 1, 3}, {1, 2, 3})}, window({2}, {1}, {1}, {1}, {3})).equals({0, 1, 2, 1, 2, 3});
  cases.add(op::col2im, "one axis", {f32({kN, 2, 3, 3})}, window({3}, {1}, {1}, {0}, {5})).gives({kN, 2, 5});
  cases.add(op::col2im, "two axes, strides, dilations and pads", {f32({2, 1, 2, 2, 2, 3})}, window({2, 2}, {2, 1}, {1, 2}, {1, 0}, {4, 5})).gives({2, 1, 4, 5});
  cases.add(op::col2im, "windows overlap", {given({1, 1, 2, 2}, {1, 2, 3, 4})}, window({2}, {1}, {1}, {0}, {3})).equals({1, 5, 4});
  cases.add(op::col2im, "no images", {f32({kEmpty, 1, 2, 3})}, window({2}, {2}, {1}, {0}, {6})).gives({kEmpty, 1, 6});
}

}  // namespace

void add_index_cases(Cases& cases) {
  add_gathers(cases);
  add_gather_elements(cases);
  add_gather_nd(cases);
  add_scatter_elements(cases);
  add_scatter_nd(cases);
  add_positions(cases);
  add_folds(cases);
}

}  // namespace hone::test
