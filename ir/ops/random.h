// Random numbers of a graph: each node that draws some has a stream of its own, named by kSeed and kStream. A loop or branch has a stream, too, of which the nodes
// in its body know when they are given their keys (passes/key_random.cc); loops that are one to the user (while_trips and its scan) share it.
#pragma once

#include "ir/builder.h"

namespace hone {

/// Does the op draw random numbers? Then it has the attributes kSeed and kStream, and operands `step?` and, behind it, `first?`.
bool draws(const OpDef& op);
/// Which operand of an op that draws is `step?`.
std::size_t step_operand(const OpDef& op);

/// A stream that no node of the graph draws from yet.
std::int64_t next_stream(const Graph& graph);

/// Uniform in [0, 1), or normal with mean 0 and deviation 1.
Val random_uniform(Builder& builder, Shape shape, DType dtype, std::int64_t seed);
Val random_normal(Builder& builder, Shape shape, DType dtype, std::int64_t seed);

}  // namespace hone
