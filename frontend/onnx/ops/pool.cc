// Pooling over windows, and over all of the spatial axes.
#include <fmt/format.h>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/norm.h"
#include "frontend/onnx/ops/window.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// How many windows fit along axis `i`. Rounding up lets the last one hang over, but none may begin behind the input and its leading pad.
Dim window_count(const Window& window, const Dim& extent, std::size_t i, bool round_up) {
  const std::int64_t stride = window.strides[i];
  const Dim room = extent + window.pads_begin[i] + window.pads_end[i] - window.span(i);
  if (not round_up) return floordiv(room, stride) + 1;
  const Dim count = ceildiv(room, stride) + 1;
  const Dim hang = window.pads_end[i] + stride - window.span(i);  // not above 0: no window can begin in the trailing pad
  return hang.is_constant() and hang.value() <= 0 ? count : min(count, ceildiv(extent + window.pads_begin[i], stride));
}

Attrs pool_attributes(const ImportNode& node, const Shape& x) {
  Window window = window_of(node, std::nullopt);
  const Shape spatial = spatial_extents(node, x, window.rank());
  const bool by_auto_pad = apply_auto_pad(node, window, spatial);
  const bool round_up = node.flag("ceil_mode", false) and not by_auto_pad;
  Shape counts;
  for (std::size_t i = 0; i < window.rank(); ++i) counts.push_back(window_count(window, spatial[i], i, round_up));
  return {kKernel = window.kernel,        kStrides = window.strides,  kDilations = window.dilations,
          kPadsBegin = window.pads_begin, kPadsEnd = window.pads_end, kSpatial = counts};
}

std::vector<Val> import_max_pool(const ImportNode& node) {
  const Val x = node.x(0);
  Attrs attrs = pool_attributes(node, x.shape());
  const std::vector<Val> pooled = op::max_pool.build_all({x}, attrs);
  if (not node.wants(1)) return {pooled[0]};
  attrs.set(kSizes = Shape(x.shape().begin() + 2, x.shape().end()));
  if (node.flag("storage_order", false)) attrs.set(kColumnMajor = true);
  return {pooled[0], op::window_position(pooled[1], attrs)};
}

std::vector<Val> import_average_pool(const ImportNode& node) {
  Attrs attrs = pool_attributes(node, node.x(0).shape());
  if (node.flag("count_include_pad", false)) attrs.set(kCountPads = true);
  return {op::avg_pool(node.x(0), attrs)};
}

/// The p-th root of the sum of |x|^p: of the mean over whole windows, times their size. Trailing pads are made wide enough for every window.
std::vector<Val> import_lp_pool(const ImportNode& node) {
  const Val x = node.x(0);
  const bool is_half = x.dtype() == DType::kF16 or x.dtype() == DType::kBF16;
  const double p = norm_order(node);
  Attrs attrs = pool_attributes(node, x.shape());
  Shape ends = attrs[kPadsEnd];
  double size = 1;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::int64_t kernel = attrs[kKernel][i], span = (kernel - 1) * attrs[kDilations][i] + 1;
    ends[i] = max(ends[i], (attrs[kSpatial][i] - 1) * Dim(attrs[kStrides][i]) + span - attrs[kPadsBegin][i] - x.shape()[i + 2]);
    size *= static_cast<double>(kernel);
  }
  attrs.set(kPadsEnd = ends);
  attrs.set(kCountPads = true);
  const Val powers = power(op::abs(is_half ? cast(x, DType::kF32) : x), p);
  return {cast(root(op::avg_pool(powers, attrs) * size, p), x.dtype())};
}

std::vector<Val> import_global(const ImportNode& node, const OpDef& reduce) {
  const Val x = node.x(0);
  node.require(x.rank() >= 2, Code::kShape, "needs batch, channels and spatial axes");
  Ints axes;
  for (std::size_t i = 2; i < x.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (axes.empty()) return {x};
  return {reduce(x, {kAxes = axes, kKeepDims = true})};
}

/// The columns of an image's windows, added up where they overlap.
std::vector<Val> import_col2im(const ImportNode& node) {
  const Val x = node.x(0);
  const Shape image = node.contents(1, "image_shape");
  const Window window = window_of(node, node.numbers(2, "block_shape"));
  node.require(x.rank() == 3, Code::kShape, "needs batch, channels times window, and windows");
  node.require(image.size() == window.rank(), Code::kShape, fmt::format("an image of {} axes, and windows of {}", image.size(), window.rank()));
  Shape apart = {x.shape()[0], x.shape()[1]}, counts;
  for (std::size_t i = 0; i < window.rank(); ++i) {
    apart[1] = floordiv(apart[1], window.kernel[i]);
    apart.push_back(window.kernel[i]);
    counts.push_back(window_count(window, image[i], i, false));
  }
  apart.insert(apart.end(), counts.begin(), counts.end());
  return {op::col2im(reshape(x, apart), {kKernel = window.kernel, kStrides = window.strides, kDilations = window.dilations, kPadsBegin = window.pads_begin, kSpatial = image})};
}

/// The pooled elements back where they were taken from, all else 0. Positions are those in the tensor that the window, strides and pads lead to; an
/// output_shape that is larger has it in its first corner. Of several elements for one position the last counts.
std::vector<Val> import_max_unpool(const ImportNode& node) {
  const Val x = node.x(0), position = node.x(1);
  const Window window = window_of(node, std::nullopt);
  const Shape pooled = spatial_extents(node, x.shape(), window.rank());
  Shape shape = {x.shape()[0], x.shape()[1]};
  for (std::size_t i = 0; i < window.rank(); ++i)
    shape.push_back((pooled[i] - 1) * Dim(window.strides[i]) + window.kernel[i] - window.pads_begin[i] - window.pads_end[i]);
  const Dim count = element_count(x.shape());
  const Val flat = op::scatter_elements(reshape(x, {count}), reshape(position, {count}), {kAxis = 0, kShape = Shape{element_count(shape)}});
  const Val y = reshape(flat, shape);
  if (not node.has(2)) return {y};
  const Shape stated = node.contents(2, "output_shape");
  node.require(stated.size() == x.rank(), Code::kShape, fmt::format("output_shape has {} entries for {} axes", stated.size(), x.rank()));
  return {op::pad(y, {kStarts = Shape(x.rank(), Dim(0)), kSizes = stated, kSteps = Ints(x.rank(), 1)})};
}

/// y = x / (bias + alpha * mean of squares of `size` neighbouring channels)^beta, channels beyond the ends being 0.
std::vector<Val> import_lrn(const ImportNode& node) {
  const Val x = node.x(0);
  const std::int64_t size = node.integer("size", 0);
  node.require(x.rank() >= 2, Code::kShape, "needs batch and channels");
  node.require(size >= 1, Code::kBadAttribute, fmt::format("size = {}", size));
  const Dim channels = x.shape()[1], rest = element_count(Shape(x.shape().begin() + 2, x.shape().end()));
  const Val squares = reshape(square(x), {x.shape()[0], 1, channels, rest});
  const Val means = op::avg_pool(squares, {kKernel = Ints{size, 1}, kStrides = Ints{1, 1}, kDilations = Ints{1, 1}, kPadsBegin = Shape{(size - 1) / 2, 0},
                                           kPadsEnd = Shape{size / 2, 0}, kSpatial = Shape{channels, rest}, kCountPads = true});
  const Val base = reshape(means, x.shape()) * node.real("alpha", 1e-4) + node.real("bias", 1);
  return {x / op::pow(base, node.builder().scalar(node.real("beta", 0.75), x.dtype()))};
}

constinit const Importer kPoolOps[] = {
    {"MaxPool", import_max_pool},
    {"AveragePool", import_average_pool},
    {"Col2Im", import_col2im},
    {"LRN", import_lrn},
    {"MaxUnpool", import_max_unpool},
    {"LpPool", import_lp_pool},
    {"GlobalAveragePool", [](const ImportNode& node) { return import_global(node, op::reduce_mean); }},
    {"GlobalMaxPool", [](const ImportNode& node) { return import_global(node, op::reduce_max); }},
};

}  // namespace

std::span<const Importer> pool_importers() { return kPoolOps; }

}  // namespace hone::onnx
