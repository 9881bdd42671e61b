// Panels: how a matrix that is always read a few columns at a time lies in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dims.h"
#include "base/tensor.h"

namespace hone::plan {

/// One axis of a tensor is cut into pieces of `width`, which divides it, and these become the outermost and the innermost axis: [784,256] with axis 1 and width 32
/// lies as [8,784,32]. A tile of a product then reads its columns without a stride, and threads that share columns out share no memory.
struct Panels {
  std::uint32_t axis = 0;
  std::int64_t width = 0;

  friend bool operator==(const Panels&, const Panels&) = default;
};

/// The shape in which a tensor of shape `shape` lies. The axis exists, and its extent is known and a multiple of the width.
Shape panel_shape(const Shape& shape, const Panels& panels);

/// Lays a tensor's elements out in panels at `to`, which has room for all of them.
void copy_to_panels(const Tensor& tensor, const Panels& panels, std::byte* to);
/// The tensor of type `dtype` and shape `shape` that lies in panels at `from`.
Tensor from_panels(const std::byte* from, DType dtype, const std::vector<std::int64_t>& shape, const Panels& panels);

}  // namespace hone::plan
