// How much a node does: what a pass asks before it moves, keeps or repeats one.
#pragma once

#include "ir/graph.h"

namespace hone {

enum class Work : std::uint8_t {
  kLittle,     ///< moves elements, or does a few instructions for each
  kFunctions,  ///< exp, tanh, random numbers: tens of instructions for each element
  kReduction,  ///< each element is a sum over many of one operand
  kProduct,    ///< each element is a sum over many of several operands, as in matrix products: the more rows at once, the faster each
  kUnknown,    ///< control flow, host functions, what is still to be expanded
};
Work work_of(const Graph& graph, NodeId node);

}  // namespace hone
