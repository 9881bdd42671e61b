// The layers of a model, as Keras's model.summary() counts them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace hone {

/// Of what a node belongs to: Loc::node, or where it has no such name, its result's.
std::string layer_of(const Graph& graph, const Node& node);

/// A node of the model, with all that import made of it.
struct Layer {
  std::string node;                ///< layer_of; of an input its name
  std::vector<std::string> ops;    ///< each once; of an input none
  Type type;                       ///< of its last result
  std::int64_t parameters = 0;     ///< counted where they are first read, running statistics included
};

struct Layers {
  std::vector<Layer> list;  ///< inputs first, then in the graph's order; shape arithmetic is left out
  std::int64_t trainable = 0, fixed = 0;  ///< parameters; running statistics of batch normalizations are fixed
};
Layers layers_of(const Graph& graph);

}  // namespace hone
