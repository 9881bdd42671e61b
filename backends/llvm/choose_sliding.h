// Which contractions are done by tiles along which a factor slides, and by which tiles.
#pragma once

#include <optional>

#include "backends/llvm/blocking.h"

namespace hone {

/// For a kernel that is one contraction with stores behind it. Nothing if no factor slides, if extents other than those of fixed axes are not known, or if the tiles would leave much of
/// the vectors empty.
std::optional<Blocking> choose_sliding(const Kernel& kernel, const Nest& nest, const VectorUnit& unit);

}  // namespace hone
