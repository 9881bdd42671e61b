// One kernel for several elementwise nodes over the same index space.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/kernel/kernel.h"

namespace hone {

struct ElementwiseKernel {
  Kernel kernel;
  std::vector<ValueId> buffers;  ///< what each of the kernel's buffers holds: values read from outside, then those stored
};

/// `members` are nodes of meaning `scalar` in graph order whose results all have one shape; what one of them makes for another stays in registers. `stored` are the
/// results that are written to memory.
ElementwiseKernel elementwise_kernel(const Graph& graph, std::span<const NodeId> members, std::span<const ValueId> stored);

}  // namespace hone
