// Weighted gathers, resizing, sampling on grids, regions of interest.
#include <limits>

#include "tests/ops/op_cases.h"

namespace hone::test {

namespace {

/// The three of a trilinear form: x[B,C,S,D], index [b,P,T], so that y is [B,C,P,D].
void add_gather_sums(Cases& cases, const std::string& says, const Shape& x, const Shape& index, double lowest, double highest) {
  const Operand at = whole(DType::kI64, index, lowest, highest);
  const Shape y = {x[0], x[1], index[1], x[3]};
  cases.add(op::gather_sum, says, {f32(x), at, f32(index)}).gives(y);
  cases.add(op::gather_sum_input_grad, says, {f32(y), at, f32(index)}, {kSizes = Shape{x[2]}}).gives(x);
  cases.add(op::gather_sum_weight_grad, says, {f32(x), f32(y), at}).gives(index);
}

struct ResizeCase {
  std::string says;
  Dim in, out;
  Attrs attrs;
  std::vector<double> numbers = {};  ///< scale, start, end
  std::vector<double> index = {};    ///< expected
};

void add_resize(Cases& cases, const ResizeCase& c, Dim taps) {
  Attrs attrs = c.attrs;
  attrs.set(kSizes = Shape{c.in, c.out});
  attrs.set(kTo = DType::kF32);
  if (not attrs.has(kCoordinates)) attrs.set(kCoordinates = "half_pixel");
  if (not attrs.has(kRounding)) attrs.set(kRounding = "round_prefer_floor");
  if (attrs[kMode] == "cubic") attrs.set(kCubicA = -0.75);
  std::vector<Operand> operands;
  for (const double number : c.numbers) operands.push_back(constant(given(DType::kF64, {}, {number})));
  while (operands.size() < 3) operands.push_back(absent());
  cases.add(op::resize_taps, c.says, operands, attrs).gives({c.out, taps});
  if (not c.index.empty()) cases.equals(c.index);
}

void add_resizes(Cases& cases) {
  const Attrs nearest = {kMode = "nearest"}, linear = {kMode = "linear"}, cubic = {kMode = "cubic"};
  const auto with = [](Attrs attrs, std::initializer_list<Attr> more) {
    for (const Attr& attr : more) attrs.set(attr);
    return attrs;
  };
  for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"})
    add_resize(cases, {std::string("nearest, ") + rounding, 4, 6, with(nearest, {kRounding = rounding})}, 1);
  for (const char* mode : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"}) {
    add_resize(cases, {std::string("linear, ") + mode, 4, 7, with(linear, {kCoordinates = mode})}, 2);
    add_resize(cases, {std::string("cubic by a scale, ") + mode, 5, 3, with(cubic, {kCoordinates = mode}), {0.7}}, 4);
    add_resize(cases, {std::string("to one element, ") + mode, 5, 1, with(linear, {kCoordinates = mode})}, 2);
  }
  add_resize(cases, {"nearest, twice as many", 3, 6, with(nearest, {}), {}, {0, 0, 1, 1, 2, 2}}, 1);
  add_resize(cases, {"ties go to the floor", 2, 1, nearest, {}, {0}}, 1);
  add_resize(cases, {"ties go to the ceiling", 2, 1, with(nearest, {kRounding = "round_prefer_ceil"}), {}, {1}}, 1);
  add_resize(cases, {"the outermost element stands in", 2, 4, linear, {}, {0, 0, 0, 1, 0, 1, 1, 1}}, 2);
  add_resize(cases, {"linear, what is outside left out", 3, 5, with(linear, {kExcludeOutside = true})}, 2);
  add_resize(cases, {"cubic, what is outside left out", 4, 6, with(cubic, {kExcludeOutside = true})}, 4);
  add_resize(cases, {"linear, filtered", 7, 3, with(linear, {kAntialias = true})}, 6);
  add_resize(cases, {"cubic, filtered", 7, 3, with(cubic, {kAntialias = true})}, 10);
  add_resize(cases, {"cubic, filtered, what is outside left out", 8, 4, with(cubic, {kAntialias = true, kExcludeOutside = true})}, 8);
  add_resize(cases, {"a filter does nothing to an axis that grows", 3, 6, with(linear, {kAntialias = true})}, 2);
  add_resize(cases, {"symbolic extents", kN + 4, kN * 2, linear}, 2);
  add_resize(cases, {"symbolic extents, filtered", kN * 2, kN, with(linear, {kAntialias = true})}, max(ceildiv(kN * 2, max(kN, 1)), 1) * 2);
  add_resize(cases, {"no elements", 3, kEmpty, linear}, 2);
  add_resize(cases, {"cropped", 6, 4, with(linear, {kCoordinates = "tf_crop_and_resize"}), {4.0 / 6, 0.25, 0.9}}, 2);
  add_resize(cases, {"cropped beyond the ends", 4, 3, with(nearest, {kCoordinates = "tf_crop_and_resize"}), {0.75, -0.5, 1.5}, {4, 1, 4}}, 1);
}

void add_grids(Cases& cases) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const bool align : {false, true}) {
        const std::string says = std::string(mode) + ", " + padding + (align ? ", aligned corners" : "");
        const Attrs attrs = {kMode = mode, kPadding = padding, kAlignCorners = align};
        cases.add(op::grid_sample, says, {f32({2, 2, 4, 3}), f32({2, 3, 2, 2}, -1.7, 1.7)}, attrs).gives({2, 2, 3, 2});
      }
    }
    const Attrs zeros = {kMode = mode, kPadding = "zeros"};
    cases.add(op::grid_sample, std::string(mode) + " in one axis", {f32({kN, 2, 5}), f32({kN, 4, 1}, -1.3, 1.3)}, zeros).gives({kN, 2, 4});
    cases.add(op::grid_sample, std::string(mode) + " in three axes", {f32({1, 2, 3, 2, 3}), f32({1, 2, 1, 2, 3}, -1.3, 1.3)}, zeros).gives({1, 2, 2, 1, 2});
  }
  const Attrs linear = {kMode = "linear", kPadding = "zeros", kAlignCorners = true};
  cases.add(op::grid_sample, "the centers themselves", {given({1, 1, 1, 3}, {1, 2, 3}), given({1, 1, 3, 2}, {-1, 0, 0, 0, 1, 0})}, linear).equals({1, 2, 3}).slopes({1, 1, 1});
  cases.add(op::grid_sample, "an axis of one element", {f32({1, 2, 1, 3}), f32({1, 2, 2, 2}, -1, 1)}, {kMode = "cubic", kPadding = "reflection", kAlignCorners = true})
      .not_differentiated("reflection about one point");
  cases.add(op::grid_sample, "symbolic extents", {f32({kN, 2, kM + 1, kN}), f32({kN, kM, 2, 2}, -1.1, 1.1)}, {kMode = "linear", kPadding = "border"}).gives({kN, 2, kM, 2});
  cases.add(op::grid_sample, "an empty batch", {f32({kEmpty, 2, 3, 3}), f32({kEmpty, 2, 2, 2}, -1, 1)}, linear).gives({kEmpty, 2, 2, 2});
}

struct DeformCase {
  std::string says;
  Shape x, w, y;
  std::int64_t stride, dilation;
  Dim pad;
  std::int64_t groups = 1, offset_groups = 1;
  bool has_mask = true;
};

void add_deform_conv(Cases& cases, const DeformCase& c) {
  const std::size_t spatial = c.x.size() - 2;
  Dim window = c.offset_groups;
  for (std::size_t i = 2; i < c.w.size(); ++i) window *= c.w[i];
  Shape offset = {c.x[0], window * static_cast<std::int64_t>(spatial)}, mask = {c.x[0], window};
  offset.insert(offset.end(), c.y.begin() + 2, c.y.end());
  mask.insert(mask.end(), c.y.begin() + 2, c.y.end());
  cases
      .add(op::deform_conv, c.says, {f32(c.x), f32(c.w), f32(offset, -0.9, 0.9), c.has_mask ? f32(mask, 0, 1) : absent()},
           {kStrides = Ints(spatial, c.stride), kDilations = Ints(spatial, c.dilation), kPadsBegin = Shape(spatial, c.pad), kPadsEnd = Shape(spatial, c.pad),
            kGroups = c.groups, kOffsetGroups = c.offset_groups})
      .gives(c.y);
}

void add_deform_convs(Cases& cases) {
  add_deform_conv(cases, {"without a mask", {1, 1, 3, 3}, {1, 1, 2, 2}, {1, 1, 2, 2}, 1, 1, 0, 1, 1, false});
  add_deform_conv(cases, {"with a mask", {kN, 2, 3, 3}, {2, 2, 2, 2}, {kN, 2, 2, 2}, 1, 1, 0});
  add_deform_conv(cases, {"padded and strided", {1, 2, 4, 4}, {1, 2, 3, 3}, {1, 1, 2, 2}, 2, 1, 1});
  add_deform_conv(cases, {"dilated", {1, 1, 4, 4}, {2, 1, 2, 2}, {1, 2, 2, 2}, 1, 2, 0});
  add_deform_conv(cases, {"groups", {2, 4, 2, 2}, {2, 2, 2, 1}, {2, 2, 1, 2}, 1, 1, 0, 2});
  add_deform_conv(cases, {"offset groups", {2, 4, 2, 2}, {2, 4, 1, 2}, {2, 2, 2, 1}, 1, 1, 0, 1, 2});
  add_deform_conv(cases, {"both kinds of groups", {1, 4, 3, 2}, {4, 2, 2, 1}, {1, 4, 2, 2}, 1, 1, 0, 2, 4});
  add_deform_conv(cases, {"one axis", {kN, 2, 5}, {1, 2, 3}, {kN, 1, 3}, 1, 1, 0});
  add_deform_conv(cases, {"three axes", {1, 1, 2, 3, 2}, {1, 1, 2, 2, 1}, {1, 1, 1, 2, 2}, 1, 1, 0});
  add_deform_conv(cases, {"a symbolic length", {1, 1, kN + 2, kM}, {1, 1, 2, 1}, {1, 1, kN + 1, kM}, 1, 1, 0});
  // Windows that are not moved: a convolution, and its slopes.
  cases
      .add(op::deform_conv, "no offsets", {given({1, 1, 1, 3}, {1, 2, 3}), given({1, 1, 1, 2}, {10, 1}), given({1, 4, 1, 2}, {0, 0, 0, 0, 0, 0, 0, 0}), absent()},
           {kStrides = Ints{1, 1}, kDilations = Ints{1, 1}, kPadsBegin = Shape{0, 0}, kPadsEnd = Shape{0, 0}, kGroups = 1, kOffsetGroups = 1})
      .equals({12, 23})
      .slopes({10, 11, 1});
}

void add_regions(Cases& cases) {
  const Operand rois = f32({3, 4}, -1, 9), batch = whole(DType::kI64, {3}, 0, 1);
  const auto taps = [&](std::string says, Operand regions, Shape sizes, Attrs attrs, Shape shape) {
    attrs.set(kSizes = std::move(sizes));
    cases.add(op::roi_taps, std::move(says), {std::move(regions), batch}, std::move(attrs)).gives(std::move(shape));
  };
  const Operand proper = given({3, 4}, {0, 0, 3, 5, 1.5, 0.5, 6, 2, -2, -3, 9, 9});
  for (const char* mode : {"avg", "max"}) {
    taps(std::string(mode) + ", two samples", proper, {6, 7, 2, 3, 2, 2}, {kScale = 1.0, kMode = mode, kHalfPixel = true}, {3, 2, 3, 2, 2, 4});
    taps(std::string(mode) + ", adaptive", proper, {6, 7, 2, 2, 6, 6}, {kScale = 1.0, kMode = mode, kAdaptive = true}, {3, 2, 2, 6, 6, 4});
  }
  taps("scaled", proper, {4, 4, 1, 2, 3, 1}, {kScale = 0.5, kMode = "avg"}, {3, 1, 2, 3, 1, 4});
  taps("corners in any order", rois, {5, 5, 2, 2, 3, 3}, {kScale = 1.0, kMode = "avg", kHalfPixel = true, kAdaptive = true}, {3, 2, 2, 3, 3, 4});
  const auto pool = [&](std::string says, Shape x, Operand regions, Shape bins, double scale) {
    const Shape shape = {regions.type.shape[0], x[1], bins[0], bins[1]};
    cases.add(op::max_roi_pool, std::move(says), {f32(std::move(x)), constant(std::move(regions))}, {kSizes = std::move(bins), kScale = scale}).gives(shape).gives(shape);
  };
  const Operand two = given({2, 5}, {0, 1, 1, 3, 4, 1, 0, 2, 5, 3});
  pool("two regions", {2, 2, 5, 6}, two, {2, 2}, 1);
  pool("scaled", {2, 1, 4, 4}, two, {1, 2}, 0.5);
  pool("more bins than elements", {2, 1, 4, 6}, two, {5, 7}, 1);
  pool("beyond the image", {kM, 1, 3, 3}, given({2, 5}, {0, -2, -2, 1, 1, 1, 2, 2, 7, 7}), {2, 2}, 1);
  const double lowest = -std::numeric_limits<double>::infinity();
  cases.add(op::max_roi_pool, "empty bins and -inf", {given({1, 1, 1, 3}, {1, lowest, lowest}), constant(given({1, 5}, {0, 1, 0, 4, 0}))}, {kSizes = Shape{1, 4}, kScale = 1.0})
      .equals({lowest, lowest, 0, 0})
      .slopes({0, 1, 1});
}

}  // namespace

void add_spatial_cases(Cases& cases) {
  add_gather_sums(cases, "an index for all", {2, 3, 5, 2}, {1, 4, 3}, 0, 4);
  add_gather_sums(cases, "an index a batch element", {kN, 2, 4, 3}, {kN, 2, 2}, 0, 3);
  add_gather_sums(cases, "taps outside", {2, 2, 3, 1}, {2, 5, 2}, -2, 5);
  add_gather_sums(cases, "symbolic extents", {kN, kM, kN + 1, kM}, {1, kM, 2}, 0, 3);
  add_gather_sums(cases, "no positions", {2, 2, 3, 2}, {1, kEmpty, 2}, 0, 2);
  add_gather_sums(cases, "no taps", {2, 1, 3, 1}, {1, 2, kEmpty}, 0, 2);
  add_gather_sums(cases, "an empty batch", {kEmpty, 2, 3, 1}, {kEmpty, 2, 2}, 0, 2);
  cases.add(op::gather_sum, "by hand", {given({1, 1, 3, 1}, {1, 2, 3}), given(DType::kI64, {1, 2, 2}, {0, 2, 1, 3}), given({1, 2, 2}, {10, 1, 5, 7})}).equals({13, 10});
  add_resizes(cases);
  add_grids(cases);
  add_deform_convs(cases);
  add_regions(cases);
}

}  // namespace hone::test
