// Packing: a product's factors laid out in the order in which tiles want them.
#pragma once

#include <functional>

#include "backends/llvm/tile_code.h"

namespace hone {

class Packing : private TileCode {
 public:
  Packing(const Nest& nest, const Blocking& blocking, Point& point) : TileCode(nest, blocking, point) {}

  /// Lays out the factor of these columns: for each inner point of a part, in order, one vector after the other.
  void columns(const TileSide& columns, const SumPart& part);

  /// Lays out the rows' factor of the tiles [above, below) of a column: tile by tile, for each point of the part, the tile's rows.
  void rows(llvm::Value* above, llvm::Value* below, const SumPart& part);
  /// From here on the rows' factor is that of the `tile`-th of them.
  void set_tile(llvm::Value* tile) { tile_ = tile; }

 private:
  using Place = std::function<llvm::Value*(llvm::Value* point, llvm::Value* column)>;  ///< where a vector lies

  void copy(const TileSide& columns, const SumPart& part, const Place& place);
  void transpose_all(const TileSide& columns, std::size_t depth, const SumPart& part, const Place& place);
  void transpose_joined(const TileSide& columns, const SumPart& part, const Place& place);
  void transpose(const TileSide& columns, llvm::Value* column, std::uint32_t axis, llvm::Value* first, std::int64_t count, const Place& place);
  llvm::Value* inner_point();

  llvm::Value* tile_ = nullptr;
};

}  // namespace hone
