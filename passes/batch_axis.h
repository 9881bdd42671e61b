// How a node of a loop's body is computed for all iterations at once: each op's way of getting an axis in front.
#pragma once

#include <vector>

#include "ir/builder.h"

namespace hone {

/// A value of a loop's body, outside of the loop.
struct Lifted {
  Val value;
  bool stacked = false;  ///< one slice an iteration, along a new axis 0; else the same in all iterations
};

/// Is there a way for `node`, whose operands are stacked or not?
bool can_lift(const Node& node, const std::vector<bool>& stacked);
/// The node's results for all of `trips` iterations, of which there may be none; stacked if any operand is. can_lift() must hold. `body` is the node's graph.
std::vector<Lifted> lift(Builder& builder, const Graph& body, const Node& node, const std::vector<Lifted>& operands, Dim trips);
/// The value as one slice an iteration.
Val stacked(const Lifted& lifted, Dim trips);

}  // namespace hone
