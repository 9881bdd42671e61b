// Pooling over windows, and over all of the spatial axes.
#include <fmt/format.h>

#include "frontend/onnx/ops.h"
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
  if (node.wants(1)) node.fail(Code::kUnknownOp, "its result 1 (Indices) is not supported", {"leave the indices out, or pool with a Slice or Gather instead"});
  const Val x = node.x(0);
  const Val pooled = op::max_pool(is_float(x.dtype()) ? x : cast(x, DType::kF32), pool_attributes(node, x.shape()));  // integers have 8 bits here
  return {cast(pooled, x.dtype())};
}

std::vector<Val> import_average_pool(const ImportNode& node) {
  Attrs attrs = pool_attributes(node, node.x(0).shape());
  if (node.flag("count_include_pad", false)) attrs.set(kCountPads = true);
  return {op::avg_pool(node.x(0), attrs)};
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

constinit const Importer kRows[] = {
    {"MaxPool", import_max_pool},
    {"AveragePool", import_average_pool},
    {"Col2Im", import_col2im},
    {"GlobalAveragePool", [](const ImportNode& node) { return import_global(node, op::reduce_mean); }},
    {"GlobalMaxPool", [](const ImportNode& node) { return import_global(node, op::reduce_max); }},
};

}  // namespace

std::span<const Importer> pool_importers() { return kRows; }

}  // namespace hone::onnx
