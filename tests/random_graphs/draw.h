// Random graphs over the op table: every op with a case of its own (tests/ops) comes up, joined with others by index maps, elementwise chains, reductions and
// matrix products; and every second graph is a training step, with gradients, optimizer states and updates.
#pragma once

#include <cstdint>
#include <string>

#include "base/dims.h"
#include "ir/kernel/interpret.h"

namespace hone::test {

struct DrawnGraph {
  std::uint64_t seed = 0;
  Graph graph;  ///< `lower` ops not expanded; all sizes told by the shapes of inputs
  Feeds feeds;  ///< for the sizes drawn_sizes(), where all floats are finite and not huge
};

/// Equal seeds give equal graphs. Inputs are called "s<seed>.<name>".
DrawnGraph draw_graph(std::uint64_t seed);
const DimBindings& drawn_sizes();

/// Data for other sizes, in the range of those for drawn_sizes().
Feeds feeds_for(const DrawnGraph& drawn, const DimBindings& sizes);

}  // namespace hone::test
