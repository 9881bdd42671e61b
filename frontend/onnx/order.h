// The nodes of an ONNX graph in an order in which they can be built, and what is wrong with how they are connected.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/diag.h"
#include "formats/onnx.pb.h"

namespace hone::onnx {

/// Where nodes are: the node's name (its first result's, if it has none or shares it) and the layer that the exporter left in its metadata or name.
class Locations {
 public:
  Locations(const GraphProto& graph, std::string file);
  Loc of(const NodeProto& node) const;
  /// The file alone.
  Loc file() const { return Loc{.file = file_}; }

 private:
  std::string file_;
  std::map<std::string, int> uses_;  ///< of node names
};

/// Positions of the nodes that the graph's outputs depend on, operands first, in the file's order where that is such an order. Reports names that
/// are given twice, values that nothing produces, and cycles; nodes on a cycle and behind it are left out.
std::vector<int> build_order(const GraphProto& graph, const Locations& locations, Diags& diags);

}  // namespace hone::onnx
