// Where a kernel of the emitter (backends/llvm) is as fast as oneDNN's or faster, though a library row would fit.
#pragma once

#include <string>

#include "ir/graph.h"

namespace hone {

/// Why the matmul, convolution or gradient of one is better a kernel of our own; "" where it is not, or nobody has measured. The batch is not known: it is
/// taken to be a few dozen. Borders are those of benchmarks/kernels on one core with AVX-512; what fusion gains comes on top.
std::string better_as_kernel(const Graph& graph, const Node& node);

/// In how many parts, over the samples, a kernel of our own sums a convolution's weight gradient; 1 for all other nodes.
std::int64_t parts_of_own_gradient(const Graph& graph, NodeId node);

}  // namespace hone
