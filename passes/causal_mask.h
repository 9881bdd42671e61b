// Which masks are causal, whatever the sizes are.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace hone {

/// A matrix of two numbers.
struct Triangles {
  double lower = 0;  ///< where the column is at most the row
  double upper = 0;  ///< elsewhere
};
/// `mask` as such, over its last two axes, for all sizes that it may have; nothing where that does not follow from positions, comparisons and constants.
std::optional<Triangles> triangles_of(const Graph& graph, ValueId mask);

}  // namespace hone
