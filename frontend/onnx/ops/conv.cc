// Convolution and transposed convolution over any number of spatial axes.
#include "frontend/onnx/ops/conv.h"

#include <fmt/format.h>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/window.h"
#include "ir/ops/formulas.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// The window extents of a weight [O,I,k...].
Ints kernel_of(const ImportNode& node, const Shape& weight) {
  node.require(weight.size() >= 3, Code::kShape, "the weight needs three axes or more");
  Ints kernel;
  for (std::size_t i = 2; i < weight.size(); ++i) {
    if (not weight[i].is_constant())
      node.fail(Code::kDynamic, fmt::format("axis {} of the weight must be known when compiling, and is {}", i, weight[i].text()));
    kernel.push_back(weight[i].value());
  }
  return kernel;
}

std::int64_t groups_of(const ImportNode& node) {
  const std::int64_t groups = node.integer("group", 1);
  node.require(groups >= 1, Code::kBadAttribute, fmt::format("group = {}", groups));
  return groups;
}

Attrs attributes_of(const Window& window, std::int64_t groups) {
  return {kStrides = window.strides, kDilations = window.dilations, kPadsBegin = window.pads_begin, kPadsEnd = window.pads_end, kGroups = groups};
}

/// y + bias[C] along the channels; the bias is operand `operand`, if it is there.
Val with_bias(const ImportNode& node, Val y, std::size_t operand = 2) {
  if (not node.has(operand)) return y;
  const Val bias = node.x(operand);
  node.require(bias.rank() == 1, Code::kShape, "the bias must be a vector with one element a channel");
  if (bias.shape()[0].is_constant() and y.shape()[1].is_constant() and bias.shape()[0] != y.shape()[1])
    node.fail(Code::kShape, fmt::format("the bias has {} elements for {} channels", bias.shape()[0].text(), y.shape()[1].text()));
  return y + per_channel(bias, y.rank());
}

std::vector<Val> import_conv(const ImportNode& node) {
  return {with_bias(node, convolution(node, node.x(0), node.x(1)))};
}

/// The pads of the convolution that a transposed one turns around, when its result (the input here) is to have `spatial` extents, and the pads of the node do
/// not say so: output_shape, or auto_pad, which asks for extents times strides.
void pad_to(const ImportNode& node, Window& window, const Shape& natural, const Shape& spatial) {
  const Odd odd = node.text("auto_pad", "NOTSET") == "SAME_UPPER" ? Odd::kBehind : Odd::kBefore;
  for (std::size_t i = 0; i < window.rank(); ++i) split_padding(window, i, max(natural[i] - spatial[i], 0), odd);
}

/// conv_input_grad is ConvTranspose: its operand is what a convolution gave, its result of extents
/// (input - 1) * stride + span + output_padding - pads.
std::vector<Val> import_conv_transpose(const ImportNode& node) {
  const Val x = node.x(0), weight = node.x(1);
  Window window = window_of(node, kernel_of(node, weight.shape()));
  const Shape input = spatial_extents(node, x.shape(), window.rank());
  const Ints output_padding = node.integers("output_padding").value_or(Ints(window.rank(), 0));
  node.require(output_padding.size() == window.rank(), Code::kBadAttribute,
               fmt::format("output_padding has {} entries for {} spatial axes", output_padding.size(), window.rank()));
  Shape natural, spatial;  // without pads, and of the result
  for (std::size_t i = 0; i < window.rank(); ++i) {
    node.require(output_padding[i] >= 0, Code::kBadAttribute, fmt::format("output_padding of {}", output_padding[i]));
    natural.push_back((input[i] - 1) * Dim(window.strides[i]) + window.span(i) + output_padding[i]);
  }
  const std::string auto_pad = node.text("auto_pad", "NOTSET");
  if (const auto stated = node.integers("output_shape")) {
    node.require(stated->size() == window.rank(), Code::kBadAttribute,
                 fmt::format("output_shape has {} entries for {} spatial axes", stated->size(), window.rank()));
    spatial = shape_of(*stated);
    pad_to(node, window, natural, spatial);
  } else if (auto_pad == "SAME_UPPER" or auto_pad == "SAME_LOWER") {
    for (std::size_t i = 0; i < window.rank(); ++i) spatial.push_back(input[i] * Dim(window.strides[i]));
    pad_to(node, window, natural, spatial);
  } else {
    apply_auto_pad(node, window, input);
    for (std::size_t i = 0; i < window.rank(); ++i) spatial.push_back(natural[i] - window.pads_begin[i] - window.pads_end[i]);
  }
  for (std::size_t i = 0; i < window.rank(); ++i) {
    node.require(not spatial[i].is_constant() or spatial[i].value() > 0, Code::kShape,
                 fmt::format("the result would have extent {} along spatial axis {}", spatial[i].text(), i));
    // The convolution from the result must give `input` positions: what is left over may not reach another one.
    const Dim left_over = spatial[i] + window.pads_begin[i] + window.pads_end[i] - window.span(i) - (input[i] - 1) * Dim(window.strides[i]);
    if (left_over.is_constant() and left_over.value() >= window.strides[i]) window.pads_end[i] -= left_over.value() / window.strides[i] * window.strides[i];
  }
  Attrs attrs = attributes_of(window, groups_of(node));
  attrs.set(kSpatial = spatial);
  return {with_bias(node, op::conv_input_grad(x, weight, attrs))};
}

std::vector<Val> import_deform_conv(const ImportNode& node) {
  const Val x = node.x(0), weight = node.x(1), offset = node.x(2);
  const Window window = window_of(node, kernel_of(node, weight.shape()));
  (void)spatial_extents(node, x.shape(), window.rank());
  const std::int64_t offset_groups = node.integer("offset_group", 1);
  node.require(offset_groups >= 1, Code::kBadAttribute, fmt::format("offset_group = {}", offset_groups));
  Attrs attrs = attributes_of(window, groups_of(node));
  attrs.set(kOffsetGroups = offset_groups);
  return {with_bias(node, op::deform_conv.build({x, weight, offset, node.has(4) ? node.x(4) : Val()}, attrs), 3)};
}

constinit const Importer kConvOps[] = {
    {"Conv", import_conv, {1, 2}},
    {"ConvTranspose", import_conv_transpose, {1, 2}},
    {"DeformConv", import_deform_conv, {1, 3}},
};

}  // namespace

Val convolution(const ImportNode& node, Val x, Val weight) {
  Window window = window_of(node, kernel_of(node, weight.shape()));
  apply_auto_pad(node, window, spatial_extents(node, x.shape(), window.rank()));
  return op::conv(x, weight, attributes_of(window, groups_of(node)));
}

std::span<const Importer> conv_importers() { return kConvOps; }

}  // namespace hone::onnx
