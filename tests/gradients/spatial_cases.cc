// Resampling, regions of interest, and space to depth.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

GradientInput scales(std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return constant(x_of({count}, std::move(values)));
}

void add_resize(GradientCases& cases) {
  const char* const op = "Resize";
  const auto by = [&](const std::string& says, GradientInput input, std::vector<double> factors, std::vector<GradientAttribute> attributes) {
    cases.add(op, says, {std::move(input), absent(), scales(std::move(factors))}, std::move(attributes)).opset(19);
  };
  const auto to = [&](const std::string& says, GradientInput input, std::vector<std::int64_t> sizes, std::vector<GradientAttribute> attributes) {
    cases.add(op, says, {std::move(input), absent(), absent(), numbers(std::move(sizes))}, std::move(attributes)).opset(19);
  };
  by("nearest, larger", x({1, 2, 2, 3}), {1, 1, 2, 2}, {{"mode", "nearest"}});
  by("nearest, smaller", x({1, 1, 5, 4}), {1, 1, 0.6, 0.5}, {{"mode", "nearest"}, {"nearest_mode", "ceil"}, {"coordinate_transformation_mode", "asymmetric"}});
  by("linear, larger", x({1, 2, 3, 2}), {1, 1, 2, 3}, {{"mode", "linear"}});
  by("linear, smaller", x({2, 1, 4, 5}), {1, 1, 0.5, 0.6}, {{"mode", "linear"}});
  by("linear, aligned corners", x({1, 1, 3, 3}), {1, 1, 2, 1.5}, {{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}});
  by("cubic, larger", x({1, 1, 4, 4}), {1, 1, 2, 1.5}, {{"mode", "cubic"}});
  by("cubic, smaller", x({1, 1, 6, 5}), {1, 1, 0.5, 0.8}, {{"mode", "cubic"}, {"cubic_coeff_a", -0.5}, {"exclude_outside", 1}});
  by("one axis", x({2, 3, 5}), {1, 1, 1.6}, {{"mode", "linear"}, {"coordinate_transformation_mode", "pytorch_half_pixel"}});
  by("three axes", x({1, 1, 2, 3, 2}), {1, 1, 2, 1, 1.5}, {{"mode", "linear"}});
  by("a symbolic batch", x({"N", 1, 2, 2}), {1, 1, 2, 2}, {{"mode", "linear"}});
  by("symbolic extents", x({1, 1, "N", "M"}), {1, 1, 2, 1.5}, {{"mode", "linear"}});
  to("nearest, to sizes", x({1, 2, 3, 3}), {1, 2, 5, 2}, {{"mode", "nearest"}, {"nearest_mode", "floor"}});
  to("cubic, to sizes", x({1, 1, 4, 3}), {1, 1, 3, 5}, {{"mode", "cubic"}});
  to("linear, filtered", x({1, 1, 6, 7}), {1, 1, 3, 2}, {{"mode", "linear"}, {"antialias", 1}});
  to("cubic, filtered", x({1, 1, 7, 4}), {1, 1, 3, 4}, {{"mode", "cubic"}, {"antialias", 1}});
  to("two axes by name", x({3, 2, 2}), {4, 5}, {{"mode", "linear"}, {"axes", Ints{2, 0}}});
  cases.add(op, "cropped", {x({1, 1, 5, 4}), constant(x_of({8}, {0, 0, 0.1, -0.2, 1, 1, 0.8, 1.1})), absent(), numbers({1, 1, 3, 4})},
            {{"mode", "linear"}, {"coordinate_transformation_mode", "tf_crop_and_resize"}, {"extrapolation_value", 3.0}})
      .opset(19);
}

void add_grid_sample(GradientCases& cases) {
  const char* const op = "GridSample";
  const auto add = [&](const std::string& says, std::vector<Extent> image, GradientInput grid, std::vector<GradientAttribute> attributes) {
    cases.add(op, says, {x(std::move(image)), std::move(grid)}, std::move(attributes)).opset(20);
  };
  add("linear", {1, 2, 3, 4}, x({1, 2, 3, 2}, -0.9, 0.9), {});
  add("linear, beyond the image", {1, 1, 3, 3}, x({1, 3, 3, 2}, -1.7, 1.7), {});
  add("linear, aligned corners", {2, 1, 3, 2}, x({2, 2, 2, 2}, -1.2, 1.2), {{"align_corners", 1}});
  add("linear, border", {1, 2, 3, 3}, x({1, 3, 2, 2}, -1.6, 1.6), {{"padding_mode", "border"}});
  add("linear, reflection", {1, 1, 4, 3}, x({1, 3, 3, 2}, -1.9, 1.9), {{"padding_mode", "reflection"}});
  add("cubic", {1, 1, 4, 4}, x({1, 2, 3, 2}, -1.1, 1.1), {{"mode", "cubic"}});
  add("cubic, border, aligned corners", {1, 1, 4, 4}, x({1, 2, 3, 2}, -1.4, 1.4), {{"mode", "cubic"}, {"padding_mode", "border"}, {"align_corners", 1}});
  add("cubic, reflection", {1, 1, 4, 3}, x({1, 2, 3, 2}, -1.7, 1.7), {{"mode", "cubic"}, {"padding_mode", "reflection"}});
  add("nearest", {1, 2, 3, 4}, x({1, 2, 3, 2}, -1.2, 1.2), {{"mode", "nearest"}});
  add("a fixed grid", {1, 2, 3, 3}, fed(x({1, 2, 2, 2}, -1, 1)), {});
  add("three axes", {1, 1, 2, 3, 2}, x({1, 2, 1, 2, 3}, -0.9, 0.9), {});
  add("a symbolic batch", {"N", 1, 3, 3}, x({"N", 2, 2, 2}, -0.9, 0.9), {});
  add("symbolic extents", {1, 1, "N", "M"}, x({1, "M", 2, 2}, -0.8, 0.8), {});
}

void add_affine_grid(GradientCases& cases) {
  const char* const op = "AffineGrid";
  const auto add = [&](const std::string& says, std::vector<Extent> theta, std::vector<std::int64_t> size, std::int64_t align) {
    cases.add(op, says, {x(std::move(theta)), numbers(std::move(size))}, {{"align_corners", align}}).opset(20);
  };
  for (const std::int64_t align : {0, 1}) {
    const std::string corners = align != 0 ? ", aligned corners" : "";
    add("an image" + corners, {1, 2, 3}, {1, 1, 3, 4}, align);
    add("a batch" + corners, {3, 2, 3}, {3, 2, 2, 2}, align);
    add("one row" + corners, {2, 2, 3}, {2, 1, 1, 3}, align);
    add("a volume" + corners, {1, 3, 4}, {1, 1, 2, 3, 2}, align);
    add("a batch of volumes" + corners, {2, 3, 4}, {2, 2, 2, 1, 2}, align);
  }
  cases.add(op, "a symbolic batch", {x({"N", 2, 3}), numbers({3, 1, 2, 2})}).opset(20);
  cases.add(op, "sampled", {x({1, 2, 3}, -0.4, 0.4), numbers({1, 1, 2, 3}), x({1, 1, 3, 4})}).opset(20).nodes([](TestModel& model) {
    model.node("AffineGrid", {"x0", "c1"}, {"grid"});
    model.node("GridSample", {"x2", "grid"}, {"y0"});
  });
}

/// rois [x1, y1, x2, y2] of images 0 and 1.
void add_roi_align(GradientCases& cases) {
  const char* const op = "RoiAlign";
  const std::vector<double> corners = {0.3, 0.2, 4.1, 3.7, 1.2, 0.6, 5.3, 4.4, -1.5, 2.1, 2.7, 7.3};
  const auto add = [&](const std::string& says, std::vector<Extent> image, std::vector<GradientAttribute> attributes) {
    cases.add(op, says, {x(std::move(image)), constant(x_of({3, 4}, corners)), given(DType::kI64, {3}, {0, 1, 1})}, std::move(attributes));
  };
  const auto bins = [](std::int64_t high, std::int64_t wide, std::vector<GradientAttribute> more = {}) {
    more.insert(more.end(), {{"output_height", high}, {"output_width", wide}});
    return more;
  };
  add("one bin", {2, 2, 5, 6}, bins(1, 1, {{"sampling_ratio", 1}}));
  add("two samples a bin", {2, 1, 5, 6}, bins(2, 3, {{"sampling_ratio", 2}}));
  add("three samples a bin", {2, 2, 4, 5}, bins(2, 2, {{"sampling_ratio", 3}}));
  add("adaptive", {2, 1, 5, 6}, bins(2, 2));
  add("adaptive, one bin", {2, 1, 6, 5}, bins(1, 1));
  add("scaled", {2, 2, 4, 4}, bins(2, 2, {{"sampling_ratio", 2}, {"spatial_scale", 0.5}}));
  add("output_half_pixel", {2, 1, 5, 6}, bins(2, 2, {{"sampling_ratio", 2}, {"coordinate_transformation_mode", "output_half_pixel"}}));
  add("the largest", {2, 1, 5, 6}, bins(2, 2, {{"sampling_ratio", 2}, {"mode", "max"}}));
  add("the largest, adaptive", {2, 1, 5, 5}, bins(2, 1, {{"mode", "max"}}));
  add("the largest, scaled", {2, 2, 4, 4}, bins(1, 2, {{"sampling_ratio", 2}, {"mode", "max"}, {"spatial_scale", 0.5}}));
  add("symbolic extents", {2, 1, "N", "N"}, bins(2, 2, {{"sampling_ratio", 2}}));
  add("a symbolic batch", {"M", 1, 4, 4}, bins(2, 2, {{"sampling_ratio", 2}}));
}

void add_max_roi_pool(GradientCases& cases) {
  const char* const op = "MaxRoiPool";
  const std::vector<double> corners = {0, 0, 1, 3, 4, 1, 2, 0, 5, 3, 1, -1, 2, 2, 9};
  const auto add = [&](const std::string& says, std::vector<Extent> image, Ints bins, double scale) {
    cases.add(op, says, {x(std::move(image)), constant(x_of({3, 5}, corners))}, {{"pooled_shape", std::move(bins)}, {"spatial_scale", scale}});
  };
  add("one bin", {2, 2, 5, 6}, {1, 1}, 1);
  add("two by two", {2, 1, 5, 6}, {2, 2}, 1);
  add("three by two", {2, 2, 5, 6}, {3, 2}, 1);
  add("many bins", {2, 1, 5, 6}, {6, 7}, 1);
  add("half the size", {2, 1, 4, 4}, {2, 2}, 0.5);
  add("a quarter of the size", {2, 2, 3, 3}, {1, 2}, 0.25);
  add("twice the size", {2, 1, 8, 9}, {2, 3}, 2);
  add("one channel, one row", {2, 1, 1, 7}, {1, 3}, 1);
  add("a symbolic batch", {"M", 2, 4, 4}, {2, 2}, 1);
  add("symbolic extents", {2, 1, "N", "N"}, {2, 2}, 1);
  cases.add(op, "fed regions", {x({1, 2, 4, 4}), given(DType::kF32, {"M", 5}, {0, 0, 0, 2, 2, 0, 1, 1, 3, 3})}, {{"pooled_shape", Ints{2, 2}}});
}

void add_deform_conv(GradientCases& cases) {
  const char* const op = "DeformConv";
  const auto offset = [](std::vector<Extent> shape) { return x(std::move(shape), -0.9, 0.9); };
  const auto mask = [](std::vector<Extent> shape) { return x(std::move(shape), 0.1, 1); };
  const auto add = [&](const std::string& says, std::vector<GradientInput> inputs, std::vector<GradientAttribute> attributes = {}) {
    cases.add(op, says, std::move(inputs), std::move(attributes)).opset(19);
  };
  add("an image", {x({1, 1, 3, 3}), x({1, 1, 2, 2}), offset({1, 8, 2, 2})});
  add("a bias", {x({1, 2, 3, 3}), x({2, 2, 2, 2}), offset({1, 8, 2, 2}), x({2})});
  add("a mask", {x({1, 1, 3, 3}), x({1, 1, 2, 2}), offset({1, 8, 2, 2}), absent(), mask({1, 4, 2, 2})});
  add("a bias and a mask", {x({2, 1, 3, 2}), x({2, 1, 2, 1}), offset({2, 4, 2, 2}), x({2}), mask({2, 2, 2, 2})});
  add("pads", {x({1, 1, 3, 3}), x({1, 1, 3, 3}), offset({1, 18, 3, 3})}, {{"pads", Ints{1, 1, 1, 1}}});
  add("strides", {x({1, 2, 5, 4}), x({1, 2, 2, 2}), offset({1, 8, 2, 2})}, {{"strides", Ints{2, 2}}});
  add("dilations", {x({1, 1, 4, 5}), x({1, 1, 2, 2}), offset({1, 8, 2, 2})}, {{"dilations", Ints{2, 3}}});
  add("groups", {x({1, 4, 2, 3}), x({2, 2, 2, 2}), offset({1, 8, 1, 2})}, {{"group", 2}});
  add("offset groups", {x({1, 4, 2, 3}), x({2, 4, 2, 2}), offset({1, 16, 1, 2}), absent(), mask({1, 8, 1, 2})}, {{"offset_group", 2}});
  add("both kinds of groups", {x({1, 4, 2, 2}), x({4, 2, 1, 2}), offset({1, 16, 2, 1}), x({4}), mask({1, 8, 2, 1})}, {{"group", 2}, {"offset_group", 4}});
  add("a symbolic batch", {x({"N", 1, 2, 3}), x({1, 1, 2, 2}), offset({"N", 8, 1, 2})});
  add("fixed offsets", {x({1, 2, 3, 3}), x({2, 2, 2, 2}), fed(offset({1, 8, 2, 2})), x({2})});
}

}  // namespace

void add_spatial_cases(GradientCases& cases) {
  add_resize(cases);
  add_grid_sample(cases);
  add_affine_grid(cases);
  add_roi_align(cases);
  add_max_roi_pool(cases);
  add_deform_conv(cases);
}

}  // namespace hone::test
