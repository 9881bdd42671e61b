// Resize: each axis by itself, taps by taps (ir/ops/resize.cc).
#include "frontend/onnx/ops/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/onnx/constant_value.h"
#include "frontend/onnx/ops/fed_axes.h"
#include "frontend/onnx/versions.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// One axis that is resized. `scale` is invalid where it is the quotient of the extents; start and end are those of the crop, if there is one.
struct Resized {
  std::size_t axis;
  Dim in, out;
  Val scale, start, end;
};

/// Element `i` of a vector as a number of type f64.
Val element(Val vector, std::size_t i) {
  const Attrs attrs = {kStarts = Shape{static_cast<std::int64_t>(i)}, kSizes = Shape{1}, kSteps = Ints{1}};
  return cast(reshape(op::slice(vector, attrs), {}), DType::kF64);
}

bool is_given(const ImportNode& node, std::size_t i) { return node.has(i) and not element_count(node.x(i).shape()).is_constant(0); }

/// floor(extent * scale), the product rounded to f32 as runtimes do; for an extent that is not known the scale must be a fraction of small numbers.
Dim scaled(const ImportNode& node, const Dim& extent, float scale) {
  constexpr int kLargestDenominator = 64;
  node.require(std::isfinite(scale) and scale > 0, Code::kBadAttribute, fmt::format("a scale of {}", scale));
  if (extent.is_constant()) return static_cast<std::int64_t>(std::floor(static_cast<float>(extent.value()) * scale));
  for (int denominator = 1; denominator <= kLargestDenominator; ++denominator) {
    const float numerator = std::round(scale * static_cast<float>(denominator));
    if (numerator >= 1 and numerator / static_cast<float>(denominator) == scale) return floordiv(extent * static_cast<std::int64_t>(numerator), denominator);
  }
  node.fail(Code::kDynamic, fmt::format("an extent of {} times {} is no size that can be written down", extent.text(), scale),
            {fmt::format("fix the size with --dim {}=N", extent.symbols().front())});
}

Val extents_of(const ImportNode& node, const std::vector<Resized>& axes, Dim Resized::*extent) {
  Shape extents;
  for (const Resized& one : axes) extents.push_back(one.*extent);
  return cast(node.builder().add(op::sizes, {}, {kSizes = extents})[0], DType::kF64);
}

/// Sizes that are read when running.
void resize_by_fed_scales(const ImportNode& node, Val scales, std::vector<Resized>& axes) {
  const Val in = cast(extents_of(node, axes, &Resized::in), DType::kF32);  // rounded as runtimes do
  const std::vector<Dim> out = read_sizes(node, op::floor(in * cast(scales, DType::kF32)), "resized");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i].out = out[i];
    axes[i].scale = element(scales, i);
  }
}

void resize_by_scales(const ImportNode& node, std::vector<Resized>& axes) {
  const Val scales = fixed(node, 2);
  node.require(scales.rank() == 1 and scales.shape()[0].is_constant(static_cast<std::int64_t>(axes.size())), Code::kShape, "scales needs one number for each axis");
  const auto known = constant_value(node.builder().graph(), scales.id());
  if (not known) return resize_by_fed_scales(node, scales, axes);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto scale = static_cast<float>(known->at(static_cast<std::int64_t>(i)));
    axes[i].out = scaled(node, axes[i].in, scale);
    axes[i].scale = node.builder().scalar(scale, DType::kF64);
  }
}

void keep_aspect_ratio_when_running(const ImportNode& node, const std::string& policy, std::vector<Resized>& axes) {
  const Val in = extents_of(node, axes, &Resized::in), scales = extents_of(node, axes, &Resized::out) / in;
  const Val scale = (policy == "not_larger" ? op::reduce_min : op::reduce_max)(scales, {kAxes = Ints{0}, kKeepDims = false});
  const std::vector<Dim> out = read_sizes(node, op::floor(scale * in + 0.5), "resized");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i].out = out[i];
    axes[i].scale = scale;
  }
}

/// One scale for all axes, the smallest or the largest of those that the sizes ask for.
void keep_aspect_ratio(const ImportNode& node, const std::string& policy, std::vector<Resized>& axes) {
  node.require(policy == "not_larger" or policy == "not_smaller", Code::kBadAttribute, fmt::format("keep_aspect_ratio_policy = \"{}\"", policy));
  std::vector<double> scales;
  for (const Resized& one : axes) {
    if (not one.in.is_constant() or not one.out.is_constant()) return keep_aspect_ratio_when_running(node, policy, axes);
    scales.push_back(static_cast<double>(one.out.value()) / static_cast<double>(one.in.value()));
  }
  const double scale = policy == "not_larger" ? *std::min_element(scales.begin(), scales.end()) : *std::max_element(scales.begin(), scales.end());
  for (Resized& one : axes) {
    one.out = static_cast<std::int64_t>(std::floor(scale * static_cast<double>(one.in.value()) + 0.5));
    one.scale = node.builder().scalar(scale, DType::kF64);
  }
}

void resize_to_sizes(const ImportNode& node, std::vector<Resized>& axes) {
  const std::vector<Dim> sizes = node.contents(3, "sizes");
  node.require(sizes.size() == axes.size(), Code::kShape, fmt::format("{} sizes for {} axes", sizes.size(), axes.size()));
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i].out = sizes[i];
  if (const std::string policy = node.text("keep_aspect_ratio_policy", "stretch"); policy != "stretch") keep_aspect_ratio(node, policy, axes);
}

std::vector<Resized> resized_axes(const ImportNode& node, bool is_cropped) {
  const Val x = node.x(0);
  Ints named = node.integers("axes").value_or(Ints());
  if (not node.has_attribute("axes"))
    for (std::size_t i = 0; i < x.rank(); ++i) named.push_back(static_cast<std::int64_t>(i));
  (void)node.axes(named, x.rank());
  std::vector<Resized> axes;
  for (const std::int64_t one : named) {
    const std::size_t axis = node.axis(one, x.rank());
    axes.push_back({.axis = axis, .in = x.shape()[axis], .out = {}, .scale = {}, .start = {}, .end = {}});
  }
  node.require(is_given(node, 2) or is_given(node, 3), Code::kBadGraph, "needs scales or sizes");
  if (is_given(node, 3)) resize_to_sizes(node, axes);
  else resize_by_scales(node, axes);
  if (not is_cropped) return axes;
  node.require(is_given(node, 1), Code::kBadGraph, "tf_crop_and_resize needs a region");
  const Val region = fixed(node, 1);
  node.require(region.rank() == 1 and region.shape()[0].is_constant(static_cast<std::int64_t>(2 * axes.size())), Code::kShape,
               "the region needs a start and an end for each axis");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i].start = element(region, i);
    axes[i].end = element(region, i + axes.size());
  }
  return axes;
}

/// x with one axis taken by the taps.
Val taken(Val x, std::size_t axis, Val index, Val weight, bool is_nearest) {
  if (is_nearest) return op::gather(x, reshape(index, {index.shape()[0]}), {kAxis = static_cast<std::int64_t>(axis)});
  const Shape &shape = x.shape(), &taps = index.shape();
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  const Val rows = reshape(x, {element_count(Shape(shape.begin(), at)), 1, *at, element_count(Shape(at + 1, shape.end()))});
  Shape resized = shape;
  resized[axis] = taps[0];
  return reshape(op::gather_sum(rows, reshape(index, {1, taps[0], taps[1]}), reshape(weight, {1, taps[0], taps[1]})), resized);
}

/// y where the positions lie in the axis, else the extrapolation value.
Val extrapolated(const ImportNode& node, Val y, const Resized& one, Val index) {
  const Val first = op::slice(index, {kStarts = Shape{0, 0}, kSizes = Shape{one.out, 1}, kSteps = Ints{1, 1}});
  Shape along(y.rank(), Dim(1));
  along[one.axis] = one.out;
  const Val inside = op::less(reshape(first, along), size_value(node.builder(), one.in, DType::kI64));
  return op::where(inside, y, node.builder().scalar(node.real("extrapolation_value", 0), y.dtype()));
}

}  // namespace

DType working_type(DType dtype) {
  if (is_float(dtype)) return size_of(dtype) < size_of(DType::kF32) ? DType::kF32 : dtype;
  return size_of(dtype) < size_of(DType::kI32) ? DType::kF32 : DType::kF64;
}

Val fixed(const ImportNode& node, std::size_t i) {
  const Val x = node.x(i);
  const Input* input = node.builder().graph().input_of(x.id());
  if (input != nullptr and input->role == Role::kWeight) node.builder().set_role(x.id(), Role::kConstant);
  return x;
}

std::vector<Val> import_resize(const ImportNode& node) {
  const bool is_simple = node.flag(kSimpleResize, false);
  const std::string mode = node.text("mode", "nearest"), coordinates = is_simple ? "asymmetric" : node.text("coordinate_transformation_mode", "half_pixel");
  const bool is_nearest = mode == "nearest", is_cropped = coordinates == "tf_crop_and_resize";
  const Val x = node.x(0);
  Val y = is_nearest ? x : cast(x, working_type(x.dtype()));
  for (const Resized& one : resized_axes(node, is_cropped)) {
    const bool is_scaled = one.scale.valid() and node.builder().graph().scalar_constant(one.scale.id()) != 1.0;
    if (one.in == one.out and not is_scaled and not is_cropped) continue;
    const std::vector<Val> taps =
        node.builder().add(op::resize_taps, std::vector<Val>{one.scale, one.start, one.end},
                           {kMode = mode, kCoordinates = coordinates, kRounding = is_simple ? "simple" : node.text("nearest_mode", "round_prefer_floor"),
                            kCubicA = node.real("cubic_coeff_a", -0.75), kExcludeOutside = node.flag("exclude_outside", false),
                            kAntialias = node.flag("antialias", false), kSizes = Shape{one.in, one.out}, kTo = is_nearest ? DType::kF32 : y.dtype()});
    y = taken(y, one.axis, taps[0], taps[1], is_nearest);
    if (is_cropped) y = extrapolated(node, y, one, taps[0]);
  }
  return {cast(y, x.dtype())};
}

}  // namespace hone::onnx
