// The nodes of an ONNX graph or function in an order in which they can be built, and what is wrong with how they are connected.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/diag.h"
#include "frontend/onnx/body.h"

namespace hone::onnx {

/// What to do about two values of one name.
inline constexpr const char* kRenameValues = "names of values are unique in a graph: export the model again";

/// Where nodes are: the node's name (its first result's, if it has none or shares it) and the layer that the exporter left in its metadata or name.
class Locations {
 public:
  Locations(const NodeList& nodes, std::string file);
  Loc of(const NodeProto& node) const;
  /// The file alone.
  Loc file() const { return Loc{.file = file_}; }

 private:
  std::string file_;
  std::map<std::string, int> uses_;  ///< of node names
};

/// Whose names can be read besides those that a body makes itself.
enum class Outside : std::uint8_t {
  kNothing,     ///< a model's graph, or a function: a name that nothing in it makes is an error
  kOuterNames,  ///< a node's body reads what is around it; there it is checked
  kReplaced,    ///< a part of a graph with other values for some of its own, which are the inputs; the rest is around it
};

/// Positions of the nodes that the body's outputs depend on, operands first, in the file's order where that is such an order. What a node's own bodies read
/// counts as an operand of the node. Reports names that are given twice, values that nothing produces, and cycles; nodes on a cycle and behind it are left out.
std::vector<int> build_order(const Body& body, Outside outside, const Locations& locations, Diags& diags);

}  // namespace hone::onnx
