// Cheap values are worked out again in the backward pass rather than kept for it: a few operations on what is in memory anyway cost less than a tensor that is
// written in the forward pass, lies in memory meanwhile and is read again. The same holds within the backward pass, where an elementwise kernel waits for the sums of
// another one and reads once more what that one summed.
#pragma once

#include "backends/fuse.h"
#include "passes/choice.h"
#include "passes/pipeline.h"

namespace hone {

/// The groups of an entry, or of a loop's body. Where a value would be written for readers in the backward pass alone, or for elementwise kernels of it, and
/// cost_model.h finds it cheap, those readers get copies of the nodes that make it, and what that gives is fused again. Depends on the graph alone; without the
/// pass "fuse" nothing is joined.
Fusion fuse_and_recompute(const Graph& graph, const PassChoice& passes, Exchange exchange = Exchange::kNone, const Parallelism& parallelism = {});

}  // namespace hone
