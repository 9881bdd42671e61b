// Kernels over tensors in panels (runtime/plan/panels.h).
#pragma once

#include <optional>
#include <vector>

#include "ir/kernel/kernel.h"
#include "runtime/plan/panels.h"

namespace hone {

/// The kernel with `buffers`, all of shape `shape`, in panels: each axis that walks the panels' one becomes two. Nothing if a computed index walks it, or if the
/// kernel scatters.
std::optional<Kernel> over_panels(const Kernel& kernel, const std::vector<std::uint32_t>& buffers, const Shape& shape, const plan::Panels& panels);

/// The panels that a product of the kernel would read the buffer in: along the last axis that the columns walk, where another is summed over. Nothing if there is no
/// such product, or the tensor is small, of another type than f32, or not a multiple of a panel.
std::optional<plan::Panels> panels_for(const Kernel& kernel, std::uint32_t buffer);

/// Copies a tensor of shape `shape` (its first buffer) into panels (its second).
Kernel copy_into_panels(const Shape& shape, const plan::Panels& panels);

}  // namespace hone
