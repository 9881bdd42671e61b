// Random numbers of a graph: each node that draws some has a stream of its own, named by kSeed and kStream.
#pragma once

#include "ir/builder.h"

namespace hone {

/// A stream that no node of the graph draws from yet.
std::int64_t next_stream(const Graph& graph);

/// Uniform in [0, 1), or normal with mean 0 and deviation 1.
Val random_uniform(Builder& builder, Shape shape, DType dtype, std::int64_t seed);
Val random_normal(Builder& builder, Shape shape, DType dtype, std::int64_t seed);

}  // namespace hone
