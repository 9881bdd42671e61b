// Windows that slide over spatial axes: what Conv, ConvTranspose and the poolings have in common.
#pragma once

#include "frontend/onnx/node.h"

namespace hone::onnx {

/// One entry a spatial axis.
struct Window {
  Ints kernel, strides, dilations;
  Shape pads_begin, pads_end;

  std::size_t rank() const { return kernel.size(); }
  /// Positions that the window spans along axis `i`: (kernel - 1) * dilation + 1.
  std::int64_t span(std::size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

/// Reads kernel_shape (when `kernel` does not say it), strides, dilations and pads, and checks them. auto_pad is left to the caller.
Window window_of(const ImportNode& node, std::optional<Ints> kernel);

/// Replaces the pads as auto_pad says: VALID: none; SAME_UPPER, SAME_LOWER: such that ceil(extent / stride) windows fit over `spatial`, an odd
/// one behind or before. Whether it said anything but NOTSET.
bool apply_auto_pad(const ImportNode& node, Window& window, const Shape& spatial);

/// Splits `total` (at least 0) into pads: half before and half behind, an odd one behind if `odd_behind`.
enum class Odd { kBefore, kBehind };
void split_padding(Window& window, std::size_t axis, const Dim& total, Odd odd);

/// The extents of x behind batch and channels. Throws kShape when x has not rank + 2 axes.
Shape spatial_extents(const ImportNode& node, const Shape& shape, std::size_t rank);

}  // namespace hone::onnx
