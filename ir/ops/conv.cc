// Convolution (really cross-correlation) over any number of spatial axes, and its two gradients. Convolution is bilinear in (x, w), so the three ops are
// each other's gradients: conv gives y from x and w, conv_input_grad gives x from y and w (ONNX's ConvTranspose), conv_weight_grad gives w from x and y.
// Layouts: x[N,C,s...], w[O,C/groups,k...], y[N,O,o...]; with channels_last x[N,s...,C] and y[N,o...,O], while w stays. Position along a spatial axis:
// s = o * stride + k * dilation - pad_begin.
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/ops/products.h"
#include "ir/ops/window.h"

namespace hone::op {

namespace {

constexpr FixedList<AttrRef, 12> kConvAttrs = {kStrides, kDilations, kPadsBegin, kPadsEnd, kGroups, kSpatial, kKernel, kChannelsLast, kTo, kTf32};
constexpr FixedList<AttrRef, 12> kConvPartsAttrs = {kStrides, kDilations, kPadsBegin, kPadsEnd, kGroups, kSpatial, kKernel, kChannelsLast, kTo, kTf32, kParts};

std::size_t spatial_rank(const Attrs& attrs) { return attrs[kStrides].size(); }

void require_attributes(const Infer& infer) {
  const std::size_t n = spatial_rank(infer.attrs);
  infer.require(infer.rank(0) == n + 2 and infer.rank(1) == n + 2, Code::kShape, fmt::format("both operands need {} axes: {} of them spatial", n + 2, n));
  infer.require(infer.attrs[kDilations].size() == n and infer.attrs[kPadsBegin].size() == n and infer.attrs[kPadsEnd].size() == n, Code::kBadAttribute,
                "strides, dilations and pads need one entry a spatial axis");
  infer.require(infer.attrs[kGroups] >= 1, Code::kBadAttribute, "groups must be at least 1");
  infer.require(infer.dtype(0) == infer.dtype(1) and infer.dtype(0) != DType::kBool, Code::kType, "needs numbers of one type");
  for (std::size_t i = 0; i < n; ++i)
    infer.require(infer.attrs[kStrides][i] >= 1 and infer.attrs[kDilations][i] >= 1, Code::kBadAttribute, "strides and dilations must be at least 1");
}

/// The channels of an activation.
Dim channels(const Attrs& attrs, const Shape& shape) { return shape[channel_axis(attrs, shape.size())]; }

std::vector<Type> infer_conv(Infer& infer) {
  require_attributes(infer);
  const Shape &x = infer.shape(0), &w = infer.shape(1);
  const std::span<const Dim> inputs = spatial(infer.attrs, x);
  infer.unify(channels(infer.attrs, x), w[1] * infer.attrs[kGroups], "channels of the input, and of the weight times groups,");
  infer.require(not w[0].is_constant() or w[0].value() % infer.attrs[kGroups] == 0, Code::kShape, "the output channels are no multiple of groups");
  Shape outputs;
  for (std::size_t i = 0; i < spatial_rank(infer.attrs); ++i) {
    const Dim window = (w[i + 2] - 1) * Dim(infer.attrs[kDilations][i]) + 1;
    const Dim room = inputs[i] + infer.attrs[kPadsBegin][i] + infer.attrs[kPadsEnd][i] - window;
    infer.require(not room.is_constant() or room.value() >= 0, Code::kShape,
                  fmt::format("the window ({}) is larger than spatial axis {} ({})", window.text(), i, inputs[i].text()));
    outputs.push_back(floordiv(room, infer.attrs[kStrides][i]) + 1);
  }
  return {{product_type(infer), activation<Dim>(infer.attrs, x[0], w[0], outputs)}};
}

std::vector<Type> infer_conv_input_grad(Infer& infer) {
  require_attributes(infer);
  const Shape &y = infer.shape(0), &w = infer.shape(1);
  infer.unify(channels(infer.attrs, y), w[0], "channels");
  infer.require(infer.attrs[kSpatial].size() + 2 == y.size(), Code::kBadAttribute, "spatial needs one extent a spatial axis");
  return {{product_type(infer), activation<Dim>(infer.attrs, y[0], w[1] * infer.attrs[kGroups], infer.attrs[kSpatial])}};
}

std::vector<Type> infer_conv_weight_grad(Infer& infer) {
  require_attributes(infer);
  infer.unify(infer.shape(0)[0], infer.shape(1)[0], "batch sizes");
  Shape shape = {channels(infer.attrs, infer.shape(1)), floordiv(channels(infer.attrs, infer.shape(0)), infer.attrs[kGroups])};
  for (const std::int64_t extent : infer.attrs[kKernel]) shape.push_back(extent);
  infer.require(shape.size() == infer.rank(0), Code::kBadAttribute, "kernel needs one extent a spatial axis");
  return {{product_type(infer), shape}};
}

std::vector<Type> infer_conv_weight_grad_parts(Infer& infer) {
  Shape shape = infer_conv_weight_grad(infer)[0].shape;
  infer.require(infer.attrs[kParts] >= 1, Code::kBadAttribute, "there must be a part");
  std::ranges::rotate(shape, shape.begin() + 1);  // outputs last
  shape.insert(shape.begin(), infer.attrs[kParts]);
  return {{product_type(infer), shape}};
}

Attrs with(const Attrs& attrs, Attr attr) {
  Attrs changed = attrs;
  changed.set(std::move(attr));
  return changed;
}

/// The attributes of a gradient: it has its operands' type.
Attrs untyped(Attrs attrs) {
  attrs.erase(kTo);
  return attrs;
}

/// The gradient of the result as an operand beside the others.
Val dy_of(Grad& g) { return hone::cast(g.dy(), g.x(0).dtype()); }

Shape window_of_weight(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }
Ints kernel_of_weight(const Shape& shape) { return constant_shape(window_of_weight(shape)); }

/// group * extent + i, without the arithmetic for one group.
Scalar in_group(Compute& c, Scalar channel, Dim channels_per_group, Dim other_per_group, Scalar i) {
  if (c.attrs[kGroups] == 1) return i;
  return expr::floordiv(channel, c.size(channels_per_group)) * c.size(other_per_group) + i;
}

Indices weight_index(Scalar output, Scalar input, std::span<const Scalar> window) {
  Indices index = {output, input};
  index.insert(index.end(), window.begin(), window.end());
  return index;
}

void compute_conv(Compute& c) {
  const Shape &x = c.shape(0), &w = c.shape(1), &result = c.result_shape();
  const Indices y = c.outer(result);
  const Indices k = c.inner(Shape(w.begin() + 1, w.end()));
  const Window from = window_at(c, spatial(c.attrs, x), spatial(c.attrs, result), window_of_weight(w), &y[first_spatial_axis(c.attrs)], &k[1]);
  const Scalar output = y[channel_axis(c.attrs, y.size())];
  const Scalar channel = in_group(c, output, floordiv(w[0], c.attrs[kGroups]), w[1], k[0]);
  c.store(
      0, y,
      c.sum(c.load_if(from.inside, 0, activation<Scalar>(c.attrs, y[0], channel, from.at)) * c.load(1, weight_index(output, k[0], std::span(k).subspan(1)))));
}

void compute_conv_input_grad(Compute& c) {
  const Shape &dy = c.shape(0), &w = c.shape(1);
  const Dim outputs = floordiv(w[0], c.attrs[kGroups]);  // per group
  const Indices x = c.outer(c.result_shape());
  Shape inner = {outputs};
  inner.insert(inner.end(), w.begin() + 2, w.end());
  const Indices k = c.inner(inner);
  const std::span<const Dim> extents = spatial(c.attrs, dy);
  Indices from;
  Scalar inside;
  for (std::size_t i = 0; i < extents.size(); ++i) {  // o * stride = s + pad - k * dilation
    const std::int64_t stride = c.attrs[kStrides][i];
    const Scalar scaled = x[first_spatial_axis(c.attrs) + i] + c.size(c.attrs[kPadsBegin][i]) - k[i + 1] * static_cast<double>(c.attrs[kDilations][i]);
    const Scalar at = stride == 1 ? scaled : expr::floordiv(scaled, c.index_constant(stride));
    Scalar fits = expr::logical_and(expr::greater_equal(at, c.index_constant(0)), expr::less(at, c.size(extents[i])));
    if (stride != 1) fits = expr::logical_and(fits, expr::equal(at * static_cast<double>(stride), scaled));
    inside = both(inside, fits);
    from.push_back(at);
  }
  const Scalar input = x[channel_axis(c.attrs, x.size())];
  const Scalar channel = in_group(c, input, w[1], outputs, k[0]);
  const Scalar within = c.attrs[kGroups] == 1 ? input : expr::mod(input, c.size(w[1]));
  c.store(0, x,
          c.sum(c.load_if(inside, 0, activation<Scalar>(c.attrs, x[0], channel, from)) * c.load(1, weight_index(channel, within, std::span(k).subspan(1)))));
}

/// Samples [begin, end), of which there are at most `most`; all of them where begin and end are invalid.
struct SampleRange {
  Dim most;
  Scalar begin = {}, end = {};
};

/// An element of w's gradient, or of a part of it: the sum over the samples and all output positions.
void sum_for_weight(Compute& c, const Indices& result, Scalar output, Scalar input, const Scalar* window, const SampleRange& samples) {
  const Shape &x = c.shape(0), &dy = c.shape(1);
  const std::span<const Dim> outputs = spatial(c.attrs, dy);
  Shape inner = {samples.most};
  inner.insert(inner.end(), outputs.begin(), outputs.end());
  const Indices o = c.inner(inner);
  const Scalar number = samples.begin.valid() ? samples.begin + o[0] : o[0], is_there = samples.end.valid() ? expr::less(number, samples.end) : Scalar();
  const Shape extents = shape_of(c.attrs[kKernel]);
  const Window from = window_at(c, spatial(c.attrs, x), outputs, extents, &o[1], window);
  const Dim inputs = floordiv(channels(c.attrs, x), c.attrs[kGroups]);
  const Scalar channel = in_group(c, output, floordiv(channels(c.attrs, dy), c.attrs[kGroups]), inputs, input);
  c.store(0, result,
          c.sum(c.load_if(both(from.inside, is_there), 0, activation<Scalar>(c.attrs, number, channel, from.at)) *
                c.load_if(is_there, 1, activation<Scalar>(c.attrs, number, output, std::span(o).subspan(1)))));
}

void compute_conv_weight_grad(Compute& c) {
  const Indices at = c.outer(c.result_shape());
  sum_for_weight(c, at, at[0], at[1], &at[2], {.most = c.shape(1)[0]});
}

void compute_conv_weight_grad_parts(Compute& c) {
  const std::int64_t parts = c.attrs[kParts];
  const Dim samples = c.shape(1)[0];
  const Indices at = c.outer(c.result_shape());
  const auto begin_of = [&](Scalar part) { return expr::floordiv(part * c.size(samples), c.index_constant(parts)); };  // so that no part has two samples more than another
  sum_for_weight(c, at, at.back(), at[1], &at[2], {.most = floordiv(samples + (parts - 1), parts), .begin = begin_of(at[0]), .end = begin_of(at[0] + c.index_constant(1))});
}

}  // namespace

constinit const OpDef conv = {
    .name = "conv",
    .doc = "y[n,o,..] = sum over c, k of x[n, c, o * stride + k * dilation - pad] * w[o,c,k]; what lies outside of x is 0. Operands of a storage type are widened; `to`: what y is then stored as",
    .inputs = {"x", "w"},
    .attrs = kConvAttrs,
    .infer = infer_conv,
    .grad =
        [](Grad& g) {
          g.flow(0, op::conv_input_grad(dy_of(g), g.x(1), with_spatial(untyped(g.attrs), g.x(0).shape())));
          g.flow(1, op::conv_weight_grad(g.x(0), dy_of(g), with(untyped(g.attrs), kKernel = kernel_of_weight(g.x(1).shape()))));
        },
    .compute = compute_conv,
};

constinit const OpDef conv_input_grad = {
    .name = "conv_input_grad",
    .doc = "the gradient of conv's x for dy, of spatial extents `spatial`; also the transposed convolution",
    .inputs = {"dy", "w"},
    .attrs = kConvAttrs,
    .infer = infer_conv_input_grad,
    .grad =
        [](Grad& g) {
          g.flow(0, op::conv(dy_of(g), g.x(1), untyped(g.attrs)));
          g.flow(1, op::conv_weight_grad(dy_of(g), g.x(0), with(untyped(g.attrs), kKernel = kernel_of_weight(g.x(1).shape()))));
        },
    .compute = compute_conv_input_grad,
};

constinit const OpDef conv_weight_grad = {
    .name = "conv_weight_grad",
    .doc = "the gradient of conv's w for dy, of window extents `kernel`",
    .inputs = {"x", "dy"},
    .attrs = kConvAttrs,
    .infer = infer_conv_weight_grad,
    .grad =
        [](Grad& g) {
          g.flow(0, op::conv_input_grad(g.x(1), dy_of(g), with_spatial(untyped(g.attrs), g.x(0).shape())));
          g.flow(1, op::conv(g.x(0), dy_of(g), untyped(g.attrs)));
        },
    .compute = compute_conv_weight_grad,
};

constinit const OpDef conv_weight_grad_parts = {
    .name = "conv_weight_grad_parts",
    .doc = "conv_weight_grad as the sums over each of `parts` parts of the samples, in order, which differ by one sample at most: [parts, C/groups, k.., O]",
    .inputs = {"x", "dy"},
    .attrs = kConvPartsAttrs,
    .infer = infer_conv_weight_grad_parts,
    .grad = no_gradient("it stands for conv_weight_grad once everything is differentiated"),
    .compute = compute_conv_weight_grad_parts,
};

}  // namespace hone::op
