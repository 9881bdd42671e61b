// Blocking: which points of a kernel are computed side by side, in registers.
#pragma once

#include <algorithm>
#include <optional>

#include "backends/llvm/nest.h"

namespace hone {

/// The vector registers of a processor.
struct VectorUnit {
  std::int64_t lanes;  ///< f32 elements in one
  std::int64_t registers;
  double line_cycles;         ///< of 64 bytes that come from the second level cache, one line after the other: what processors without wider vectors keep up
  bool has_matrices = false;  ///< AMX: registers of 16 x 16 sums, products of bf16
};
constexpr VectorUnit kSse = {.lanes = 4, .registers = 16, .line_cycles = 4}, kAvx2 = {.lanes = 8, .registers = 16, .line_cycles = 3.5}, kAvx512 = {.lanes = 16, .registers = 32, .line_cycles = 2},
                     kAvx512WithAmx = {.lanes = 16, .registers = 32, .line_cycles = 2, .has_matrices = true};

/// A contraction one of whose factors slides under the other: a convolution, or one of its gradients. Where an element of that factor is in a register, all sums and terms that need it are near.
struct Sliding {
  /// So many tiles of a line, or blocks of terms, are written down one after the other, so that it is known what of them lies outside of the tensor; more of them are a loop.
  static constexpr std::int64_t kWrittenOut = 4;

  /// An outer and an inner axis along which the factor moves alike: it depends on them only through the position outer_step * outer + inner_step * inner, counted from the first one that there is.
  struct Pair {
    std::uint32_t outer, inner;
    std::int64_t outer_extent, inner_extent;
    std::int64_t outer_step, inner_step;  ///< one of them is 1; inner_step may be negative
    std::int64_t inside_from = 0, inside_to = 0;  ///< the positions at which the factor's guard holds; elsewhere the factor is 0

    std::int64_t inner_stride() const { return inner_step < 0 ? -inner_step : inner_step; }
    std::int64_t positions_of(std::int64_t outer_count, std::int64_t inner_count) const { return outer_step * (outer_count - 1) + inner_stride() * (inner_count - 1) + 1; }
    /// Those of the positions that are read.
    std::int64_t elements_of(std::int64_t outer_count, std::int64_t inner_count) const { return std::min(positions_of(outer_count, inner_count), outer_count * inner_count); }
    std::int64_t positions() const { return positions_of(outer_extent, inner_extent); }
  };

  ExprId moving, standing;  ///< both loads
  Pair along;               ///< the nearest positions in memory but for the channels: those in registers
  std::optional<Pair> lines = {};
  std::uint32_t channels = 0;  ///< the moving factor is contiguous along them
  std::int64_t channel_count = 0;
  /// All other axes, outermost first: outer ones, on which the standing factor does not depend, or, where sums wait in memory, inner ones.
  std::vector<std::uint32_t> fixed = {};
  std::vector<std::uint32_t> apart = {};  ///< outer axes at each point of which sums that wait are over other points of the fixed ones
  std::vector<ExprId> conditions = {};    ///< comparisons that depend on fixed axes and those apart alone; where one does not hold the moving factor is 0, and maybe the standing one
  /// Are channels an outer axis, so that a sum is over all points of `fixed` and all positions: a weight's gradient? Else a sum is over the window and the channels, and is done in registers.
  bool sums_wait = false;
  std::int64_t terms = 0;       ///< of a sum that are taken side by side, along the inner axis of `along`; all of a window's
  bool packs_standing = false;  ///< because it is not contiguous along the columns
  std::int64_t line_block = 1;  ///< points of the lines' outer axis, or where sums wait of their inner one, whose positions are laid out together

  /// Lines that are laid out for a block of so many points.
  std::int64_t lines_of(std::int64_t block) const {
    if (not lines) return 1;
    return sums_wait ? lines->positions_of(lines->outer_extent, block) : lines->positions_of(block, lines->inner_extent);
  }
};

/// A tile: `row_count` points along the outer axis `rows` times some along the outer axis `columns`. Sums of the tile's points stay in registers.
struct Blocking {
  std::uint32_t columns = 0;
  std::optional<std::uint32_t> rows = {};
  std::int64_t row_count = 1;
  std::int64_t column_count = 1;  ///< vectors along `columns`; of dot products, columns
  std::int64_t lanes = 1;         ///< points of a vector
  bool dots = false;              ///< lanes run along the innermost inner axis, and each point of the tile has a vector of partial sums; else along `columns`

  /// The factor that depends on the columns, as vectors in an array, in the order in which they are wanted: made once for all rows of a panel of tiles. The
  /// factor is contiguous along the innermost inner axis, or, where it is `copied`, along the columns.
  ExprId packed = {};
  bool copied = false;
  bool joined = false;  ///< the two inner axes are summed over as one: only the packed factor is not linear across them
  /// Points of the only inner axis, or of the joined ones, that are packed and summed at a time; the tiles' sums then wait in memory. 0: all.
  std::int64_t sum_block = 0;
  bool is_one_part = false;  ///< the whole sum is: a tile is finished at once
  ExprId rows_packed = {};  ///< the factor that depends on the rows, where it is contiguous along them: packed, too, for the tiles of a panel
  bool matrices = false;       ///< both factors are packed, and multiplied by the matrix unit (matrix_tiles.h)
  bool rows_along_sum = false;  ///< then: the rows' factor is contiguous along the sum instead
  std::int64_t panels_at_a_time = 1;  ///< beside each other, whose sums wait in memory together
  std::int64_t panel_rows = 1;  ///< at most so many tiles below each other are done before those of the next columns
  std::int64_t kept_points = 0;  ///< rows' factors of at most so many elements stay in the cache while all columns are done
  std::vector<std::uint32_t> beside = {};  ///< outer axes along which the rows' factors serve again, as they do along the columns
  std::optional<Sliding> sliding = {};  ///< tiles along which a factor slides (sliding_tiles.h); of what stands above only columns, rows and counts hold then
  bool prefetches = false;      ///< the memory behind the sums is asked for before them

  std::int64_t width() const { return dots ? column_count : column_count * lanes; }
};

/// For kernels that are contractions with stores behind them, tiles that cost the fewest cycles by a count of instructions: vectors along the axis in which
/// the result is contiguous, if each factor is contiguous or constant along it, or dot products. For others a block of vectors where runs_across_outer
/// says so. Nothing: one point after the other.
std::optional<Blocking> choose_blocking(const Kernel& kernel, const Nest& nest, const VectorUnit& unit);

/// Has the kernel tiles along which a factor slides?
bool slides(const Kernel& kernel, const VectorUnit& unit);

/// Does the kernel have tiles for the unit's matrix registers? Code for a unit without them is as good if not.
bool uses_matrices(const Kernel& kernel, const VectorUnit& unit);

}  // namespace hone
