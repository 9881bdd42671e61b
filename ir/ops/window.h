// Windows that slide over spatial axes: s = o * stride + k * dilation - pad_begin, by the attributes kernel, strides, dilations and pads_begin.
#pragma once

#include "ir/kernel/compute.h"

namespace hone {

/// A position along every spatial axis, and whether all of them are inside.
struct Window {
  Indices at;
  Scalar inside;
};

/// The spatial extents of a tensor [N,C,s...].
inline std::span<const Dim> spatial(const Shape& shape) { return std::span(shape).subspan(2); }

/// Where window position k of output o reads in an input of spatial extents `inputs`.
Window window_at(Compute& c, std::span<const Dim> inputs, const Scalar* o, const Scalar* k);

/// The output, one of `outputs` along each axis, whose window position k covers input s, if there is one.
Window output_at(Compute& c, std::span<const Dim> outputs, const Scalar* s, const Scalar* k);

/// `attrs` of an op that gives `shape`, [N,C,s...].
Attrs with_spatial(const Attrs& attrs, const Shape& shape);

}  // namespace hone
