// Names of inputs that passes add.
#pragma once

#include <string>

#include "base/diag.h"
#include "base/text.h"
#include "ir/graph.h"

namespace hone {

/// `name`, or with as many underscores behind it as it takes to be no input's name.
inline std::string unused_name(const Graph& graph, std::string name) {
  while (graph.find_input(name) != nullptr) name += "_";
  return name;
}

/// `name`, by which the trainer finds what `is_what` says. Throws where an input of the model is called so.
inline std::string known_name(const Graph& graph, std::string name, std::string_view is_what) {
  if (graph.find_input(name) == nullptr) return name;
  throw Error(Code::kRecipeModel, "the model has an input or a weight " + quoted(name) + ", which is what " + std::string(is_what) + " would be called", {}, {"give it another name in the model"});
}

}  // namespace hone
