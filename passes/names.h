// Names of inputs that passes add.
#pragma once

#include <string>

#include "ir/graph.h"

namespace hone {

/// `name`, or with as many underscores behind it as it takes to be no input's name.
inline std::string unused_name(const Graph& graph, std::string name) {
  while (graph.find_input(name) != nullptr) name += "_";
  return name;
}

}  // namespace hone
