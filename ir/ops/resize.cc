// Resizing along one axis: which elements of the original axis each position takes, and how much of each. gather_sum applies them; several axes are resized
// one after another.
#include <algorithm>

#include "ir/kernel/scalar_math.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"

namespace hone::op {

namespace {

bool is_one_of(const std::string& text, std::initializer_list<std::string_view> names) { return std::find(names.begin(), names.end(), text) != names.end(); }

/// How far the filter reaches to each side, in elements, when it is not stretched.
std::int64_t reach(const Attrs& attrs) { return attrs[kMode] == "cubic" ? 2 : 1; }

/// Taps a position: twice the reach, stretched by how much the axis shrinks if it is filtered.
Dim tap_count(const Attrs& attrs) {
  if (attrs[kMode] == "nearest") return 1;
  const Dim taps = reach(attrs), in = attrs[kSizes][0], out = attrs[kSizes][1];
  return attrs[kAntialias] ? max(taps, ceildiv(taps * in, max(out, 1))) * 2 : taps * 2;
}

std::vector<Type> infer_resize_taps(Infer& infer) {
  const Attrs& attrs = infer.attrs;
  for (std::size_t i = 0; i < infer.count(); ++i)
    if (infer.has(i)) infer.require(infer.rank(i) == 0 and infer.dtype(i) == DType::kF64, Code::kType, "scale, start and end must be f64 numbers");
  infer.require(attrs[kSizes].size() == 2, Code::kBadAttribute, "sizes are the extents before and after");
  infer.require(is_one_of(attrs[kMode], {"nearest", "linear", "cubic"}), Code::kBadAttribute, "mode must be nearest, linear or cubic");
  infer.require(attrs[kMode] != "nearest" or is_one_of(attrs[kRounding], {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"}),
                Code::kBadAttribute, "rounding must be round_prefer_floor, round_prefer_ceil, floor, ceil or simple");
  infer.require(is_one_of(attrs[kCoordinates],
                          {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"}),
                Code::kBadAttribute, "coordinates must be one of ONNX's coordinate_transformation_modes");
  infer.require(attrs[kCoordinates] != "tf_crop_and_resize" or (infer.has(1) and infer.has(2)), Code::kBadAttribute, "cropping needs start and end");
  const Shape shape = {attrs[kSizes][1], tap_count(attrs)};
  return {{DType::kI64, shape}, {attrs[kTo], shape}};
}

struct Axis {
  Scalar in, out, length, scale;  ///< f64: extents before and after, `in * scale` and the scale
};

Axis axis_of(Compute& c) {
  const auto real = [&](Dim size) { return expr::cast(c.size(size), DType::kF64); };
  const Scalar in = real(c.attrs[kSizes][0]), out = real(c.attrs[kSizes][1]);
  if (not c.has(0)) return {in, out, out, out / in};
  const Scalar scale = c.load(0, {});
  return {in, out, in * scale, scale};
}

/// x / scale. Exactly as the sizes have it where no scale is given; of nearest elements in f32, as runtimes do: 8 / 1.6f is 5, and in f64 it is less, since 1.6f is more than 1.6.
Scalar unscaled(Compute& c, const Axis& axis, Scalar x) {
  if (not c.has(0)) return x * axis.in / axis.out;
  const Scalar quotient = x / axis.scale;
  return c.attrs[kMode] == "nearest" ? expr::cast(expr::cast(quotient, DType::kF32), DType::kF64) : quotient;
}

/// The position in the original axis of position `o` in the resized one.
Scalar original_position(Compute& c, const Axis& axis, Scalar o) {
  const std::string& mode = c.attrs[kCoordinates];
  const Scalar x = expr::cast(o, DType::kF64), half_pixel = unscaled(c, axis, x + 0.5) - 0.5;
  const Scalar is_one = expr::equal(axis.length, expr::like(x, 1));
  if (mode == "half_pixel") return half_pixel;
  if (mode == "half_pixel_symmetric") return axis.in / 2.0 * (1.0 - axis.out / axis.length) + half_pixel;
  if (mode == "pytorch_half_pixel") return expr::select(is_one, expr::like(x, 0), half_pixel);
  if (mode == "align_corners") return expr::select(is_one, expr::like(x, 0), x * (axis.in - 1.0) / (axis.length - 1.0));
  if (mode == "asymmetric") return unscaled(c, axis, x);
  if (mode == "tf_half_pixel_for_nn") return unscaled(c, axis, x + 0.5);
  const Scalar start = c.load(1, {}), end = c.load(2, {});
  return expr::select(is_one, (start + end) * (axis.in - 1.0) * 0.5, start * (axis.in - 1.0) + x * (end - start) * (axis.in - 1.0) / (axis.length - 1.0));
}

Scalar rounded(const Attrs& attrs, const Axis& axis, Scalar x) {
  const std::string& mode = attrs[kRounding];
  if (mode == "round_prefer_floor") return expr::ceil(x - 0.5);
  if (mode == "round_prefer_ceil") return expr::floor(x + 0.5);
  if (mode == "floor") return expr::floor(x);
  if (mode == "ceil") return expr::ceil(x);
  return expr::select(expr::less(axis.scale, expr::like(x, 1)), expr::ceil(x), expr::floor(x));
}

/// The filter at distance `a`: a triangle, or the cubic convolution kernel.
Scalar filter(const Attrs& attrs, Scalar a) {
  const Scalar zero = expr::like(a, 0);
  if (attrs[kMode] == "linear") return expr::max(1.0 - a, zero);
  const double k = attrs[kCubicA];
  const Scalar near = ((k + 2) * a - (k + 3)) * a * a + 1.0, far = ((k * a - 5 * k) * a + 8 * k) * a - 4 * k;
  return expr::select(expr::less_equal(a, expr::like(a, 1)), near, expr::select(expr::less(a, expr::like(a, 2)), far, zero));
}

/// The element `at`, the outermost one beyond the ends; the extent, which is none, where the position is outside of what is cropped.
Scalar element(Compute& c, const Axis& axis, Scalar position, Scalar at) {
  const Scalar extent = c.size(c.attrs[kSizes][0]);
  const Scalar inside = expr::max(expr::min(at, extent - 1.0), c.index_constant(0));
  if (c.attrs[kCoordinates] != "tf_crop_and_resize") return inside;
  const Scalar is_inside = expr::logical_and(expr::greater_equal(position, expr::like(position, 0)), expr::less_equal(position, axis.in - 1.0));
  return expr::select(is_inside, inside, extent);
}

void compute_resize_taps(Compute& c) {
  const Attrs& attrs = c.attrs;
  const Indices o = c.outer({attrs[kSizes][1]});
  const Axis axis = axis_of(c);
  const Scalar position = original_position(c, axis, o[0]);
  if (attrs[kMode] == "nearest") {
    const Indices at = {o[0], c.index_constant(0)};
    c.store(0, at, element(c, axis, position, expr::cast(rounded(attrs, axis, position), DType::kI64)));
    c.store(1, at, c.number(attrs[kTo], 1));
    return;
  }
  const Scalar stretch = attrs[kAntialias] ? expr::min(axis.scale, expr::like(position, 1)) : expr::like(position, 1);
  const Dim taps = tap_count(attrs);
  const auto place = [&](Scalar t) { return expr::cast(expr::floor(position), DType::kI64) + t + c.size(Dim(1) - floordiv(taps, 2)); };
  const auto weight = [&](Scalar at) {
    const Scalar value = filter(attrs, expr::abs(expr::cast(at, DType::kF64) - position) * stretch);
    if (not attrs[kExcludeOutside]) return value;
    const Scalar inside = within(c, at, attrs[kSizes][0]);
    return expr::select(inside, value, expr::like(value, 0));
  };
  const bool normalized = attrs[kAntialias] or attrs[kExcludeOutside];
  Scalar total;
  if (normalized) total = c.sum(weight(place(c.inner({taps})[0])));
  const Indices t = c.inner({taps});
  const Scalar at = place(t[0]), share = normalized ? weight(at) / total : weight(at);
  c.store(0, {o[0], t[0]}, element(c, axis, position, at));
  c.store(1, {o[0], t[0]}, expr::cast(share, arithmetic_type(attrs[kTo])));
}

}  // namespace

constinit const OpDef resize_taps = {
    .name = "resize_taps",
    .doc = "for each position along an axis that is resized from sizes[0] to sizes[1] elements, the elements to take and their shares (of type `to`): one for "
           "nearest, 2 for linear, 4 for cubic, more where antialias stretches the filter. Beyond the ends the outermost element stands in. Without a scale it is "
           "the extents' quotient. tf_crop_and_resize takes the part from start to end of the axis; a position outside of the axis names element sizes[0]",
    .inputs = {"scale?", "start?", "end?"},
    .results = {"index", "weight"},
    .attrs = {kMode, kCoordinates, kRounding, kCubicA, kExcludeOutside, kAntialias, kSizes, kTo},
    .infer = infer_resize_taps,
    .grad = no_gradient("where a resized axis reads does not depend on data that are learned: scales and regions are constants to it"),
    .compute = compute_resize_taps,
};

}  // namespace hone::op
