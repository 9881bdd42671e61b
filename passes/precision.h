// Mixed precision: products of many terms read narrow operands (bf16 or f16), and what the backward pass keeps of them is narrow, too. Everything else stays in f32:
// weights and moments, sums, norms, softmax, the loss, updates. The table of what runs in which type, and why, is in passes/precision.cc.
#pragma once

#include <string>
#include <vector>

#include "base/recipe.h"
#include "ir/rewriter.h"
#include "passes/target.h"

namespace hone {

/// Matrix products and convolutions of f32 operands become products of operands of train.precision, rounded by `cast` nodes; nodes that train.keep_f32 names, and what
/// was derived from them, stay. Inputs, outputs, aliases and the bodies' signatures keep their types. For a graph that is differentiated, updated and simplified: before
/// layouts and library rows are chosen. With precision tf32 nothing is rounded in the graph: these products get the attribute tf32. With precision f32 the
/// graph is untouched. `target`: whose libraries will compute it; null: one whose products give f32 wherever that is better.
Changed lower_precision(Graph& graph, const Recipe& recipe, const Target* target = nullptr);

/// Throws Error kRecipeModel for a pattern of train.keep_f32 that is no node's of the imported graph, with the nearest name.
void check_keep_f32(const Graph& imported, const Recipe& recipe);
/// Throws Error kRecipeModel, with the reasons, where train.precision is narrow and no product of the entry became so.
void require_narrow(const Graph& lowered, const Recipe& recipe);

/// The names of the nodes, gradients' included, whose products run narrow in a lowered graph, in its order; those without a name are left out.
std::vector<std::string> narrow_nodes(const Graph& lowered, const Recipe& recipe);

/// A line for each product of a lowered graph, its bodies' included: in what it runs and why; then one for each kind of other nodes. Empty with precision f32.
std::vector<std::string> explain_precision(const Graph& lowered, const Recipe& recipe);

}  // namespace hone
