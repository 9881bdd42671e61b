// Reverse-mode differentiation: one walk backwards over a graph, each op's gradient formula appended as ordinary nodes.
#pragma once

#include <span>
#include <vector>

#include "ir/builder.h"

namespace hone {

/// The gradient that `gradient` holds flows into `of`.
struct Seed {
  ValueId of, gradient;
};

/// Appends the backward pass of everything that is in the graph: for each of `wrt` the sum over the seeds of gradient * d(of)/d(wrt); an invalid id where nothing
/// arrives. `lower` ops must be expanded (expand_for_gradients). Throws Error kNoGradient for an op on the way that has neither a formula nor a reason to stop the gradient.
std::vector<ValueId> differentiate(Builder& builder, std::span<const Seed> seeds, std::span<const ValueId> wrt);

/// d(sum over `of`)/d(wrt).
std::vector<ValueId> differentiate(Graph& graph, ValueId of, std::span<const ValueId> wrt);

}  // namespace hone
