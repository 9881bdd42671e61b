// Cheap values are worked out again in the backward pass rather than kept for it: a few operations on what is in memory anyway cost less than a tensor that is
// written in the forward pass, lies in memory meanwhile and is read again. The same holds within the backward pass, where an elementwise kernel waits for the sums of
// another one and reads once more what that one summed.
#pragma once

#include "backends/fuse.h"

namespace hone {

/// `fusion` is that of `graph`. Where a value would be written for readers in the backward pass alone, or for elementwise kernels of it, and cost_model.h finds it
/// cheap, those readers get copies of the nodes that make it. The graph must be fused again if that changed something.
bool recompute_cheap_values(const Fusion& fusion, Graph& graph);

}  // namespace hone
