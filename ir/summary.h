// A model as a table, as Keras's model.summary() shows it.
#pragma once

#include <string>

#include "ir/graph.h"

namespace hone {

/// One row a node: name and op, output shape (symbols as None, as a Keras user expects), parameters; then the totals. Parameters are counted where they are
/// first read; running statistics of batch normalizations are not trainable.
std::string model_summary(const Graph& graph);

}  // namespace hone
