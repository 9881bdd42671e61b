// Convolution with its gradients, and pooling. ONNX has the channels as the second axis.
#include <algorithm>
#include <optional>

#include "frontend/onnx/export_rows.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"

namespace hone::onnx {

namespace {

/// Common runtimes convolve f32 alone.
bool is_convolved(const Exporter& e, const Node& node) { return e.formulas == Formulas::kRefused or info(e.graph.type(node.operands[0]).dtype).arithmetic == DType::kF32; }

std::string transposed(Exporter& e, const std::string& name, const Ints& perm, const std::string& hint, const Node& node) {
  const std::string made = e.fresh(hint);
  set(e.node("Transpose", {name}, {made}, node), "perm", perm);
  return made;
}

/// An activation with its channels as the second axis.
std::string channels_first(Exporter& e, ValueId value, const Node& node) {
  if (not node.attrs[kChannelsLast]) return e.name(value);
  const auto rank = static_cast<std::int64_t>(e.graph.type(value).shape.size());
  Ints perm = {0, rank - 1};
  for (std::int64_t axis = 1; axis + 1 < rank; ++axis) perm.push_back(axis);
  return transposed(e, e.name(value), perm, e.name(value) + "_channels_first", node);
}

/// `made`, an activation with its channels as the second axis, is the node's result.
void finish_activation(Exporter& e, std::string made, const Node& node) {
  if (node.attrs[kChannelsLast]) {
    const auto rank = static_cast<std::int64_t>(e.graph.type(node.results[0]).shape.size());
    Ints perm = {0};
    for (std::int64_t axis = 2; axis < rank; ++axis) perm.push_back(axis);
    perm.push_back(1);
    made = transposed(e, made, perm, made + "_channels_last", node);
  }
  e.finish(made, node.results[0], node);
}

std::optional<Ints> numbers(std::span<const Dim> dims) {
  Ints values;
  for (const Dim& dim : dims) {
    if (not dim.is_constant()) return std::nullopt;
    values.push_back(dim.value());
  }
  return values;
}

/// ONNX's pads: all begins, then all ends.
std::optional<Ints> pads_of(const Node& node) {
  std::optional<Ints> pads = numbers(node.attrs[kPadsBegin]);
  const std::optional<Ints> ends = numbers(node.attrs[kPadsEnd]);
  if (not pads or not ends) return std::nullopt;
  pads->insert(pads->end(), ends->begin(), ends->end());
  return pads;
}

/// A convolution's extents along the spatial axes.
struct Extents {
  Ints x, y, window, pads_begin;
};
/// Of a gradient; nothing where some are not known.
std::optional<Extents> extents_of(const Node& node, const Shape& x, const Shape& y, const Shape& w) {
  const auto inputs = numbers(spatial(node.attrs, x)), outputs = numbers(spatial(node.attrs, y)), window = numbers(std::span(w).subspan(2)), pads = numbers(node.attrs[kPadsBegin]);
  if (not inputs or not outputs or not window or not pads) return std::nullopt;
  return Extents{*inputs, *outputs, *window, *pads};
}

}  // namespace

bool write_conv(Exporter& e, const Node& node) {
  const std::optional<Ints> pads = pads_of(node);
  if (not pads or not is_convolved(e, node)) return false;
  const Shape& w = e.graph.type(node.operands[1]).shape;
  const std::string made = e.fresh(e.name(node.results[0]) + "_conv");
  NodeProto& proto = e.node("Conv", {channels_first(e, node.operands[0], node), e.name(node.operands[1])}, {made}, node);
  set(proto, "dilations", node.attrs[kDilations]);
  set(proto, "group", node.attrs[kGroups]);
  set(proto, "kernel_shape", constant_shape(Shape(w.begin() + 2, w.end())));
  set(proto, "pads", *pads);
  set(proto, "strides", node.attrs[kStrides]);
  finish_activation(e, made, node);
  return true;
}

/// A transposed convolution gives (y - 1) * stride + (window - 1) * dilation + 1 elements less the pads; what of x no window reached are its output pads.
bool write_conv_input_grad(Exporter& e, const Node& node) {
  const Shape& w = e.graph.type(node.operands[1]).shape;
  const auto extents = extents_of(node, e.graph.type(node.results[0]).shape, e.graph.type(node.operands[0]).shape, w);
  if (not extents or not is_convolved(e, node)) return false;
  Ints pads = extents->pads_begin, output_pads;
  for (std::size_t i = 0; i < extents->x.size(); ++i) {
    const std::int64_t all = (extents->y[i] - 1) * node.attrs[kStrides][i] + (extents->window[i] - 1) * node.attrs[kDilations][i] + 1, end = all - pads[i] - extents->x[i];
    pads.push_back(std::max<std::int64_t>(end, 0));
    output_pads.push_back(std::max<std::int64_t>(-end, 0));
    if (output_pads.back() >= std::max(node.attrs[kStrides][i], node.attrs[kDilations][i])) return false;
  }
  const std::string made = e.fresh(e.name(node.results[0]) + "_conv");
  NodeProto& proto = e.node("ConvTranspose", {channels_first(e, node.operands[0], node), e.name(node.operands[1])}, {made}, node);
  set(proto, "dilations", node.attrs[kDilations]);
  set(proto, "group", node.attrs[kGroups]);
  set(proto, "kernel_shape", extents->window);
  set(proto, "output_padding", output_pads);
  set(proto, "pads", pads);
  set(proto, "strides", node.attrs[kStrides]);
  finish_activation(e, made, node);
  return true;
}

namespace {

std::string samples_as_channels(Exporter& e, const std::string& name, std::size_t rank, const std::string& hint, const Node& node) {
  Ints perm = {1, 0};
  for (std::size_t axis = 2; axis < rank; ++axis) perm.push_back(static_cast<std::int64_t>(axis));
  return transposed(e, name, perm, hint + "_samples", node);
}

/// Extents of a gradient of weights `w` that can be written; nothing where it cannot.
std::optional<Extents> extents_for_weight(const Exporter& e, const Node& node, const Shape& w) {
  if (not is_convolved(e, node) or not w[1].is_constant()) return std::nullopt;
  return extents_of(node, e.graph.type(node.operands[0]).shape, e.graph.type(node.operands[1]).shape, w);
}

/// dw[o,c,k] = sum over n, p of x[n, c, p * stride + k * dilation - pad] * dy[n,o,p], as [c,o,k]: a convolution of x, whose channels are the samples, with a window of dy's extents,
/// in which strides and dilations change places. With groups: x as [c, group * n, ...], in as many groups. `x` and `dy` have their channels as the second axis, and `channels` are those of a group.
std::string convolve_for_weight(Exporter& e, const Node& node, const Extents& extents, std::int64_t channels, const std::string& x, const std::string& dy) {
  const std::int64_t groups = node.attrs[kGroups];
  const std::size_t rank = extents.x.size() + 2;
  const std::string hint = e.name(node.results[0]);
  Ints pads = extents.pads_begin, starts, ends, axes;
  for (std::size_t i = 0; i < extents.x.size(); ++i) {
    const std::int64_t dilation = node.attrs[kDilations][i], needed = (extents.window[i] - 1) * dilation + (extents.y[i] - 1) * node.attrs[kStrides][i] + 1;
    const std::int64_t end = needed - extents.x[i] - pads[i];
    pads.push_back(std::max<std::int64_t>(end, 0));
    if (-end < dilation) continue;
    starts.push_back(0);  // windows beyond those of w
    ends.push_back(extents.window[i]);
    axes.push_back(static_cast<std::int64_t>(i + 2));
  }
  std::string samples;
  if (groups == 1) {
    samples = samples_as_channels(e, x, rank, hint, node);
  } else {
    Ints apart = {0, groups, channels}, perm = {2, 1, 0}, together = {channels, -1};
    for (std::size_t i = 0; i < extents.x.size(); ++i) {
      apart.push_back(extents.x[i]);
      together.push_back(extents.x[i]);
      perm.push_back(static_cast<std::int64_t>(i + 3));
    }
    samples = transposed(e, e.value("Reshape", {x, e.ints(apart, hint + "_shape")}, hint + "_groups", node), perm, hint + "_groups", node);
    samples = e.value("Reshape", {samples, e.ints(together, hint + "_shape")}, hint + "_samples", node);
  }
  const std::string window = samples_as_channels(e, dy, rank, hint, node);
  std::string made = e.fresh(hint + "_conv");
  NodeProto& proto = e.node("Conv", {samples, window}, {made}, node);
  set(proto, "dilations", node.attrs[kStrides]);
  set(proto, "group", groups);
  set(proto, "kernel_shape", extents.y);
  set(proto, "pads", pads);
  set(proto, "strides", node.attrs[kDilations]);
  if (not axes.empty()) made = e.value("Slice", {made, e.ints(starts, hint + "_starts"), e.ints(ends, hint + "_ends"), e.ints(axes, hint + "_axes")}, hint + "_kept", node);
  return made;
}

}  // namespace

bool write_conv_weight_grad(Exporter& e, const Node& node) {
  const Shape& w = e.graph.type(node.results[0]).shape;
  const auto extents = extents_for_weight(e, node, w);
  if (not extents) return false;
  const std::string x = channels_first(e, node.operands[0], node), dy = channels_first(e, node.operands[1], node);
  e.finish(samples_as_channels(e, convolve_for_weight(e, node, *extents, w[1].value(), x, dy), w.size(), e.name(node.results[0]), node), node.results[0], node);
  return true;
}

/// Of each part of the samples by itself, its outputs last.
bool write_conv_weight_grad_parts(Exporter& e, const Node& node) {
  const Shape& parts = e.graph.type(node.results[0]).shape;
  Shape w(parts.begin() + 1, parts.end());
  std::ranges::rotate(w, w.end() - 1);
  const auto extents = extents_for_weight(e, node, w);
  if (not extents) return false;
  const std::string hint = e.name(node.results[0]);
  const std::int64_t count = node.attrs[kParts];
  const Dim samples = e.graph.type(node.operands[0]).shape[0];
  std::vector<std::string> borders;
  for (std::int64_t i = 0; i <= count; ++i) {
    borders.push_back(e.sizes({floordiv(samples * i, count)}, hint + "_border", node));
    if (borders.back().empty()) return false;
  }
  const std::string x = channels_first(e, node.operands[0], node), dy = channels_first(e, node.operands[1], node), first_axis = e.ints({0}, hint + "_axis");
  Ints outputs_last = {0};
  for (std::size_t axis = 2; axis < w.size(); ++axis) outputs_last.push_back(static_cast<std::int64_t>(axis));
  outputs_last.push_back(1);
  std::vector<std::string> made;
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    const auto of_part = [&](const std::string& all) { return e.value("Slice", {all, borders[i], borders[i + 1], first_axis}, hint + "_part", node); };
    const std::string part = transposed(e, convolve_for_weight(e, node, *extents, w[1].value(), of_part(x), of_part(dy)), outputs_last, hint + "_outputs_last", node);
    made.push_back(e.value("Unsqueeze", {part, first_axis}, hint + "_part", node));
  }
  const std::string together = e.fresh(hint + "_parts");
  set(e.node("Concat", made, {together}, node), "axis", std::int64_t{0});
  e.finish(together, node.results[0], node);
  return true;
}

namespace {

bool write_pool(Exporter& e, const Node& node, std::string_view type) {
  const std::optional<Ints> pads = pads_of(node);
  if (not pads or not is_convolved(e, node)) return false;
  const std::span<const Dim> x = spatial(node.attrs, e.graph.type(node.operands[0]).shape);
  for (std::size_t i = 0; i < node.attrs[kKernel].size(); ++i) {
    const Dim window = (node.attrs[kKernel][i] - 1) * node.attrs[kDilations][i] + 1;
    if (floordiv(x[i] + node.attrs[kPadsBegin][i] + node.attrs[kPadsEnd][i] - window, node.attrs[kStrides][i]) + 1 != node.attrs[kSpatial][i]) return false;
    if (type == "AveragePool" and node.attrs[kDilations][i] != 1) return false;
  }
  const std::string made = e.fresh(e.name(node.results[0]) + "_pool");
  NodeProto& proto = e.node(type, {channels_first(e, node.operands[0], node)}, {made}, node);
  set(proto, "kernel_shape", node.attrs[kKernel]);
  if (type == "AveragePool") {
    if (node.attrs[kCountPads]) set(proto, "count_include_pad", std::int64_t{1});
  } else {
    set(proto, "dilations", node.attrs[kDilations]);
  }
  set(proto, "pads", *pads);
  set(proto, "strides", node.attrs[kStrides]);
  finish_activation(e, made, node);
  return true;
}

}  // namespace

/// ONNX's second result is another than ours.
bool write_max_pool(Exporter& e, const Node& node) {
  const bool is_window_read = e.formulas == Formulas::kWritten and count_uses(e.graph)[node.results[1].index] != 0;
  return not is_window_read and write_pool(e, node, "MaxPool");
}

bool write_avg_pool(Exporter& e, const Node& node) { return write_pool(e, node, "AveragePool"); }

}  // namespace hone::onnx
