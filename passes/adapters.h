// Low-rank adapters (Hu et al. 2021, LoRA): a matrix stays as it is, and W + alpha / rank * B A stands in its place, where A and B are trained.
#pragma once

#include <string>
#include <vector>

#include "base/recipe.h"
#include "ir/graph.h"
#include "passes/frozen_precision.h"

namespace hone {

/// Behind a matrix's name: the names of A and B.
inline constexpr const char *kAdapterA = ".lora_A", *kAdapterB = ".lora_B";

/// One matrix's adapter. A is f32[rank, inputs], B is f32[outputs, rank] (f64 for an f64 matrix); they are inputs of the graph of role weight. A convolution's weight [outputs, inputs, window..]
/// is a matrix, too, [outputs, inputs * window]: its A is [rank, inputs, window..], and B [outputs, rank, 1..], as PEFT has them.
struct Adapter {
  std::string weight;  ///< the matrix, which stays as it is
  std::string a, b;
  std::string exported_a, exported_b;  ///< what the two are called in files of adapters alone, as PEFT calls them: "base_model.model.fc1.lora_A.weight"
  bool of_convolution = false;
  bool outputs_first = false;  ///< the matrix is [outputs, inputs], as PyTorch keeps those of its linear layers; else [inputs, outputs]
  double scale = 1;  ///< alpha / rank
};

/// The matrices that lora.targets names, each once, in the order of the graph's inputs. A pattern means a weight by its name, or by a node that reads it (also through
/// Transpose and Cast): the node's name, the same with dots for slashes, or its layer. Of what it matches it takes the matrices that products read; a matrix that
/// is only looked up in (an embedding) must be named whole. Of weights of higher rank it takes those that convolutions of one group read, and nothing else.
/// Throws Error kRecipeModel for a pattern that takes nothing, a rank larger than a matrix, and a matrix that model.train_only or model.freeze names, too.
std::vector<Adapter> choose_adapters(const Graph& imported, const Recipe& recipe);

/// A model with its adapters.
struct Adapted {
  Graph graph;
  Recipe recipe;  ///< whose model.train_only names what is trained then: the adapters, and what it named before
  std::vector<Adapter> adapters;
  std::vector<NarrowedWeight> narrowed = {};  ///< of `graph`, once narrow_frozen_weights() was done to it
};
/// Without lora.targets the model as it is. A begins as PyTorch's kaiming_uniform(a = sqrt(5)) draws it, from the recipe's seed; B begins as zeros, so that training
/// begins with the model as it is. `imported` must be as imported: nodes are found by name.
/// A product x W becomes x W + (x A' * scale) B', a convolution x * W becomes x * W + (x * A * scale) * B: W's gradient, which would be the largest product of the three, is never wanted, nor is a second tensor of W's size. A table that is
/// looked up in becomes a lookup in the factor that has its rows. Whoever else reads the matrix reads it with the product added.
/// Throws what choose_adapters() throws.
Adapted with_adapters(const Graph& imported, const Recipe& recipe);

/// The graph whose outputs are the adapters' matrices as they are to be without adapters, each called as its weight is.
Graph build_merged_weights(const Adapted& adapted);

}  // namespace hone
