#include "backends/llvm/tile_order.h"

#include <algorithm>

namespace hone {

using llvm::Value;

void TileOrder::begin() {
  column_blocks_ = block_count(blocking_.columns, blocking_.width(), column_tail_width());
  row_blocks_ = blocking_.rows ? block_count(*blocking_.rows, blocking_.row_count, blocking_.row_count) : number(1);
  // Panels of equal height, an even number of them: their halves are a call's share on two threads, which is also what it reads and writes of rows elsewhere.
  Value* fewest = ceil_div(row_blocks_, number(blocking_.panel_rows));
  Value* even = ir_.CreateAnd(ir_.CreateNSWAdd(fewest, number(1)), number(-2));
  Value* is_parted = ir_.CreateICmpSGT(fewest, number(1));
  if (blocking_.matrices) is_parted = ir_.CreateOr(is_parted, ir_.CreateICmpSGT(extent(*blocking_.rows), all_columns()));  // threads that share columns out pack all rows, each for itself
  Value* wanted = ir_.CreateSelect(is_parted, even, number(1));
  panel_rows_ = kernel_.repeats ? rows_of_share() : ceil_div(row_blocks_, wanted);
  row_panels_ = ceil_div(row_blocks_, panel_height());
  panels_beside_ = times_points(column_blocks_, blocking_.beside);
  if (blocking_.rows) columns_first_ = blocking_.sum_block > 0 or kernel_.repeats ? ir_.getFalse() : are_columns_first();  // panels whose sums wait together have the same rows
}

Value* TileOrder::tile_count() {
  return times_points(ir_.CreateNUWMul(panel_rows_, ir_.CreateNUWMul(panels_beside_, row_panels_)), axes_apart());
}

/// Of a panel whose rows one thread has: a tile, or, where each panel packs what its columns need, half of all.
Value* TileOrder::rows_of_share() { return blocking_.packed.valid() ? ceil_div(row_blocks_, number(2)) : number(1); }

/// Are all rows done before the next columns? Then threads share columns out, and each reads all rows' factors, which must stay in its cache. So for the
/// fewer rows; and where their number is known and so an axis of a weight's, because a weight then has one owner in all kernels.
Value* TileOrder::are_columns_first() {
  Value* is_kept = ir_.CreateICmpULE(ir_.CreateNUWMul(extent(*blocking_.rows), all_points().to), number(blocking_.kept_points));
  Value* is_better = is_constant(*blocking_.rows) ? ir_.getTrue() : ir_.CreateICmpULE(extent(*blocking_.rows), all_columns());
  return ir_.CreateAnd(is_kept, is_better);
}

/// Outer axes that have rows' and columns' factors of their own.
std::vector<std::uint32_t> TileOrder::axes_apart() const {
  std::vector<std::uint32_t> axes = nest_.outer;
  std::erase_if(axes, [&](std::uint32_t axis) { return axis == blocking_.columns or axis == blocking_.rows or std::ranges::count(blocking_.beside, axis) > 0; });
  return axes;
}

/// Columns of a block behind the last full one, where the extent is not known: they are worked off vector by vector.
std::int64_t TileOrder::column_tail_width() const { return blocking_.dots or blocking_.matrices ? blocking_.width() : blocking_.lanes; }

Value* TileOrder::block_count(std::uint32_t axis, std::int64_t width, std::int64_t tail_width) {
  if (is_constant(axis)) return number((nest_.extents[axis].value() + width - 1) / width);
  Value* full = ir_.CreateUDiv(extent(axis), number(width));
  Value* rest = ir_.CreateNSWSub(extent(axis), ir_.CreateNSWMul(full, number(width)));
  return ir_.CreateNSWAdd(full, ir_.CreateUDiv(ir_.CreateNSWAdd(rest, number(tail_width - 1)), number(tail_width)));
}

TileOrder::Place TileOrder::place_of(Value* panel) {
  Place place{.above = nullptr, .column_block = nullptr, .indices = {}};
  Value *number_of_columns = split_off(panel, ir_.CreateNUWMul(panels_beside_, row_panels_)), *row_panel = number(0);
  if (blocking_.rows) {
    row_panel = ir_.CreateSelect(columns_first_, ir_.CreateURem(number_of_columns, row_panels_), ir_.CreateUDiv(number_of_columns, panels_beside_));
    number_of_columns = ir_.CreateSelect(columns_first_, ir_.CreateUDiv(number_of_columns, row_panels_), ir_.CreateURem(number_of_columns, panels_beside_));
  }
  place.column_block = split_off(number_of_columns, column_blocks_);
  place.above = ir_.CreateNSWMul(row_panel, panel_rows_);
  split_indices(blocking_.beside, number_of_columns, place.indices);
  split_indices(axes_apart(), panel, place.indices);
  return place;
}

Value* TileOrder::split_off(Value*& number, Value* extent) {
  Value* last = ir_.CreateURem(number, extent);
  number = ir_.CreateUDiv(number, extent);
  return last;
}

/// `number` counts the points of some axes, row-major.
void TileOrder::split_indices(const std::vector<std::uint32_t>& axes, Value* number, std::map<std::uint32_t, Value*>& indices) {
  for (std::size_t i = axes.size(); i-- > 0;) indices[axes[i]] = i == 0 ? number : split_off(number, extent(axes[i]));
}

void TileOrder::go_to(const Place& place) {
  for (const auto& [axis, index] : place.indices) point_.set_index(axis, index);
}

TileOrder::Range TileOrder::tiles_of(Value* panel, const Place& place, const Range& tiles) {
  Value* start = ir_.CreateNSWMul(panel, panel_height());
  Value* from = larger(ir_.CreateNSWSub(tiles.first, start), number(0));
  Value* to = smaller(ir_.CreateNSWSub(tiles.last, start), panel_height());
  return {ir_.CreateNSWAdd(place.above, from), smaller(ir_.CreateNSWAdd(place.above, to), row_blocks_)};
}

Value* TileOrder::number_among(const Range& panels, Value* panel, const Place& leftmost, Value* block) {
  Value* beside = ir_.CreateNSWMul(ir_.CreateNSWSub(panel, panels.first), panel_rows_);
  return ir_.CreateNSWAdd(beside, ir_.CreateNSWSub(block, leftmost.above));
}

}  // namespace hone
