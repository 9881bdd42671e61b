// Recurrent layers as one node, and their gradients as another, for targets whose library does each in one call.
#pragma once

#include <string>
#include <vector>

#include "base/recipe.h"
#include "ir/rewriter.h"
#include "passes/target.h"

namespace hone {

/// Loops whose step is a cell (passes/recurrent_step.h) over products x W, perhaps with a bias, become `recurrent` where the target has a row for what they are (Target::why_no_recurrence) and nobody asks for more than
/// the hidden states and the last of each state. Here, and not when a model is imported, because adapters, dropout and the recipe's names are about the products and the loop: without a row nothing changes. The node
/// stays f32; with any other train.precision than f32 its products may be TF32, which has more digits than what that asks for, as the states would have to be narrow, too. For a graph that is to be differentiated, as
/// with fuse_attention(). A line for each loop: what became of it, and why.
std::vector<std::string> fuse_recurrences(Graph& graph, const Recipe& recipe, const Target& target);

}  // namespace hone
