// Weights that are kept in less than they are computed with: rounded to a smaller float, or as int8 with a scale for each element of one axis ("per channel", symmetric).
#pragma once

#include <cstddef>

#include "base/tensor.h"

namespace hone {

struct KeptWeight {
  Tensor stored;
  Tensor scales;  ///< of int8: f32[extent of the axis]; else empty
};

/// `value` as `dtype`. For kI8 a scale is the largest magnitude along the axis over 127, and an element the nearest multiple of it, ties to even: nothing is cut, and 0 stays 0. Elements are read
/// as f32; those that are not finite become what they become in a float, and in int8 their channel has a scale of NaN or infinity, so that nobody takes it for a weight.
KeptWeight keep_as(const Tensor& value, DType dtype, std::size_t axis);
/// The weight again, as `dtype`: `stored` times the scales, in f32, rounded to `dtype`.
Tensor widened(const KeptWeight& kept, std::size_t axis, DType dtype);

}  // namespace hone
