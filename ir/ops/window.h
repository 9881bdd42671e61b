// Windows that slide over the spatial axes of activations: s = o * stride + k * dilation - pad_begin, by the attributes kernel, strides, dilations and
// pads_begin. An activation is [N,C,s...], or [N,s...,C] with the attribute channels_last.
#pragma once

#include "ir/kernel/compute.h"

namespace hone {

inline constexpr AttrKey<bool> kChannelsLast("channels_last");

inline std::size_t channel_axis(const Attrs& attrs, std::size_t rank) { return attrs[kChannelsLast] ? rank - 1 : 1; }
inline std::size_t first_spatial_axis(const Attrs& attrs) { return attrs[kChannelsLast] ? 1 : 2; }

/// The spatial extents of an activation.
inline std::span<const Dim> spatial(const Attrs& attrs, const Shape& shape) { return std::span(shape).subspan(first_spatial_axis(attrs), shape.size() - 2); }

/// The extents, or the index, of an activation, in the order of its axes.
template <typename T>
std::vector<T> activation(const Attrs& attrs, T sample, T channel, std::span<const T> spatial) {
  std::vector<T> axes = {sample};
  axes.insert(axes.end(), spatial.begin(), spatial.end());
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(channel_axis(attrs, spatial.size() + 2)), channel);
  return axes;
}

/// Is 0 <= at < extent?
inline Scalar within(Compute& c, Scalar at, Dim extent) {
  return expr::logical_and(expr::greater_equal(at, c.index_constant(0)), expr::less(at, c.size(extent)));
}

/// A position along every spatial axis, and whether all of them are inside (invalid: always).
struct Window {
  Indices at;
  Scalar inside;
};

/// Where window position k of output o reads in an input of spatial extents `inputs`. Of `windows` positions and `outputs`, so that checks which always hold
/// are left out.
Window window_at(Compute& c, std::span<const Dim> inputs, std::span<const Dim> outputs, std::span<const Dim> windows, const Scalar* o, const Scalar* k);

/// How many windows, along each axis, may lie over one position of the input.
Ints covers(const Attrs& attrs);

/// A window that lies over an input position: the output, and which position of its window it is.
struct Cover {
  Indices output, window;
  Scalar inside;  ///< is there such a window? Invalid: always
};
/// Number j, one of covers() along each axis, of the windows over input s. `inputs` and `outputs` are spatial extents.
Cover cover_at(Compute& c, std::span<const Dim> inputs, std::span<const Dim> outputs, const Scalar* s, const Scalar* j);

/// `attrs` of an op that gives an activation of `shape`.
Attrs with_spatial(const Attrs& attrs, const Shape& shape);

}  // namespace hone
