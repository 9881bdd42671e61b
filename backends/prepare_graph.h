// What passes make of a graph between its entry (passes/pipeline.h) and its schedule: their order, and which of them may be left out.
#pragma once

#include <vector>

#include "base/recipe.h"
#include "ir/graph.h"
#include "passes/choice.h"
#include "passes/frozen_precision.h"
#include "passes/pass_log.h"
#include "passes/target.h"

namespace hone {

/// `graph`: with its `lower` ops expanded. Then it is optimized, computes in the recipe's precision and has its layouts and library rows: for fuse_and_recompute(). `narrowed`: weights that
/// are kept in other types than they are read in. `log`, if given, hears what became of a node.
void prepare_graph(Graph& graph, const Target& target, const Recipe& recipe, const PassChoice& passes, const std::vector<NarrowedWeight>& narrowed = {}, PassLog* log = nullptr);

}  // namespace hone
