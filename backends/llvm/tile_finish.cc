#include "backends/llvm/tile_finish.h"

#include <bit>

namespace hone {

using llvm::Value;

void TileFinish::rows(Value* first_row, const NumberRange& range, LoopTraits traits, const TileSide& columns, const std::vector<Value*>& sums) {
  PointGrid grid = blocking_.dots ? dots_as_lanes(columns) : columns.left == nullptr ? as_one_vector(columns) : along_columns(columns);
  grid.row_axis = *blocking_.rows;
  const std::int64_t vectors = blocking_.dots ? 1 : columns.count;  // of a row's sums
  loops_.loop(range.first, range.last, traits, [&](Value* row) {
    grid.rows = {ir_.CreateNSWAdd(first_row, row)};
    point_.set_grid(grid);
    for (std::size_t t = 0; t < sums.size(); ++t) {
      std::vector<Value*>& variables = point_.temp(static_cast<std::uint32_t>(t)).cells;
      variables.clear();
      for (std::size_t i = 0; i < grid.columns.size(); ++i) {
        Value* at = ir_.CreateNSWAdd(ir_.CreateNSWMul(row, number(vectors)), number(static_cast<std::int64_t>(i)));
        variables.push_back(ir_.CreateInBoundsGEP(blocking_.dots ? point_.cell_type(DType::kF32) : vector_type(), sums[t], at));
      }
    }
    for (std::size_t p = 1; p < kernel_.phases.size(); ++p) {
      code_.start(p);
      code_.run(p, PhaseCode::Order::kAsWritten);
    }
  });
}

/// A row's columns as one vector, which LLVM takes apart, operation by operation: roots, quotients and functions of several registers are then worked out side by side.
PointGrid TileFinish::as_one_vector(const TileSide& columns) {
  PointGrid grid = along_columns({columns.first, 1, nullptr});
  grid.lanes *= static_cast<std::uint32_t>(columns.count);
  return grid;
}

/// The columns of dot products as the lanes of one vector.
PointGrid TileFinish::dots_as_lanes(const TileSide& columns) {
  const auto lanes = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(columns.count)));
  PointGrid grid;
  grid.column_axis = blocking_.columns;
  grid.columns = {columns.first};
  if (lanes == 1) return grid;
  grid.lane_axis = blocking_.columns;
  grid.lanes = static_cast<std::uint32_t>(lanes);
  grid.masks = {lanes_below(columns.left == nullptr ? number(columns.count) : columns.left, lanes)};
  return grid;
}

}  // namespace hone
