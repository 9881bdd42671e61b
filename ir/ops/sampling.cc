// Interpolation at positions that are data: sampling on a grid, deformable convolution. Both come to gather_sum: per axis a few taps around the position, and
// the products of the axes' weights. Gradients follow from that, those of the positions through the weights.
#include <fmt/format.h>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone {

namespace {

Shape spatial_of(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

Val choose(Val condition, Val a, Val b) { return op::where(condition, a, b); }

/// To the nearest whole number, half to even.
Val rounded(Val x) {
  const Val up = op::floor(x + 0.5), half = up * 0.5;
  const Val is_tie = op::equal(up - x, x.builder().scalar(0.5, x.dtype())), is_odd = op::logical_not(op::equal(half, op::floor(half)));
  return choose(op::logical_and(is_tie, is_odd), up - 1.0, up);
}

/// How one axis of `extent` elements is read beyond its ends.
struct Edge {
  std::string padding;
  bool align_corners;
  Dim extent;

  double low() const { return align_corners ? 0 : -0.5; }
  Val high(Val like) const { return size_value(like.builder(), extent, like.dtype()) - (align_corners ? 1 : 0.5); }
  Val last(Val like) const { return size_value(like.builder(), extent - 1, like.dtype()); }
};

/// x mirrored at both ends until it lies between them. An axis of one element is mirrored as if it had a width: whoever reads it clamps.
Val reflected(Val x, const Edge& edge) {
  const Val span = size_value(x.builder(), edge.align_corners ? max(edge.extent - 1, 1) : edge.extent, x.dtype());
  const Val far = op::abs(x - edge.low()), turns = op::floor(far / span), rest = far - turns * span;
  const Val is_even = op::equal(op::floor(turns * 0.5) * 2.0, turns);
  return choose(is_even, rest, span - rest) + edge.low();
}

/// A position beyond the ends brought back as the padding says.
Val brought_back(Val x, const Edge& edge) {
  if (edge.padding == "zeros") return x;
  const Val low = x.builder().scalar(edge.low(), x.dtype()), below = op::less(x, low), above = op::greater(x, edge.high(x));
  if (edge.padding == "reflection") return choose(op::logical_or(below, above), reflected(x, edge), x);
  return choose(below, x.builder().scalar(0, x.dtype()), choose(above, edge.last(x), x));
}

/// The elements around each position and their weights, by powers of the distance to the element before it.
struct Filter {
  std::vector<double> offsets;
  std::vector<std::vector<double>> powers;  ///< powers[k][t]: coefficient of distance^k in tap t's weight
};
Filter filter_of(const std::string& mode) {
  if (mode == "nearest") return {{0}, {{1}}};
  if (mode == "linear") return {{0, 1}, {{1, 0}, {-1, 1}}};
  constexpr double a = -0.75;
  return {{-1, 0, 1, 2}, {{0, 1, 0, 0}, {a, 0, -a, 0}, {-2 * a, -(a + 3), 2 * a + 3, a}, {a, a + 2, -(a + 2), -a}}};
}

Val row(Val like, const std::vector<double>& numbers) {
  return like.builder().constant(Tensor::of<double>({static_cast<std::int64_t>(numbers.size())}, std::span(numbers)).cast(like.dtype()));
}

struct AxisTaps {
  Val index, weight, inside;  ///< [N,P,T]; index within the axis; inside: invalid if every tap counts
};

/// The taps around positions [N,P] along one axis.
AxisTaps taps_along(Val position, const Edge& edge, const std::string& mode) {
  const Shape& shape = position.shape();
  const Filter filter = filter_of(mode);
  const Val x = reshape(position, {shape[0], shape[1], 1}), before = op::floor(x), distance = x - before;
  Val weight = row(x, filter.powers.back());
  for (std::size_t k = filter.powers.size() - 1; k-- > 0;) weight = weight * distance + row(x, filter.powers[k]);
  weight = broadcast_to(weight, {shape[0], shape[1], static_cast<std::int64_t>(filter.offsets.size())});
  const Val place = before + row(x, filter.offsets);
  const Val at = cast(edge.padding == "reflection" ? reflected(place, edge) : place, DType::kI64);
  const Val zero = x.builder().scalar(0, DType::kI64), last = size_value(x.builder(), edge.extent - 1, DType::kI64);
  const Val clamped = op::maximum(op::minimum(at, last), zero);
  return {clamped, weight, edge.padding == "zeros" ? op::equal(clamped, at) : Val()};
}

/// x[N,C,s...] at the positions whose taps are given axis by axis: [N,C,P]. Each tap's weight is multiplied by `factor` [N,P], if there is one.
Val sample(Val x, const std::vector<AxisTaps>& axes, Val factor) {
  Builder& builder = x.builder();
  const Shape &shape = x.shape(), &first = axes[0].index.shape();
  Val index, weight, inside;
  Dim taps = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Shape apart = {first[0], first[1]};  // one axis of taps for each spatial axis
    for (std::size_t k = 0; k < axes.size(); ++k) apart.push_back(k == i ? axes[i].index.shape()[2] : Dim(1));
    taps *= axes[i].index.shape()[2];
    const Val at = reshape(axes[i].index, apart), share = reshape(axes[i].weight, apart);
    index = index.valid() ? index * size_value(builder, shape[i + 2], DType::kI64) + at : at;
    weight = weight.valid() ? weight * share : share;
    if (not axes[i].inside.valid()) continue;
    const Val counts = reshape(axes[i].inside, apart);
    inside = inside.valid() ? op::logical_and(inside, counts) : counts;
  }
  if (inside.valid()) index = choose(inside, index, builder.scalar(-1, DType::kI64));
  weight = reshape(weight, {first[0], first[1], taps});
  if (factor.valid()) weight = weight * reshape(factor, {first[0], first[1], 1});
  const Val columns = reshape(x, {shape[0], shape[1], element_count(spatial_of(shape)), 1});
  return reshape(op::gather_sum(columns, reshape(index, {first[0], first[1], taps}), weight), {shape[0], shape[1], first[1]});
}

std::vector<Type> infer_grid_sample(Infer& infer) {
  const Shape &x = infer.shape(0), &grid = infer.shape(1);
  const std::string &mode = infer.attrs[kMode], &padding = infer.attrs[kPadding];
  infer.require(x.size() >= 3 and grid.size() == x.size(), Code::kShape, "x needs batch, channels and spatial axes, the grid as many axes");
  infer.require(is_float(infer.dtype(0)) and infer.dtype(0) == infer.dtype(1), Code::kType, "needs floats of one type");
  infer.require(mode == "nearest" or mode == "linear" or mode == "cubic", Code::kBadAttribute, "mode must be nearest, linear or cubic");
  infer.require(padding == "zeros" or padding == "border" or padding == "reflection", Code::kBadAttribute, "padding must be zeros, border or reflection");
  infer.unify(grid.back(), static_cast<std::int64_t>(x.size() - 2), "coordinates a position and spatial axes");
  Shape shape = {infer.unify(x[0], grid[0], "batch sizes"), x[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  return {{infer.dtype(0), shape}};
}

std::vector<Val> lower_grid_sample(const Lower& l) {
  const Val x = l.x(0);
  const std::size_t spatial = x.rank() - 2;
  const Shape &shape = l.x(1).shape(), out = Shape(shape.begin() + 1, shape.end() - 1);
  const Dim positions = element_count(out);
  const Val grid = reshape(l.x(1), {shape[0], positions, static_cast<std::int64_t>(spatial)});
  std::vector<AxisTaps> axes;
  for (std::size_t i = 0; i < spatial; ++i) {
    const Edge edge = {l.attrs[kPadding], l.attrs[kAlignCorners], x.shape()[i + 2]};
    const Dim column = static_cast<std::int64_t>(spatial - 1 - i);  // the grid names the last axis first
    const Val unit = op::slice(grid, {kStarts = Shape{0, 0, column}, kSizes = Shape{shape[0], positions, 1}, kSteps = Ints{1, 1, 1}}) + 1.0;
    Val position = edge.align_corners ? unit * 0.5 * edge.last(unit) : (unit * size_value(l.builder, edge.extent, unit.dtype()) - 1.0) * 0.5;
    if (l.attrs[kMode] == "nearest") position = rounded(position);
    if (l.attrs[kMode] != "cubic") position = brought_back(position, edge);  // the taps of a cubic go over the edge, and are brought back one by one
    axes.push_back(taps_along(reshape(position, {shape[0], positions}), edge, l.attrs[kMode]));
  }
  Shape result = {x.shape()[0], x.shape()[1]};
  result.insert(result.end(), out.begin(), out.end());
  return {reshape(sample(x, axes, Val()), result)};
}

std::vector<Type> infer_deform_conv(Infer& infer) {
  const Attrs& attrs = infer.attrs;
  const Shape &x = infer.shape(0), &w = infer.shape(1), &offset = infer.shape(2);
  const std::size_t n = attrs[kStrides].size();
  const Dim groups = attrs[kOffsetGroups], window = element_count(spatial_of(w));
  infer.require(x.size() == n + 2 and w.size() == n + 2 and offset.size() == n + 2 and (not infer.has(3) or infer.rank(3) == n + 2), Code::kShape,
                fmt::format("all operands need {} axes: {} of them spatial", n + 2, n));
  infer.require(attrs[kDilations].size() == n and attrs[kPadsBegin].size() == n and attrs[kPadsEnd].size() == n, Code::kBadAttribute,
                "strides, dilations and pads need one entry a spatial axis");
  infer.require(attrs[kGroups] >= 1 and attrs[kOffsetGroups] >= 1, Code::kBadAttribute, "groups must be at least 1");
  for (std::size_t i = 0; i < infer.count(); ++i)
    infer.require(not infer.has(i) or (is_float(infer.dtype(i)) and infer.dtype(i) == infer.dtype(0)), Code::kType, "needs floats of one type");
  infer.unify(x[1], w[1] * attrs[kGroups], "channels of the input, and of the weight times groups,");
  infer.require(not x[1].is_constant() or x[1].value() % attrs[kOffsetGroups] == 0, Code::kShape, "the channels are no multiple of the offset groups");
  infer.require(not w[0].is_constant() or w[0].value() % attrs[kGroups] == 0, Code::kShape, "the output channels are no multiple of groups");
  infer.unify(offset[1], groups * window * static_cast<std::int64_t>(n), "channels of the offset, and offset groups times window times spatial axes,");
  if (infer.has(3)) infer.unify(infer.shape(3)[1], groups * window, "channels of the mask, and offset groups times window,");
  Shape shape = {infer.unify(x[0], offset[0], "batch sizes"), w[0]};
  for (std::size_t i = 0; i < n; ++i) {
    const Dim span = (w[i + 2] - 1) * Dim(attrs[kDilations][i]) + 1;
    const Dim extent = floordiv(x[i + 2] + attrs[kPadsBegin][i] + attrs[kPadsEnd][i] - span, attrs[kStrides][i]) + 1;
    shape.push_back(infer.unify(extent, offset[i + 2], "extents of the result and the offset"));
    if (infer.has(3)) infer.unify(extent, infer.shape(3)[i + 2], "extents of the result and the mask");
  }
  return {{infer.dtype(0), shape}};
}

/// Where an undisturbed window reads along spatial axis `i`: o * stride + k * dilation - pad, over [window..., positions...].
Val window_positions(const Lower& l, const Shape& extents, std::size_t i, DType dtype) {
  const auto along = [&](std::size_t axis) { return cast(l.builder.add(op::iota, {}, {kShape = extents, kAxis = static_cast<std::int64_t>(axis)})[0], dtype); };
  const Val start = along(extents.size() / 2 + i) * static_cast<double>(l.attrs[kStrides][i]) - size_value(l.builder, l.attrs[kPadsBegin][i], dtype);
  return start + along(i) * static_cast<double>(l.attrs[kDilations][i]);
}

std::vector<Val> lower_deform_conv(const Lower& l) {
  const Val x = l.x(0), w = l.x(1);
  const DType dtype = x.dtype();
  const std::size_t spatial = x.rank() - 2;
  const Shape window = spatial_of(w.shape()), out = spatial_of(l.x(2).shape());
  const Dim batch = x.shape()[0], channels = x.shape()[1], offset_groups = l.attrs[kOffsetGroups], groups = l.attrs[kGroups];
  const Dim rows = batch * offset_groups, taps = element_count(window), outs = element_count(out);
  Shape extents = window, grouped = {rows, floordiv(channels, offset_groups)}, result = {batch, w.shape()[0]};
  extents.insert(extents.end(), out.begin(), out.end());
  grouped.insert(grouped.end(), x.shape().begin() + 2, x.shape().end());
  result.insert(result.end(), out.begin(), out.end());
  const Val offset = reshape(l.x(2), {rows, taps, static_cast<std::int64_t>(spatial), outs});
  std::vector<AxisTaps> axes;
  for (std::size_t i = 0; i < spatial; ++i) {
    const Shape starts = {0, 0, static_cast<std::int64_t>(i), 0};
    const Val moved = op::slice(offset, {kStarts = starts, kSizes = Shape{rows, taps, 1, outs}, kSteps = Ints{1, 1, 1, 1}});
    const Val position = reshape(moved, {rows, taps * outs}) + reshape(window_positions(l, extents, i, dtype), {1, taps * outs});
    axes.push_back(taps_along(position, {"zeros", true, x.shape()[i + 2]}, "linear"));
  }
  const Val mask = l.has(3) ? reshape(l.x(3), {rows, taps * outs}) : Val();
  const Val columns = reshape(sample(reshape(x, grouped), axes, mask), {batch, groups, w.shape()[1] * taps, outs});
  return {reshape(op::matmul(reshape(w, {groups, floordiv(w.shape()[0], groups), w.shape()[1] * taps}), columns), result)};
}

}  // namespace

namespace op {

constinit const OpDef grid_sample = {
    .name = "grid_sample",
    .doc = "y[n,c,p...] = x[n,c] at the position grid[n,p...]: one coordinate a spatial axis, the last axis' first; -1 and 1 are the outermost elements' centers "
           "(align_corners) or outer edges. Elements beyond the ends are 0 (zeros), the outermost one (border), or mirrored (reflection). nearest rounds half to even",
    .inputs = {"x", "grid"},
    .attrs = {kMode, kPadding, kAlignCorners},
    .infer = infer_grid_sample,
    .lower = lower_grid_sample,
};

constinit const OpDef deform_conv = {
    .name = "deform_conv",
    .doc = "a convolution whose window positions are moved: position k of the window at o reads x at o * stride + k * dilation - pad + offset[n,(group,k,axis),o], "
           "linearly interpolated, 0 outside, times mask[n,(group,k),o]; each offset group serves its share of the channels",
    .inputs = {"x", "w", "offset", "mask?"},
    .attrs = {kStrides, kDilations, kPadsBegin, kPadsEnd, kGroups, kOffsetGroups},
    .infer = infer_deform_conv,
    .lower = lower_deform_conv,
};

}  // namespace op

}  // namespace hone
