// Weights that nothing trains take no update's precision, so they can be kept in less memory (model.frozen_precision): as bf16, or as int8 with a scale for each output channel.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/recipe.h"
#include "ir/rewriter.h"

namespace hone {

/// A weight that is kept in less than its own type, or, as a master, in more (passes/master_weights.h).
struct NarrowedWeight {
  std::string name;
  DType outside = DType::kF32;  ///< what the model has it in
  DType kept = DType::kF32;
  std::string scales;           ///< of int8: the name of the weight that holds them, f32[extent of the axis]
  std::uint32_t axis = 0;       ///< of the output channels
};

/// Does the recipe ask for it?
bool narrows_frozen_weights(const Recipe& recipe);

/// The weights of `graph` that are not named in `trained`, of f32 and rank 2 or more, become inputs of the kept type and the same name; who reads them reads them widened. As int8 only those that a
/// matrix product, a convolution or a lookup reads, since only their output channels are known. `graph` must be as imported, perhaps with adapters: it has no aliases yet.
/// Throws Error kRecipeModel where there is no such weight, and for one with elements that are not finite.
std::vector<NarrowedWeight> narrow_frozen_weights(Graph& graph, const Recipe& recipe, std::span<const std::string> trained);

/// The input `name` of a graph as a weight of its own type: widened, if it is among `narrowed`.
Val widened_weight(Builder& builder, const std::string& name, std::span<const NarrowedWeight> narrowed);

/// Whoever reads a weight that is kept in less gets it widened by nodes of its own, so that no wide copy lives from the forward pass to the backward one. For a graph in which equal nodes are merged no more.
Changed widen_where_read(Graph& graph, std::span<const NarrowedWeight> narrowed);

}  // namespace hone
