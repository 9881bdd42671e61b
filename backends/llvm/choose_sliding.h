// Which contractions are done by tiles along which a factor slides, and by which tiles.
#pragma once

#include <optional>

#include "backends/llvm/blocking.h"

namespace hone {

/// For a kernel that is one contraction with stores behind it. Nothing if no factor slides, if extents other than those of fixed axes are not known, or if tiles for AVX-512 would do far less than
/// its multiply-adds could: whether a kernel has them is the same for all units, because a plan chooses between library and kernel once, for all processors.
std::optional<Blocking> choose_sliding(const Kernel& kernel, const Nest& nest, const VectorUnit& unit);

}  // namespace hone
