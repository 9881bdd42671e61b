// Operators that take a part of a tensor, or put one into a larger tensor.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/fed_axes.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

Dim at_least_zero(const Dim& dim) { return dim.may_be_negative() ? max(dim, 0) : dim; }

/// From where a start or end counts.
enum class From : std::uint8_t { kFront, kEnd, kEither };

/// Small and large sizes decide for an expression: -N counts from the end, N - 1 and T - N from the front, which is checked when sizes are known; N - 10 does either.
From counts_from(const Dim& position) {
  if (not position.may_be_negative()) return From::kFront;
  DimBindings small, large;
  for (const std::string& symbol : position.symbols()) {
    small[symbol] = 1;
    large[symbol] = 1 << 20;
  }
  const bool is_negative = position.evaluate(small) < 0;
  if (is_negative != (position.evaluate(large) < 0)) return From::kEither;
  return is_negative ? From::kEnd : From::kFront;
}

/// One axis of a slice: `size` elements from `start` on.
struct SlicePart {
  Dim start, size;
};

bool is_read_when_running(const Dim& dim) {
  const std::vector<std::string> symbols = dim.symbols();
  return std::any_of(symbols.begin(), symbols.end(), [](const std::string& symbol) { return symbol.starts_with('$'); });
}

/// Exporters write INT32_MAX, INT64_MAX, 10^9 (tf2onnx) and their negatives for "to the end".
constexpr std::int64_t kFar = 1'000'000'000;

/// A position of any sign: a negative one counts from the end, then it is clamped. `backwards`: 0 for a positive step, -1 for a negative one.
Dim clamped(const Dim& at, const Dim& extent, const Dim& backwards) {
  if (at.is_constant() and at.value() <= -kFar) return backwards;
  return min(max(at - extent * max(min(at, 0), -1), backwards), extent + backwards);
}

/// The same for such positions.
SlicePart part_when_running(const Dim& start, const Dim& end, std::int64_t step, const Dim& extent) {
  const Dim backwards = step > 0 ? 0 : -1, first = clamped(start, extent, backwards), last = clamped(end, extent, backwards);
  return {first, max(step > 0 ? ceildiv(last - first, step) : ceildiv(first - last, -step), 0)};
}

/// Positions beyond an end are clamped, as in numpy. Nothing is read where the size is 0, so a start beyond the extent may stay.
SlicePart part_of(Builder& builder, const Dim& start, const Dim& end, std::int64_t step, const Dim& extent) {
  if (is_read_when_running(start) or is_read_when_running(end)) return part_when_running(start, end, step, extent);
  const From start_from = counts_from(start), end_from = counts_from(end);
  if (start_from == From::kEither or end_from == From::kEither) return part_when_running(start, end, step, extent);
  const std::int64_t least_far = std::max(kFar, extent.is_constant() ? extent.value() : 0);
  const auto is_far = [least_far](const Dim& at) { return at.is_constant() and (at.value() >= least_far or at.value() <= -least_far); };
  const Dim high = step > 0 ? extent : extent - 1, low = step > 0 ? 0 : -1;
  const auto limit = [&](const Dim& far) { return far.value() > 0 ? high : low; };
  const bool starts_from_end = not is_far(start) and start_from == From::kEnd, ends_from_end = not is_far(end) and end_from == From::kEnd;
  for (const auto& [position, from] : {std::pair(start, start_from), {end, end_from}})
    if (const auto equation = from == From::kFront ? at_most(0, position) : std::nullopt) builder.equate(equation->first, equation->second);
  if (step < 0) {
    const Dim first = is_far(start) ? limit(start) : starts_from_end ? start + extent : min(start, high);
    const Dim last = is_far(end) ? limit(end) : ends_from_end ? max(end + extent, low) : min(end, high);
    return {first, at_least_zero(ceildiv(first - last, -step))};
  }
  const Dim first = is_far(start) ? limit(start) : starts_from_end ? at_least_zero(start + extent) : start;
  const Dim last = is_far(end) ? limit(end) : ends_from_end ? end + extent : min(end, high);
  const Dim room = starts_from_end and last == extent ? min(extent, Dim(0) - start) : last - first;
  return {first, at_least_zero(ceildiv(room, step))};
}

/// Axes or steps that are fed: each axis of x is sliced, by a step of any sign, the ones not named whole.
Val slice_of_fed(const ImportNode& node) {
  Val x = node.x(0);
  Builder& builder = node.builder();
  const std::size_t rank = x.rank();
  const Dim count = element_count(node.x(1).shape());
  node.require(count.is_constant() and count.value() <= static_cast<std::int64_t>(rank), Code::kShape, fmt::format("{} starts for {} axes", count.text(), rank));
  const auto whole = [&](std::size_t i) { return cast(node.x(i), DType::kI64); };
  const auto each = [&](std::int64_t value) { return full(builder, static_cast<double>(value), DType::kI64, {static_cast<std::int64_t>(rank)}); };
  Val starts = whole(1), ends = whole(2), steps = node.has(4) ? whole(4) : full(builder, 1, DType::kI64, {count});
  for (const Val list : {ends, steps}) node.require(element_count(list.shape()) == count, Code::kShape, "starts, ends, axes and steps differ in length");
  Ints first(static_cast<std::size_t>(count.value()));
  std::iota(first.begin(), first.end(), 0);
  const FedAxes axes(node, node.has(3) ? node.x(3) : builder.ints(first), rank);
  starts = axes.spread(starts, each(0));
  ends = axes.spread(ends, builder.add(op::sizes, {}, {kSizes = x.shape()})[0]);
  steps = axes.spread(steps, each(1));
  const auto read = [&](Val list, std::string_view name) { return read_sizes(node, list, name, Builder::Sign::kAny); };
  const std::vector<Dim> from = read(starts, "starts"), to = read(ends, "ends"), by = read(steps, "steps");
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim sign = max(min(by[i], 1), -1), size = max(max(by[i], Dim(0) - by[i]), 1), backwards = min(sign, 0);
    const Dim begin = clamped(from[i], x.shape()[i], backwards), end = clamped(to[i], x.shape()[i], backwards);
    const Dim taken = max(ceildiv((end - begin) * sign, size), 0);
    const Val numbers = builder.add(op::iota, {}, {kShape = Shape{taken}, kAxis = std::int64_t{0}})[0];
    const Val index = numbers * size_value(builder, by[i], DType::kI64) + size_value(builder, begin, DType::kI64);
    x = op::gather(x, index, {kAxis = static_cast<std::int64_t>(i)});
  }
  return x;
}

std::vector<Val> import_slice(const ImportNode& node) {
  if (node.is_fed(3) or node.is_fed(4)) return {slice_of_fed(node)};
  const Val x = node.x(0);
  const std::vector<Dim> starts = node.contents(1, "starts"), ends = node.contents(2, "ends");
  node.require(starts.size() == ends.size(), Code::kShape, fmt::format("{} starts and {} ends", starts.size(), ends.size()));
  Ints axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.has(3)) axes = node.numbers(3, "axes");
  if (node.has(4)) steps = node.numbers(4, "steps");
  node.require(axes.size() == starts.size() and steps.size() == starts.size(), Code::kShape, "starts, ends, axes and steps differ in length");
  node.axes(axes, x.rank());  // no axis twice
  Shape from(x.rank(), Dim(0)), sizes = x.shape();
  Ints strides(x.rank(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = node.axis(axes[i], x.rank());
    node.require(steps[i] != 0 and steps[i] > INT64_MIN, Code::kBadAttribute, fmt::format("a step of {}", steps[i]));
    const SlicePart part = part_of(node.builder(), starts[i], ends[i], steps[i], x.shape()[axis]);
    from[axis] = part.start;
    sizes[axis] = part.size;
    strides[axis] = steps[i];
  }
  if (sizes == x.shape() and std::all_of(strides.begin(), strides.end(), [](std::int64_t step) { return step == 1; })) return {x};
  return {op::slice(x, {kStarts = from, kSizes = sizes, kSteps = strides})};
}

/// Extents of the parts: given, or equal ones of which the last may be smaller; a symbolic extent splits evenly unless num_outputs says how many there are.
std::vector<Dim> split_sizes(const ImportNode& node, const Dim& extent) {
  if (node.has(1)) return node.contents(1, "split");
  const std::int64_t count = node.integer("num_outputs", static_cast<std::int64_t>(node.result_count()));
  node.require(count == static_cast<std::int64_t>(node.result_count()), Code::kBadAttribute,
               fmt::format("num_outputs is {}, and the node has {} outputs", count, node.result_count()));
  node.require(node.has_attribute("num_outputs") or not extent.is_constant() or extent.value() % count == 0, Code::kShape,
               fmt::format("an extent of {} cannot be split evenly into {}", extent.text(), count));
  if (not extent.is_constant() and not node.has_attribute("num_outputs")) return std::vector<Dim>(static_cast<std::size_t>(count), floordiv(extent, count));
  const Dim size = ceildiv(extent, count);
  std::vector<Dim> sizes(static_cast<std::size_t>(count), size);
  sizes.back() = extent - size * Dim(count - 1);
  return sizes;
}

std::vector<Val> import_split(const ImportNode& node) {
  const Val x = node.x(0);
  node.require(node.result_count() > 0, Code::kBadGraph, "has no outputs");
  const std::size_t axis = node.axis(node.integer("axis", 0), x.rank());
  const Dim extent = x.shape()[axis];
  const std::vector<Dim> sizes = split_sizes(node, extent);
  node.require(sizes.size() == node.result_count(), Code::kShape, fmt::format("{} parts for {} outputs", sizes.size(), node.result_count()));
  Shape starts(x.rank(), Dim(0)), extents = x.shape();
  std::vector<Val> parts;
  for (const Dim& size : sizes) {
    node.require(not size.is_constant() or size.value() >= 0, Code::kShape,
                 fmt::format("an extent of {} cannot be split into {}", extent.text(), sizes.size()));
    extents[axis] = size;
    parts.push_back(extents == x.shape() ? x : op::slice(x, {kStarts = starts, kSizes = extents, kSteps = Ints(x.rank(), 1)}));
    starts[axis] += size;
  }
  if (starts[axis].is_constant() and extent.is_constant())
    node.require(starts[axis] == extent, Code::kShape, fmt::format("the parts have {} of {} elements", starts[axis].text(), extent.text()));
  else if (starts[axis] != extent) node.builder().equate(starts[axis], extent);
  return parts;
}

/// The constant that Pad fills with; nothing for 0.
std::optional<Val> pad_value(const ImportNode& node, DType dtype) {
  if (not node.has(2)) return std::nullopt;
  const Val value = reshape(node.x(2), {});
  if (node.builder().graph().scalar_constant(node.x(2).id()) == 0.0) return std::nullopt;
  return cast(value, dtype);
}

/// Elements added in front of an axis and behind it; a negative number cuts.
struct Margins {
  Dim begin = 0, end = 0;
};

Val pad_with_constant(Val x, const std::vector<Margins>& margins, const std::optional<Val>& value) {
  Shape starts, sizes;
  for (std::size_t i = 0; i < margins.size(); ++i) {
    starts.push_back(margins[i].begin);
    sizes.push_back(x.shape()[i] + margins[i].begin + margins[i].end);
  }
  if (sizes == x.shape() and starts == Shape(x.rank(), Dim(0))) return x;
  const Attrs attrs = {kStarts = starts, kSizes = sizes, kSteps = Ints(x.rank(), 1)};
  if (not value) return op::pad(x, attrs);
  return op::where(op::pad(full(x.builder(), 1, DType::kBool, x.shape()), attrs), op::pad(x, attrs), *value);
}

/// What is cut is cut first; then, beyond the ends, stand elements of what is left: a gather along each padded axis.
Val pad_by_positions(Val x, const std::vector<Margins>& margins, const std::string& mode) {
  std::vector<Margins> cuts, pads;
  for (const auto& [begin, end] : margins) {
    pads.push_back({at_least_zero(begin), at_least_zero(end)});
    cuts.push_back({begin - pads.back().begin, end - pads.back().end});
  }
  x = pad_with_constant(x, cuts, std::nullopt);
  for (std::size_t i = 0; i < pads.size(); ++i) {
    const auto& [begin, end] = pads[i];
    if (begin.is_constant(0) and end.is_constant(0)) continue;
    const Dim extent = x.shape()[i];
    const Attrs attrs = {kStarts = Shape{begin}, kSizes = Shape{extent + begin + end}, kShape = Shape{extent}, kMode = mode};
    x = op::gather(x, x.builder().add(op::pad_positions, {}, attrs)[0], {kAxis = static_cast<std::int64_t>(i)});
  }
  return x;
}

/// The axes that operand `i` or, if that is left out, nobody names: then all of them.
Ints axes_or_all(const ImportNode& node, std::size_t i, std::size_t rank) {
  Ints axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.has(i)) axes = node.numbers(i, "axes");
  node.axes(axes, rank);  // no axis twice
  return axes;
}

/// The pads of all axes where the padded ones are fed.
std::vector<Margins> margins_of_fed(const ImportNode& node) {
  const Val pads = cast(node.x(1), DType::kI64);
  const std::size_t rank = node.x(0).rank();
  const FedAxes axes(node, node.x(3), rank);
  const Dim count = element_count(node.x(3).shape());
  node.require(element_count(pads.shape()) == count * Dim(2), Code::kShape, fmt::format("{} pads for {} axes", element_count(pads.shape()).text(), count.text()));
  const auto side = [&](const Dim& start, std::string_view name) {
    const Val own = op::slice(reshape(pads, {count * Dim(2)}), {kStarts = Shape{start}, kSizes = Shape{count}, kSteps = Ints{1}});
    return read_sizes(node, axes.spread(own, full(node.builder(), 0, DType::kI64, {static_cast<std::int64_t>(rank)})), name, Builder::Sign::kAny);
  };
  const std::vector<Dim> begins = side(0, "begins"), ends = side(count, "ends");
  std::vector<Margins> margins;
  for (std::size_t i = 0; i < rank; ++i) margins.push_back({begins[i], ends[i]});
  return margins;
}

std::vector<Margins> margins_of(const ImportNode& node) {
  if (node.is_fed(3)) return margins_of_fed(node);
  const Val x = node.x(0);
  const std::vector<Dim> pads = node.contents(1, "pads");
  const Ints axes = axes_or_all(node, 3, x.rank());
  node.require(pads.size() == 2 * axes.size(), Code::kShape, fmt::format("{} pads for {} axes", pads.size(), axes.size()));
  std::vector<Margins> margins(x.rank());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = node.axis(axes[i], x.rank());
    const Dim size = x.shape()[axis] + pads[i] + pads[i + axes.size()];
    node.require(not size.is_constant() or size.value() >= 0, Code::kShape, fmt::format("the pads leave {} elements of axis {}", size.text(), axis));
    margins[axis] = {pads[i], pads[i + axes.size()]};
  }
  return margins;
}

std::vector<Val> import_pad(const ImportNode& node) {
  const Val x = node.x(0);
  const std::string mode = node.text("mode", "constant");
  const std::vector<Margins> margins = margins_of(node);
  if (mode == "constant") return {pad_with_constant(x, margins, pad_value(node, x.dtype()))};
  if (mode != "edge" and mode != "reflect" and mode != "wrap")
    node.fail(Code::kBadAttribute, fmt::format("mode \"{}\" is none of constant, edge, reflect and wrap", mode));
  return {pad_by_positions(x, margins, mode)};
}

/// The middle of x, or x in the middle of 0s: an odd element is cut or added behind.
std::vector<Val> import_center_crop_pad(const ImportNode& node) {
  const Val x = node.x(0);
  const std::vector<Dim> shape = node.contents(1, "shape");
  Ints axes = node.integers("axes").value_or(axes_or_all(node, 2, x.rank()));
  node.axes(axes, x.rank());
  node.require(shape.size() == axes.size(), Code::kShape, fmt::format("{} sizes for {} axes", shape.size(), axes.size()));
  std::vector<Margins> margins(x.rank());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = node.axis(axes[i], x.rank());
    const Dim surplus = at_least_zero(x.shape()[axis] - shape[i]), missing = at_least_zero(shape[i] - x.shape()[axis]);
    margins[axis] = {floordiv(missing, 2) - floordiv(surplus, 2), ceildiv(missing, 2) - ceildiv(surplus, 2)};
  }
  return {pad_with_constant(x, margins, std::nullopt)};
}

constinit const Importer kSliceOps[] = {
    {"Slice", import_slice},
    {"Split", import_split},
    {"Pad", import_pad},
    {"CenterCropPad", import_center_crop_pad},
};

}  // namespace

std::span<const Importer> slice_importers() { return kSliceOps; }

}  // namespace hone::onnx
