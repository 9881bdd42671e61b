// A graph as a Graphviz picture.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace hone {

inline constexpr std::string_view kPartColours[] = {"#dbeafe", "#fde68a", "#fbcfe8", "#ddd6fe", "#bbf7d0"};  ///< by Part

/// DOT text: one box a node in the colour of its part, weights and states as small boxes, edges labelled with types. Names are escaped.
std::string to_dot(const Graph& graph);

}  // namespace hone
