// The one place that decides what is cheaper: one kernel or two, a value kept or worked out again. Reasons are sentences, which --why prints.
#pragma once

#include <span>
#include <string>

#include "ir/kernel/fused.h"
#include "passes/target.h"

namespace hone {

/// Why these members should not be one kernel though they could be; empty: they should.
std::string why_not_worth_fusing(NodeKernels& kernels, std::span<const NodeId> members, const FusedKernel& fused, const Parallelism& parallelism);

/// Where sizes are not known, they are taken to be 64.
std::int64_t expected_size(const Dim& size);

/// Does the node multiply and sum: a matrix product, a convolution?
bool is_product(NodeKernels& kernels, NodeId node);

/// Of a reduction of a tensor of this shape over `axes` (sorted): how many of them, from the outermost on, should be left to a second reduction, so that there is
/// enough to share. 0: one reduction does.
std::size_t axes_worth_leaving(const Shape& shape, const Ints& axes, const Parallelism& parallelism);

/// In additions, for vectors of f32; what goes to libm is out of proportion.
int cost_of(ScalarOp op);

/// Operations of a node of meaning `scalar` for one element, where 1 is an addition.
int cost_of(const Graph& graph, NodeId node);

/// As many operations on an element cost what it costs to write it, keep it and read it again: measured with an error function, which takes no longer than
/// that, and a sixth of a transformer's activations less.
inline constexpr int kMostRecomputation = 20;

/// Is a tensor of `few` elements as good as nothing beside one of `many`?
bool is_much_less(Dim few, Dim many);

}  // namespace hone
