// Which cell the body of a loop is, by what it computes, whoever wrote it.
#pragma once

#include <optional>
#include <vector>

#include "base/recurrent_cell.h"
#include "passes/loops.h"

namespace hone {

/// Of a tensor of the graph around the loop, elements of the last axis from `first` on, as many as there are hidden features.
struct ColumnsOf {
  ValueId tensor;
  Dim first;
};
/// `columns` of `graph`, of which tensor they are before slices took them out.
ColumnsOf unsliced(const Graph& graph, ColumnsOf columns);

/// A step as a cell.
struct RecurrentStep {
  struct Gate {
    Dim of_slice;                   ///< the first of its columns of the loop's slice, which is added as it is
    ColumnsOf weight;               ///< [hidden, ..], which h is multiplied by
    std::optional<ColumnsOf> bias;  ///< [..], of that product
  };
  RecurrentCell cell = RecurrentCell::kTanh;
  Dim hidden;
  std::vector<Gate> gates;  ///< in the cell's order
};

/// Of a loop over one tensor's slices [samples, columns] whose states are h, and c, [samples, hidden]; nothing where its step is no cell. The gates may lie in any order, sums and products have their operands in any,
/// and gates may be cut out of products before or behind their activation; a GRU must reset what h has been multiplied to.
std::optional<RecurrentStep> recurrent_step(const LoopView& loop);

}  // namespace hone
