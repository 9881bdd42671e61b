// Matrix products, convolution and pooling. Cases of gradient ops follow from those of the op they belong to.
#include <algorithm>
#include <limits>

#include "ir/ops/window.h"
#include "tests/ops/op_cases.h"

namespace hone::test {

void add_matmul_cases(Cases& cases) {
  const auto matmul = [&](std::string says, Shape a, Shape b, Shape y) {
    cases.add(op::matmul, std::move(says), {f32(std::move(a)), f32(std::move(b))}).gives(std::move(y));
  };
  matmul("symbolic batch", {kN, 4}, {4, 5}, {kN, 5});
  matmul("a longer product", {3, 70}, {70, 2}, {3, 2});
  matmul("three axes", {2, kN, 3}, {2, 3, 4}, {2, kN, 4});
  matmul("the right one broadcasts", {2, 3, 4}, {4, 2}, {2, 3, 2});
  matmul("the left one broadcasts", {2, 4}, {kN, 4, 3}, {kN, 2, 3});
  matmul("both broadcast", {2, 1, 3, 4}, {3, 4, 2}, {2, 3, 3, 2});
  matmul("one by one", {1, 1}, {1, 1}, {1, 1});
  matmul("no rows", {kEmpty, 3}, {3, 2}, {kEmpty, 2});
  matmul("sums of no terms", {2, kEmpty}, {kEmpty, 3}, {2, 3});
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const Attrs attrs = {kTransA = ta, kTransB = tb};
      const std::string says = std::string(ta ? "a" : "no a") + " and " + (tb ? "b" : "no b") + " transposed";
      cases.add(op::matmul, says, {f32(ta ? Shape{4, kN} : Shape{kN, 4}), f32(tb ? Shape{5, 4} : Shape{4, 5})}, attrs).gives({kN, 5});
      cases.add(op::matmul, says + ", broadcast", {f32(ta ? Shape{3, 2} : Shape{2, 3}), f32(tb ? Shape{2, 4, 3} : Shape{2, 3, 4})}, attrs).gives({2, 2, 4});
    }
  cases.add(op::matmul, "by hand", {given({2, 2}, {1, 2, 3, 4}), given({2, 2}, {5, 6, 7, 8})}).equals({19, 22, 43, 50});
  cases.add(op::matmul, "f64", {f64({kN, 3}), f64({3, 2})});
}

namespace {

struct ConvCase {
  std::string says;
  Shape x, w, y;
  Ints strides, dilations;
  Shape pads_begin, pads_end;
  std::int64_t groups = 1;
};

Attrs attributes_of(const ConvCase& c) {
  return {kStrides = c.strides, kDilations = c.dilations, kPadsBegin = c.pads_begin, kPadsEnd = c.pads_end, kGroups = c.groups};
}

Shape spatial_of(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

/// An activation of this shape with its channels last.
Shape channels_last(Shape shape) {
  std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
  return shape;
}
Attrs channels_last(Attrs attrs) {
  attrs.set(kChannelsLast = true);
  return attrs;
}

void add_conv(Cases& cases, const ConvCase& c) {
  cases.add(op::conv, c.says, {f32(c.x), f32(c.w)}, attributes_of(c)).gives(c.y);
  Attrs input_grad = attributes_of(c), weight_grad = attributes_of(c);
  input_grad.set(kSpatial = spatial_of(c.x));
  weight_grad.set(kKernel = constant_shape(spatial_of(c.w)));
  cases.add(op::conv_input_grad, c.says, {f32(c.y), f32(c.w)}, input_grad).gives(c.x);
  cases.add(op::conv_weight_grad, c.says, {f32(c.x), f32(c.y)}, weight_grad).gives(c.w);
  Attrs in_parts = weight_grad;
  in_parts.set(kParts = 3);
  Shape parts(c.w.begin() + 1, c.w.end());
  parts.insert(parts.begin(), Dim(3));
  parts.push_back(c.w[0]);
  cases.add(op::conv_weight_grad_parts, c.says, {f32(c.x), f32(c.y)}, in_parts).gives(parts);
  const Shape x = channels_last(c.x), y = channels_last(c.y);
  const std::string says = c.says + ", channels last";
  cases.add(op::conv, says, {f32(x), f32(c.w)}, channels_last(attributes_of(c))).gives(y);
  cases.add(op::conv_input_grad, says, {f32(y), f32(c.w)}, channels_last(input_grad)).gives(x);
  cases.add(op::conv_weight_grad, says, {f32(x), f32(y)}, channels_last(weight_grad)).gives(c.w);
  cases.add(op::conv_weight_grad_parts, says, {f32(x), f32(y)}, channels_last(in_parts)).gives(parts);
}

}  // namespace

void add_conv_cases(Cases& cases) {
  const Dim width = kN + 4;
  const ConvCase convs[] = {
      {"one axis", {kN, 2, 6}, {3, 2, 3}, {kN, 3, 4}, {1}, {1}, {0}, {0}},
      {"one axis, stride and dilation", {2, 2, 9}, {2, 2, 3}, {2, 2, 3}, {2}, {2}, {0}, {0}},
      {"one axis, causal", {2, 1, 5}, {2, 1, 3}, {2, 2, 5}, {1}, {1}, {2}, {0}},
      {"two axes", {kN, 2, 4, 5}, {3, 2, 2, 3}, {kN, 3, 3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
      {"same size", {2, 2, 4, 4}, {2, 2, 3, 3}, {2, 2, 4, 4}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {"strides", {2, 1, 6, 7}, {2, 1, 3, 3}, {2, 2, 2, 3}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
      {"a stride that leaves a rest", {1, 1, 6, 6}, {1, 1, 3, 3}, {1, 1, 2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
      {"a stride beyond the window", {1, 2, 7, 7}, {2, 2, 1, 2}, {1, 2, 3, 3}, {3, 3}, {1, 1}, {0, 0}, {1, 1}},
      {"dilations", {1, 2, 6, 5}, {2, 2, 2, 2}, {1, 2, 3, 4}, {1, 1}, {3, 1}, {0, 0}, {0, 0}},
      {"unequal pads, strides and dilations", {1, 1, 5, 6}, {2, 1, 2, 3}, {1, 2, 3, 3}, {2, 3}, {2, 1}, {1, 2}, {1, 1}},
      {"groups", {2, 4, 4, 4}, {6, 2, 3, 3}, {2, 6, 2, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 2},
      {"depthwise", {kN, 3, 3, 3}, {6, 1, 2, 2}, {kN, 6, 2, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 3},
      {"groups, strides and pads", {1, 4, 5, 5}, {4, 2, 3, 3}, {1, 4, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 2},
      {"a window of 1", {kN, 3, 2, 2}, {2, 3, 1, 1}, {kN, 2, 2, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
      {"a window of 1, stride 2", {1, 2, 4, 4}, {3, 2, 1, 1}, {1, 3, 2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
      {"a window as large as the image", {kN, 2, 3, 3}, {2, 2, 3, 3}, {kN, 2, 1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
      {"three axes", {1, 2, 3, 4, 3}, {2, 2, 2, 2, 2}, {1, 2, 2, 3, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
      {"an empty batch", {kEmpty, 2, 4, 4}, {2, 2, 3, 3}, {kEmpty, 2, 2, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
      {"a symbolic length", {2, 1, width}, {2, 1, 3}, {2, 2, floordiv(width - 1, 2) + 1}, {2}, {1}, {1}, {1}},
      {"more padding than window", {1, 1, 2, 2}, {1, 1, 2, 2}, {1, 1, 7, 7}, {1, 1}, {1, 1}, {3, 3}, {3, 3}},
  };
  for (const ConvCase& c : convs) add_conv(cases, c);
  const auto transposed = [&](std::string says, Shape x, Shape w, Shape y, std::int64_t stride, Dim pad, std::int64_t groups) {
    Attrs attrs = {kStrides = Ints{stride, stride}, kDilations = Ints{1, 1}, kPadsBegin = Shape{pad, pad},
                   kPadsEnd = Shape{pad, pad},      kGroups = groups,        kSpatial = spatial_of(y)};
    cases.add(op::conv_input_grad, std::move(says), {f32(std::move(x)), f32(std::move(w))}, attrs).gives(y);
  };
  transposed("upsampling with output padding", {kN, 2, 3, 3}, {2, 3, 3, 3}, {kN, 3, 6, 6}, 2, 1, 1);
  transposed("upsampling in groups", {1, 4, 2, 2}, {4, 1, 2, 2}, {1, 2, 4, 4}, 2, 0, 2);
  cases
      .add(op::conv, "by hand", {given({1, 1, 4}, {1, 2, 3, 4}), given({1, 1, 2}, {10, 1})},
           {kStrides = Ints{1}, kDilations = Ints{1}, kPadsBegin = Shape{1}, kPadsEnd = Shape{0}, kGroups = 1})
      .equals({1, 12, 23, 34})
      .add(op::conv, "by hand, channels last", {given({1, 2, 2}, {1, 2, 3, 4}), given({1, 2, 1}, {10, 1})},
           channels_last({kStrides = Ints{1}, kDilations = Ints{1}, kPadsBegin = Shape{0}, kPadsEnd = Shape{0}, kGroups = 1}))
      .equals({12, 34});
}

namespace {

struct PoolCase {
  std::string says;
  Shape x, y;
  Ints kernel, strides, dilations;
  Shape pads_begin, pads_end;
  bool count_pads = false;
};

Attrs attributes_of(const PoolCase& c, const Shape& result) {
  return {kKernel = c.kernel,    kStrides = c.strides,          kDilations = c.dilations, kPadsBegin = c.pads_begin,
          kPadsEnd = c.pads_end, kSpatial = spatial_of(result), kCountPads = c.count_pads};
}

void add_max_pool(Cases& cases, const PoolCase& c) {
  double window = 1;
  for (const std::int64_t extent : c.kernel) window *= static_cast<double>(extent);
  const Operand taken = whole(DType::kI32, c.y, 0, window - 1);
  cases.add(op::max_pool, c.says, {f32(c.x)}, attributes_of(c, c.y)).gives(c.y).gives(c.y);
  cases.add(op::max_pool_grad, c.says, {f32(c.y), taken}, attributes_of(c, c.x)).gives(c.x);
  cases.add(op::max_pool_pick, c.says, {f32(c.x), taken}, attributes_of(c, c.y)).gives(c.y);
  const Shape x = channels_last(c.x), y = channels_last(c.y);
  const Operand taken_last = whole(DType::kI32, y, 0, window - 1);
  const std::string says = c.says + ", channels last";
  cases.add(op::max_pool, says, {f32(x)}, channels_last(attributes_of(c, c.y))).gives(y).gives(y);
  cases.add(op::max_pool_grad, says, {f32(y), taken_last}, channels_last(attributes_of(c, c.x))).gives(x);
  cases.add(op::max_pool_pick, says, {f32(x), taken_last}, channels_last(attributes_of(c, c.y))).gives(y);
  for (const bool column_major : {false, true}) {
    Attrs attrs = attributes_of(c, c.y);
    attrs.set(kSizes = spatial_of(c.x));
    attrs.set(kColumnMajor = column_major);
    cases.add(op::window_position, c.says + (column_major ? ", column by column" : ""), {taken}, attrs).gives(c.y);
  }
}

void add_avg_pool(Cases& cases, const PoolCase& c) {
  cases.add(op::avg_pool, c.says, {f32(c.x)}, attributes_of(c, c.y)).gives(c.y);
  cases.add(op::avg_pool_grad, c.says, {f32(c.y)}, attributes_of(c, c.x)).gives(c.x);
  const Shape x = channels_last(c.x), y = channels_last(c.y);
  cases.add(op::avg_pool, c.says + ", channels last", {f32(x)}, channels_last(attributes_of(c, c.y))).gives(y);
  cases.add(op::avg_pool_grad, c.says + ", channels last", {f32(y)}, channels_last(attributes_of(c, c.x))).gives(x);
}

}  // namespace

void add_pool_cases(Cases& cases) {
  const PoolCase pools[] = {
      {"halves", {kN, 2, 4, 6}, {kN, 2, 2, 3}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
      {"overlapping windows", {2, 1, 5, 5}, {2, 1, 3, 3}, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
      {"padded", {1, 2, 5, 5}, {1, 2, 3, 3}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
      {"unequal pads", {1, 1, 4, 5}, {1, 1, 4, 3}, {2, 3}, {1, 2}, {1, 1}, {0, 1}, {1, 1}},
      {"dilated", {1, 1, 6, 6}, {1, 1, 4, 2}, {2, 3}, {1, 1}, {2, 2}, {0, 0}, {0, 0}},
      {"a rest that does not count", {1, 1, 5, 5}, {1, 1, 2, 2}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
      {"ceil mode: windows over the edge", {1, 1, 5, 5}, {1, 1, 3, 3}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
      {"one axis", {kN, 2, 7}, {kN, 2, 3}, {3}, {2}, {1}, {0}, {0}},
      {"more positions than are written out", {kN, 2, 6, 6}, {kN, 2, 2, 2}, {5, 5}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
      {"three axes", {1, 1, 4, 2, 4}, {1, 1, 2, 1, 2}, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
      {"the whole image", {kN, 3, 3, 2}, {kN, 3, 1, 1}, {3, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
      {"an empty batch", {kEmpty, 1, 4, 4}, {kEmpty, 1, 2, 2}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
      {"gaps between windows", {1, 2, 7, 7}, {1, 2, 2, 2}, {2, 2}, {4, 4}, {1, 1}, {0, 0}, {0, 0}},
      {"a symbolic length", {2, 1, kN + 3}, {2, 1, floordiv(kN + 3, 2)}, {2}, {2}, {1}, {0}, {0}},
  };
  for (const PoolCase& c : pools) {
    add_max_pool(cases, c);
    add_avg_pool(cases, c);
  }
  add_avg_pool(cases, {"padded, pads count", {1, 2, 5, 5}, {1, 2, 3, 3}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, true});
  add_avg_pool(cases, {"ceil mode, pads count, the rest does not", {1, 1, 5, 5}, {1, 1, 4, 4}, {2, 2}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, true});
  add_avg_pool(cases, {"dilated and padded", {1, 1, 5, 5}, {1, 1, 4, 4}, {2, 2}, {1, 1}, {3, 3}, {1, 1}, {1, 1}});
  const Attrs pairs = {kKernel = Ints{2}, kStrides = Ints{2}, kDilations = Ints{1}, kPadsBegin = Shape{0}, kPadsEnd = Shape{0}, kSpatial = Shape{2}};
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  cases.add(op::max_pool, "the first of ties takes the gradient", {given({1, 1, 4}, {2, 2, -1, -1})}, pairs).equals({2, -1}).slopes({1, 0, 1, 0});
  cases.add(op::max_pool, "NaN and -inf", {given({1, 1, 4}, {2, nan, -inf, -inf})}, pairs).equals({nan, -inf}).not_differentiated("the case is about NaN");
  for (const DType dtype : {DType::kI8, DType::kU8, DType::kI32, DType::kI64})
    cases.add(op::max_pool, "integers, " + std::string(to_string(dtype)), {given(dtype, {1, 1, 4}, {0, 3, 100, 7})}, pairs).equals({3, 100});
  const Attrs padded = {kKernel = Ints{2}, kStrides = Ints{2}, kDilations = Ints{1}, kPadsBegin = Shape{1}, kPadsEnd = Shape{1}, kSpatial = Shape{3}};
  cases.add(op::max_pool, "lowest integers beside a pad", {given(DType::kI8, {1, 1, 4}, {-128, -128, -128, 5})}, padded).equals({-128, -128, 5});
  const Attrs long_padded = {kKernel = Ints{17}, kStrides = Ints{17}, kDilations = Ints{1}, kPadsBegin = Shape{15}, kPadsEnd = Shape{15}, kSpatial = Shape{2}};
  cases.add(op::max_pool, "-inf beside many pads takes the gradient", {given({1, 1, 4}, {-inf, -inf, 2, 3})}, long_padded)
      .equals({-inf, 3})
      .slopes({1, 0, 0, 1});
  cases.add(op::max_pool, "-inf beside a pad takes the gradient", {given({1, 1, 4}, {-inf, 1, 2, 3})}, padded).equals({-inf, 2, 3}).slopes({1, 0, 1, 1});
  cases
      .add(op::window_position, "by hand", {given(DType::kI32, {1, 2, 2}, {1, 0, 0, 1})},
           {kKernel = Ints{2}, kStrides = Ints{2}, kDilations = Ints{1}, kPadsBegin = Shape{0}, kPadsEnd = Shape{0}, kSpatial = Shape{2}, kSizes = Shape{4}})
      .equals({1, 2, 4, 7});
  cases.add(op::avg_pool, "by hand", {given({1, 1, 4}, {2, 4, -1, 3})}, pairs).equals({3, 1});
}

}  // namespace hone::test
