// A graph as a Graphviz picture.
#pragma once

#include <string>

#include "ir/graph.h"

namespace hone {

/// DOT text: one box a node in the colour of its part, weights and states as small boxes, edges labelled with types. Names are escaped.
std::string to_dot(const Graph& graph);

}  // namespace hone
