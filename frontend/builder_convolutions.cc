// Layers over images, or what else has spatial axes behind samples and channels: convolutions and pooling.
#include <fmt/format.h>

#include "frontend/builder_layer.h"
#include "ir/ops/formulas.h"
#include "ir/ops/ops.h"

namespace hone::nn {

namespace {

/// Pads of each spatial axis.
struct Pads {
  Shape begin, end;
  void add(const Dim& total) {  // the odd one at the end
    begin.push_back(floordiv(total, 2));
    end.push_back(total - floordiv(total, 2));
  }
};

std::vector<std::int64_t> with_window(std::vector<std::int64_t> channels, const std::vector<std::int64_t>& kernel) {
  channels.insert(channels.end(), kernel.begin(), kernel.end());
  return channels;
}

Val with_bias(Layer& layer, Val y, std::int64_t channels, bool use_bias) { return use_bias ? y + per_channel(layer.weight("bias", {channels}, Initializer::zeros()), y.rank()) : y; }

/// A window that is as long on each spatial axis; none where there are no such axes, which the layer refuses.
std::vector<std::int64_t> square(const Value& x, std::int64_t extent) { return std::vector<std::int64_t>(x.shape().size() < 3 ? 0 : x.shape().size() - 2, extent); }

void check_window(const Layer& layer, const Value& x, const std::vector<std::int64_t>& window) {
  const std::size_t spatial = layer.spatial_axes(x);
  if (window.size() != spatial) layer.fail(fmt::format("its windows have {} extents, and its input [{}] has {} spatial axes", window.size(), to_string(x.shape()), spatial), "one extent for each axis behind the channels, or one number for all");
  for (const std::int64_t extent : window) layer.at_least(1, extent, "the window's extent");
}

/// Of spatial axis `i`, with `padding` on either side: a window that reaches further has no place. It mostly means that channels were given last.
void check_reach(const Layer& layer, const Value& x, std::size_t i, std::int64_t reach, std::int64_t padding) {
  const Dim& extent = x.shape()[i + 2];
  if (not extent.is_constant() or reach <= extent.value() + 2 * padding) return;
  layer.fail(fmt::format("a window reaches over {} elements, and axis {} of its input [{}] has {}{}", reach, i + 2, to_string(x.shape()), extent.text(), padding > 0 ? fmt::format(" and {} of padding", 2 * padding) : ""),
             "channels are the axis behind the samples, [N,C,H,W], and spatial axes follow; where they come last, nn::permute(x, {3, 1, 2}) moves them");
}

/// What "same" adds to an axis in all.
Dim pads_of_same(const Dim& extent, std::int64_t stride, std::int64_t reach) { return max((ceildiv(extent, stride) - 1) * stride + reach - extent, 0); }

/// A convolution of x, which the layer was given or has made, with a weight called `part`.
Val convolved(Layer& layer, const Value& x, const char* part, std::int64_t channels, const std::vector<std::int64_t>& kernel, const ConvOptions& options) {
  const std::size_t spatial = layer.spatial_axes(x);
  check_window(layer, x, kernel);
  layer.at_least(1, channels, "the number of channels");
  layer.at_least(1, options.stride, "the stride");
  layer.at_least(1, options.dilation, "the dilation");
  layer.at_least(0, options.padding, "the padding");
  const std::int64_t in = layer.extent(x, 1);
  if (options.groups < 1 or in % options.groups != 0 or channels % options.groups != 0) layer.fail(fmt::format("{} groups do not divide both {} and {} channels", options.groups, in, channels), "they divide both");
  Pads pads;
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t reach = (kernel[i] - 1) * options.dilation + 1;
    if (not options.same) check_reach(layer, x, i, reach, options.padding);
    pads.add(options.same ? pads_of_same(x.shape()[i + 2], options.stride, reach) : Dim(2 * options.padding));
  }
  return op::conv(x.val(), layer.weight(part, with_window({channels, in / options.groups}, kernel), Initializer::glorot_uniform()),
                  {kStrides = Ints(spatial, options.stride), kDilations = Ints(spatial, options.dilation), kPadsBegin = pads.begin, kPadsEnd = pads.end, kGroups = options.groups});
}

Value pool(Value x, const std::vector<std::int64_t>& window, const PoolOptions& options, const OpDef& op, const std::string& kind) {
  Layer layer(x, kind);
  check_window(layer, x, window);
  layer.at_least(0, options.stride, "the stride");
  layer.at_least(0, options.padding, "the padding");
  Pads pads;
  Ints strides;
  Shape extents;
  for (std::size_t i = 0; i < window.size(); ++i) {
    const Dim extent = x.shape()[i + 2];
    if (not options.same and options.padding >= window[i])
      layer.fail(fmt::format("the padding is {}, and the window's extent {}: a window would hold nothing but padding", options.padding, window[i]), "the padding is less than the window's extent");
    if (not options.same) check_reach(layer, x, i, window[i], options.padding);
    strides.push_back(options.stride == 0 ? window[i] : options.stride);
    pads.add(options.same ? pads_of_same(extent, strides[i], window[i]) : Dim(2 * options.padding));
    extents.push_back(options.same ? ceildiv(extent, strides[i]) : floordiv(extent + 2 * options.padding - window[i], strides[i]) + 1);
  }
  return layer.done(op.build({x.val()}, {kKernel = Ints(window), kStrides = strides, kDilations = Ints(window.size(), 1), kPadsBegin = pads.begin, kPadsEnd = pads.end, kSpatial = extents}));
}

Value over_positions(Value x, const OpDef& reduction, const std::string& kind) {
  Layer layer(x, kind);
  Ints axes;
  for (std::size_t i = 0; i < layer.spatial_axes(x); ++i) axes.push_back(static_cast<std::int64_t>(i + 2));
  return layer.done(reduction(x.val(), {kAxes = axes, kKeepDims = false}));
}

}  // namespace

Value conv(Value x, std::int64_t channels, const std::vector<std::int64_t>& kernel, ConvOptions options) {
  Layer layer(x, "conv");
  return layer.done(with_bias(layer, convolved(layer, x, "kernel", channels, kernel, options), channels, options.use_bias));
}

Value conv(Value x, std::int64_t channels, std::int64_t kernel, ConvOptions options) {
  return conv(x, channels, square(x, kernel), options);
}

Value depthwise_conv(Value x, std::int64_t kernel, std::int64_t multiplier, ConvOptions options) {
  Layer layer(x, "depthwise_conv");
  layer.at_least(1, multiplier, "the number of windows of a channel");
  options.groups = layer.extent(x, 1);
  const std::int64_t channels = options.groups * multiplier;
  return layer.done(with_bias(layer, convolved(layer, x, "kernel", channels, std::vector<std::int64_t>(layer.spatial_axes(x), kernel), options), channels, options.use_bias));
}

Value separable_conv(Value x, std::int64_t channels, std::int64_t kernel, ConvOptions options) {
  Layer layer(x, "separable_conv");
  options.groups = layer.extent(x, 1);
  const std::size_t spatial = layer.spatial_axes(x);
  const Value each = layer.done(convolved(layer, x, "depthwise_kernel", options.groups, std::vector<std::int64_t>(spatial, kernel), options));
  return layer.done(with_bias(layer, convolved(layer, each, "pointwise_kernel", channels, std::vector<std::int64_t>(spatial, 1), {}), channels, options.use_bias));
}

/// conv_input_grad is that function: its operand is what a convolution gave, and its result, of extents that it is told, what that was given.
Value conv_transpose(Value x, std::int64_t channels, std::int64_t kernel, ConvTransposeOptions options) {
  Layer layer(x, "conv_transpose");
  const std::size_t spatial = layer.spatial_axes(x);
  layer.at_least(1, channels, "the number of channels");
  layer.at_least(1, kernel, "the window's extent");
  layer.at_least(1, options.stride, "the stride");
  layer.at_least(0, options.padding, "the padding");
  layer.at_least(0, options.output_padding, "the output's padding");
  if (options.output_padding >= options.stride) layer.fail(fmt::format("the output's padding is {}, and the stride {}", options.output_padding, options.stride), "it says which of the extents that a stride leaves open is meant: less than the stride");
  Pads pads;
  Shape extents;
  for (std::size_t i = 0; i < spatial; ++i) {
    const Dim extent = x.shape()[i + 2];
    pads.add(options.same ? max(Dim(kernel - options.stride), 0) : Dim(2 * options.padding));
    extents.push_back(options.same ? extent * options.stride : (extent - 1) * options.stride + kernel + options.output_padding - 2 * options.padding);
    if (extents.back().is_constant() and extents.back().value() < 1) layer.fail(fmt::format("a padding of {} leaves nothing of its input [{}]", options.padding, to_string(x.shape())), "less is cut off then");
  }
  const Val weight = layer.weight("kernel", with_window({layer.extent(x, 1), channels}, std::vector<std::int64_t>(spatial, kernel)), Initializer::glorot_uniform());
  const Val y = op::conv_input_grad(x.val(), weight, {kStrides = Ints(spatial, options.stride), kDilations = Ints(spatial, 1), kPadsBegin = pads.begin, kPadsEnd = pads.end, kGroups = std::int64_t{1}, kSpatial = extents});
  return layer.done(with_bias(layer, y, channels, options.use_bias));
}

Value max_pool(Value x, const std::vector<std::int64_t>& window, PoolOptions options) { return pool(x, window, options, op::max_pool, "max_pool"); }
Value max_pool(Value x, std::int64_t size, PoolOptions options) { return max_pool(x, square(x, size), options); }
Value average_pool(Value x, const std::vector<std::int64_t>& window, PoolOptions options) { return pool(x, window, options, op::avg_pool, "average_pool"); }
Value average_pool(Value x, std::int64_t size, PoolOptions options) { return average_pool(x, square(x, size), options); }

Value global_average_pool(Value x) { return over_positions(x, op::reduce_mean, "global_average_pool"); }
Value global_max_pool(Value x) { return over_positions(x, op::reduce_max, "global_max_pool"); }

}  // namespace hone::nn
