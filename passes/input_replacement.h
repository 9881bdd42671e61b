// A graph once more, with some of its inputs made in another way.
#pragma once

#include <map>

#include "ir/builder.h"

namespace hone {

/// For a graph as imported, perhaps with adapters: it has no aliases yet.
class InputReplacement {
 public:
  /// `graph` must outlive it.
  explicit InputReplacement(const Graph& graph) : graph_(graph), builder_(made_) { made_.name = graph.name; }
  virtual ~InputReplacement() = default;

 protected:
  /// What readers of `input` read from now on, made with builder_; invalid: the input as it is.
  virtual Val replacement(const Input& input) = 0;
  /// Inputs, then the same nodes.
  Graph replaced();

  const Graph& graph_;
  Graph made_;
  Builder builder_;

 private:
  Val copied(const Input& input);
};

}  // namespace hone
