// What a pass may ask of a target. Backends implement it; passes know no backend.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace hone {

/// The library row that does what a node means, or the reason why there is none.
struct RowChoice {
  std::string row;     ///< "" none: the node becomes a generated kernel
  std::string reason;  ///< why not, for --why
};

class Target {
 public:
  virtual ~Target() = default;
  virtual std::string_view name() const = 0;
  /// Depends on the graph alone, so that nodes that must agree (pooling and its gradient) do.
  virtual RowChoice choose_row(const Graph& graph, NodeId node) const = 0;
  /// Does a library product of narrow operands give the sum in f32, too? Then a bias is added to that.
  virtual bool gives_wide_sums(const OpDef& product) const { return (void)product, true; }
  /// Does it work in memory of its own, so that what host functions read and write must be copied?
  virtual bool has_own_memory() const { return false; }
};

}  // namespace hone
