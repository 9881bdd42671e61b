// TileOrder: where the tiles of a kernel lie, and in which order they are done: panels of tiles below each other, whose columns' factor stays in the cache, beside each other or below.
#pragma once

#include <map>
#include <vector>

#include "backends/llvm/tile_code.h"

namespace hone {

class TileOrder : protected TileCode {
 protected:
  TileOrder(const Kernel& kernel, const Nest& nest, const Blocking& blocking, Point& point) : TileCode(nest, blocking, point), kernel_(kernel) {}

  /// Works out the numbers that follow, once, where the kernel's function begins.
  void begin();
  /// All tiles of all panels, counted as if the last panels had as many as the others.
  Value* tile_count();

  /// Where a panel lies.
  struct Place {
    Value *above, *column_block;              ///< `above`: the first tile's number in its column
    std::map<std::uint32_t, Value*> indices;  ///< of the outer axes but rows and columns
  };
  Place place_of(Value* panel);
  void go_to(const Place& place);

  /// Those of the panel's tiles that are in the range, by their number in the column. The last panel may have fewer of them.
  Range tiles_of(Value* panel, const Place& place, const Range& tiles);
  Value* panel_height() { return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, panel_rows_, number(1)); }
  Value* panels_beside() { return panels_beside_; }

  /// Behind the last tile of a panel that begins at `place`.
  Value* below(const Place& place) { return smaller(ir_.CreateNSWAdd(place.above, panel_rows_), row_blocks_); }
  /// The number of a tile among those of panels beside each other, the first of which lies at `leftmost`.
  Value* number_among(const Range& panels, Value* panel, const Place& leftmost, Value* block);
  /// How many tiles such panels have.
  Value* tiles_of_all(const Range& panels) { return ir_.CreateNSWMul(ir_.CreateNSWSub(panels.last, panels.first), panel_rows_); }

  /// body(side) for the columns of a block: a whole one, or what is left behind those.
  template <typename Body>
  void columns(Value* block, Body body) {
    const std::uint32_t axis = blocking_.columns;
    const std::int64_t width = blocking_.width();
    const auto full = [&] { body({ir_.CreateNSWMul(block, number(width)), blocking_.column_count, nullptr}); };
    if (is_constant(axis)) {
      const std::int64_t rest = nest_.extents[axis].value() % width, count = nest_.extents[axis].value() / width;
      const std::int64_t vectors = blocking_.matrices ? blocking_.column_count : (rest + blocking_.lanes - 1) / blocking_.lanes;
      const auto last = [&] { body({number(count * width), blocking_.dots ? rest : vectors, number(rest)}); };
      return either(ir_.CreateICmpSLT(block, number(count)), count > 0, rest > 0, full, last);
    }
    Value* count = ir_.CreateUDiv(extent(axis), number(width));
    const auto tail = [&] {
      Value* behind = ir_.CreateNSWMul(ir_.CreateNSWSub(block, count), number(column_tail_width()));
      Value* first = ir_.CreateNSWAdd(ir_.CreateNSWMul(count, number(width)), behind);
      body({first, blocking_.dots or blocking_.matrices ? blocking_.column_count : 1, ir_.CreateNSWSub(extent(axis), first)});
    };
    either(ir_.CreateICmpSLT(block, count), true, true, full, tail);
  }

  /// The same for the rows of a tile.
  template <typename Body>
  void rows(Value* block, Body body) {
    const std::uint32_t axis = *blocking_.rows;
    const std::int64_t height = blocking_.row_count;
    Value* first = ir_.CreateNSWMul(block, number(height));
    const auto full = [&] { body({first, height, nullptr}); };
    if (is_constant(axis)) {
      const std::int64_t rest = nest_.extents[axis].value() % height, count = nest_.extents[axis].value() / height;
      return either(ir_.CreateICmpSLT(block, number(count)), count > 0, rest > 0, full, [&] { body({first, rest, nullptr}); });
    }
    Value* left = ir_.CreateNSWSub(extent(axis), first);
    either(ir_.CreateICmpSGE(left, number(height)), true, height > 1, full, [&] { body({first, height, left}); });
  }

  /// A branch between two codes of which one may never be wanted.
  template <typename Then, typename Otherwise>
  void either(Value* condition, bool has_then, bool has_otherwise, Then then, Otherwise otherwise) {
    if (has_then and has_otherwise) return loops_.branch(condition, then, otherwise);
    if (has_then) then();
    else if (has_otherwise) otherwise();
  }

  const Kernel& kernel_;

 private:
  Value* rows_of_share();
  Value* are_columns_first();
  Value* all_columns() { return times_points(extent(blocking_.columns), blocking_.beside); }  ///< that read the same rows
  std::vector<std::uint32_t> axes_apart() const;
  std::int64_t column_tail_width() const;
  Value* block_count(std::uint32_t axis, std::int64_t width, std::int64_t tail_width);
  Value* split_off(Value*& number, Value* extent);
  void split_indices(const std::vector<std::uint32_t>& axes, Value* number, std::map<std::uint32_t, Value*>& indices);

  Value *row_blocks_ = nullptr, *column_blocks_ = nullptr;  ///< of the whole axes
  Value *panel_rows_ = nullptr, *row_panels_ = nullptr, *panels_beside_ = nullptr;  ///< panels_beside_: those that read the same rows
  Value* columns_first_ = nullptr;
};

}  // namespace hone
