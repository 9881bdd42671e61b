// The loops of a kernel over tiles of points (backends/llvm/blocking.h).
#pragma once

#include "backends/llvm/blocking.h"
#include "backends/llvm/point.h"

namespace hone {

/// The code of a call for [begin, end): that share of the tiles. A tile is the work of one call, whose range need not hold all its points.
void emit_blocks(const Kernel& kernel, const Nest& nest, const Blocking& blocking, Point& point);

}  // namespace hone
