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
/// Are the last two axes, of which there are two, of the same extents?
bool have_equal_matrices(const Shape& a, const Shape& b);
/// `mask` as such, over its last two axes, for all sizes that it may have; nothing where that does not follow from positions, comparisons and constants.
std::optional<Triangles> triangles_of(const Graph& graph, ValueId mask);

}  // namespace hone
