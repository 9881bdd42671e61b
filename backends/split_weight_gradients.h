// Gradients of convolutions' weights as the sums over parts of the samples.
#pragma once

#include "ir/rewriter.h"
#include "passes/pass_log.h"
#include "passes/target.h"

namespace hone {

/// A weight's gradient reads all of two activations. Where the target wants it in parts (Target::parts_of_weight_gradient), each is the sum over a range of samples, which one thread
/// has made and finds in its own cache, and the parts are added up where the gradient is used. Parts depend on the graph alone, so results do not depend on the number of threads.
/// `log`, if given, is told of each.
Changed split_weight_gradients(Graph& graph, const Target& target, PassLog* log = nullptr);

}  // namespace hone
