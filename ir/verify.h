// What holds for every graph between two passes:
//   V1  ids: every operand, result, input, output and alias is a value of the graph; each value is one input or one result of one node
//   V2  order: operands are inputs or results of earlier nodes
//   V3  operands: the required ones are there, of "x..." at least one, and no more than the op takes
//   V4  attributes: those the op may carry (`row` on any op), of the kind of their key
//   V5  result types are what the op's infer gives again
//   V6  data of an input have its element type and shape; bounds stand on integer inputs only
//   V7  names: inputs that are fed have one, no two inputs and no two outputs have the same
//   V8  aliases: the state is an input of role weight or state, replaced once, by a value of the same type
//   V9  parts: no node reads a result of a later part (forward, loss, backward, all_reduce, update)
//   V10 known contents are those of an integer or bool tensor of that many elements
//   V11 bodies: region ops only; each is a valid graph, nested at most 16 deep
//   V12 size: at most limits::kNodes nodes, limits::kRank axes
#pragma once

#include <optional>
#include <string>

#include "ir/graph.h"

namespace hone {

/// Throws kInvalidGraph: the first invariant that does not hold, the node, and ten lines of text around it.
void verify(const Graph& graph);

/// What is wrong with the number of operands (V3) or with the attributes (V4) of a node, in words; nullopt if nothing is.
std::optional<std::string> operands_problem(const OpDef& op, std::span<const ValueId> operands);
std::optional<std::string> attributes_problem(const OpDef& op, const Attrs& attrs);

/// The attribute named `name` that `op` may carry, or nullptr.
const AttrSpec* find_attribute(const OpDef& op, std::string_view name);

}  // namespace hone
