// Reductions to few results, each of many elements, as two: first parts, which threads share, then the parts.
#pragma once

#include "ir/rewriter.h"
#include "passes/pass_log.h"
#include "passes/target.h"

namespace hone {

/// A sum or an extremum over several axes that leaves too few results to share becomes one over the inner of these axes, part by part, and one over the parts.
/// Parts follow from extents alone, so results do not depend on the number of threads. (x - m)^2, where m is x's mean, is summed around the part's own mean, which
/// need not wait for all others; what that leaves out depends on the part alone. axes_worth_leaving (backends/cost_model.h) decides.
/// `log`, if given, is told of each.
Changed split_reductions(Graph& graph, const Parallelism& parallelism = {}, PassLog* log = nullptr);

}  // namespace hone
