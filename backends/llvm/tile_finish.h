// TileFinish: the phases behind a contraction, from sums that lie in memory.
#pragma once

#include "backends/llvm/phase_code.h"
#include "backends/llvm/tile_code.h"

namespace hone {

class TileFinish : private TileCode {
 public:
  TileFinish(const Kernel& kernel, const Nest& nest, const Blocking& blocking, Point& point) : TileCode(nest, blocking, point), kernel_(kernel), code_(point, kernel, nest) {}

  /// Those of a tile's rows, which begin at `first_row`, that are in the range. `sums`: for each temporary of the kernel, vectors by row and then by column.
  void rows(llvm::Value* first_row, const NumberRange& range, LoopTraits traits, const TileSide& columns, const std::vector<llvm::Value*>& sums);

 private:
  PointGrid as_one_vector(const TileSide& columns);
  PointGrid dots_as_lanes(const TileSide& columns);

  const Kernel& kernel_;
  PhaseCode code_;
};

}  // namespace hone
