// Scatter phases in blocks: what a block does for the rows of the destination that it owns.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "backends/llvm/block_threads.h"
#include "backends/llvm/phase_code.h"

namespace hone {

/// Its threads look through the positions of the inner space together, each through 64 of them at a time, and mark those whose row is the block's. Then they go through what is marked, in index
/// order: along a row's elements, or, where the innermost loop does not run along them, each thread for rows of its own. Sums into short rows are shared out by position, too: groups of
/// threads ("slices") sum up parts of them, in shared memory, each in an order of its own, and the parts meet in order. So results depend on the kernel alone.
class BlockScatter {
 public:
  BlockScatter(const Kernel& kernel, const Nest& nest, Point& point, PhaseCode& code, BlockThreads& threads);

  /// The stores of the phase into rows [begin, end).
  void run(std::size_t phase, llvm::Value* begin, llvm::Value* end);

 private:
  using Value = llvm::Value;
  struct Rows {
    Value *begin, *end;
  };
  /// A store of a phase, and the axes that its row may depend on.
  struct Scattered {
    const Store& store;
    const Offset& offset;
    std::vector<std::uint32_t> positions;
    std::optional<std::uint32_t> along;  ///< the axis that runs along the row's elements
  };

  bool walks_along_row(std::size_t phase) const;
  std::optional<std::int64_t> short_row(const Scattered& scattered) const;
  void add_in_slices(const Scattered& scattered, std::int64_t width, Rows rows);
  /// A position whose row is the block's; where is_one does not hold, the first of those that are taken together once more.
  struct Hit {
    Value *position, *is_one;
  };
  void go_to(const Scattered& scattered, const Hit& hit);
  template <typename Add>
  void each_hits(const Scattered& scattered, Rows rows, std::int64_t slices, std::int64_t at_a_time, Add add);
  /// Which positions of a tile a thread marks: 64 that follow each other, or, where their order does not matter, each of which the other threads' lie in between, so that a few positions are work for all slices.
  enum class Order : std::uint8_t { kAsTheyAre, kSpread };
  Value* position_of(Order order, Value* tile, Value* thread, Value* bit);
  void mark(const Scattered& scattered, Rows rows, Value* count, Value* tile, Order order, Value* thread);
  void store_hit(const Scattered& scattered, Value* thread);
  Value* number(std::int64_t value) { return ir_.getInt64(static_cast<std::uint64_t>(value)); }
  Value* extent(std::uint32_t axis) { return point_.size(nest_.extents[axis]); }
  Value* element(Value* array, DType dtype, Value* i) { return ir_.CreateInBoundsGEP(point_.cell_type(dtype), array, i); }

  const Kernel& kernel_;
  const Nest& nest_;
  const std::vector<std::uint64_t> axes_of_;
  Point& point_;
  llvm::IRBuilder<>& ir_;
  LoopBuilder loops_;
  PhaseCode& code_;
  BlockThreads& threads_;
  Value* marks_ = nullptr;            ///< 64 positions of each thread, shared
  std::map<DType, Value*> partials_;  ///< by slice, row and column, shared
};

}  // namespace hone
