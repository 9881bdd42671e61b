// Attention as one node, and its gradient as another, for targets whose library does each in one call.
#pragma once

#include <string>
#include <vector>

#include "base/recipe.h"
#include "ir/rewriter.h"
#include "passes/target.h"

namespace hone {

/// Products with a softmax between them become fused_attention where the target has a row for what they are (Target::why_no_attention) and nobody else reads scores or weights: scaled, with a mask that no weight
/// is trained through, added or chosen, which is causal where that follows from its form (passes/causal_mask.h); and `attention` of the model's own. Rows are for operands of train.precision, so with f32 there is
/// nothing to do. For a graph that is to be differentiated, so that the gradient is that of the one node; expand_unclaimed() comes behind. A line for each softmax of four axes: what became of it, and why.
std::vector<std::string> fuse_attention(Graph& graph, const Recipe& recipe, const Target& target);

}  // namespace hone
