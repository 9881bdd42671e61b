#include "backends/llvm/blocking.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

#include "backends/llvm/choose_sliding.h"
#include "backends/llvm/matrix_tiles.h"
#include "backends/llvm/reduction.h"

namespace hone {

namespace {

// What is not known when compiling is taken to be of this size: a batch, and anything else.
constexpr std::int64_t kTypicalRows = 64, kTypicalExtent = 256;
constexpr double kDotCost = 1.3;                    ///< loads of dot products cross cache lines
constexpr double kTileCycles = 30;                  ///< to find a tile's place, and to fill and empty the pipeline
constexpr std::int64_t kLine = 64, kSets = 64, kWays = 8;  ///< of the first level cache: bytes of a line, and how many lines it holds
constexpr double kMissCycles = 1;                   ///< of a line that comes from the second level cache, beside what is hidden behind other work
constexpr double kStreamCycles = 0.35;              ///< of a line of a packed part that the first level cache does not hold
constexpr std::int64_t kForeseenStep = 128;         ///< bytes from one line to the next, up to which the processor asks for it in time
constexpr double kTransposed = 0.5, kCopied = 0.25;  ///< cycles to pack an element
constexpr std::int64_t kMaxPackedBytes = 1 << 19;   ///< they lie on the stack
constexpr std::int64_t kSumBlock = 256;             ///< a packed factor of so many points stays in the first level cache or streams from the second
constexpr std::int64_t kWholeSum = 2048;            ///< up to which a packed factor had better stream from the second level cache
constexpr std::int64_t kWholeStridedSum = 128;      ///< the same where the rows' factor is walked with a stride: packed, it no longer falls out of the first level cache
constexpr std::int64_t kSumBytes = 3 << 18;         ///< of sums that wait: they stay in the second level cache
constexpr std::int64_t kPanelBytes = 1 << 19;       ///< of the rows' factor: it stays in the second level cache
constexpr std::int64_t kPanelRows = 256;            ///< enough of them that packing the columns' factor for each panel costs little
constexpr std::int64_t kTransposedRows = 512, kTransposedBytes = 1 << 21;  ///< the same where that factor is transposed: it costs more than to read rows from the third level cache
constexpr std::int64_t kLongSum = 128;              ///< behind which prefetching pays
constexpr std::int64_t kMaxRows = 16, kMaxVectors = 4, kMaxDots = 8;
// Of the matrix unit:
constexpr double kMatrixCycles = 22;             ///< of an instruction; 16 where the processor does not slow down for it
constexpr double kMatrixTileCycles = 500;        ///< to wait for a tile's sums and to finish the last one of a panel
constexpr double kTakenApart = 1.25;             ///< to pack an element as three parts
constexpr std::int64_t kMatrixSumBlock = 128;    ///< the columns' factor of a tile fills half of the first level cache
constexpr std::int64_t kMatrixPanelRows = 512;
constexpr std::int64_t kAllPanels = std::int64_t{1} << 30;  ///< more than there are, where no sums wait

/// Cycles of one step of the inner loops: two multiply-adds or two loads each, a chain of additions of latency 4, the loop itself.
double step_cycles(std::int64_t rows, std::int64_t columns) {
  const auto sums = static_cast<double>(rows * columns), loads = static_cast<double>(rows + columns);
  return std::max({sums / 2 + 0.2 * loads, loads / 2, 4.0}) + 0.5;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

class Chooser {
 public:
  Chooser(const Kernel& kernel, const Nest& nest, const VectorUnit& unit) : kernel_(kernel), nest_(nest), unit_(unit), axes_of_(axes_of_expressions(kernel)) {}

  std::optional<Blocking> run() {
    if (std::ranges::any_of(kernel_.phases, &Phase::scatter)) return std::nullopt;
    if (is_contraction_with_stores()) {
      if (std::optional<Blocking> sliding = choose_sliding(kernel_, nest_, unit_)) return sliding;
      for (const std::uint32_t axis : nest_.outer)
        if (is_contiguous_in_stores(nest_, axis, axes_of_)) try_columns(axis);
      if (best_) return best_;
    }
    return runs_across_outer(kernel_, nest_) ? std::optional(across()) : std::nullopt;
  }

 private:
  // ---- what the kernel is

  bool is_contraction_with_stores() {
    if (kernel_.phases.empty() or nest_.inner[0].empty() or kernel_.phases[0].reductions.empty() or not kernel_.phases[0].stores.empty()) return false;
    for (std::size_t p = 1; p < kernel_.phases.size(); ++p)
      if (not nest_.inner[p].empty() or not kernel_.phases[p].reductions.empty()) return false;
    if (not std::ranges::all_of(kernel_.phases[0].reductions, [&](const Reduction& reduction) { return is_contraction(kernel_, reduction, axes_of_); }))
      return false;
    for (const ExprId id : expressions_of(kernel_, 0))
      if (kernel_.exprs[id].op == ScalarOp::kLoad) loads_.push_back(id);
    return true;
  }

  Stride stride(ExprId load, std::uint32_t axis) const { return stride_along(nest_.loads.at(load), axis, axes_of_); }
  bool depends(ExprId id, std::uint32_t axis) const { return (axes_of_[id.index] >> axis & 1) != 0; }
  bool contiguous_or_constant(std::uint32_t axis) const {
    return std::ranges::all_of(loads_, [&](ExprId load) { return stride(load, axis) == Stride::kOne or not depends(load, axis); });
  }

  /// The other outer axes along which what is loaded for a point of `axis` serves again.
  std::vector<std::uint32_t> axes_that_share(std::uint32_t axis) const {
    std::vector<std::uint32_t> axes;
    for (const std::uint32_t other : nest_.outer) {
      const bool shared = std::ranges::none_of(loads_, [&](ExprId load) { return depends(load, other) and depends(load, axis); });
      if (other != axis and shared) axes.push_back(other);
    }
    return axes;
  }

  /// The extent where every symbol is `typical`.
  std::int64_t expected(std::uint32_t axis, std::int64_t typical) const {
    if (nest_.extents[axis].is_constant()) return nest_.extents[axis].value();
    std::int64_t sum = 0;
    for (const auto& [arguments, coefficient] : nest_.extents[axis].terms()) {
      std::int64_t product = coefficient;
      for (const std::uint32_t argument : arguments) product *= nest_.arguments[argument].guess(typical);
      sum += product;
    }
    return std::max<std::int64_t>(1, sum);
  }

  // ---- candidates

  void try_columns(std::uint32_t columns) {
    const std::uint32_t inner = nest_.inner[0].back();
    const bool vectors = contiguous_or_constant(columns), dots = contiguous_or_constant(inner);
    for (const std::uint32_t rows : axes_that_share(columns)) {
      if (vectors) try_tiles({.columns = columns, .rows = rows, .lanes = lanes_for(columns)});
      if (const ExprId factor = factor_to_pack(columns, rows); factor.valid())
        try_tiles({.columns = columns, .rows = rows, .lanes = lanes_for(columns), .packed = factor, .copied = vectors, .joined = joins(columns), .sum_block = sum_block(columns), .rows_packed = rows_to_pack(rows, columns)});
      if (dots) try_tiles({.columns = columns, .rows = rows, .lanes = lanes_for(inner), .dots = true});
      if (unit_.has_matrices) try_matrices(columns, rows);
    }
    if (vectors and not best_) try_tiles({.columns = columns, .lanes = lanes_for(columns)});
  }

  /// The factor that depends on the columns, if its vectors can be copied, or those along the innermost inner axis transposed.
  ExprId factor_to_pack(std::uint32_t columns, std::uint32_t rows) const {
    const std::vector<std::uint32_t>& inner = nest_.inner[0];
    const bool copied = contiguous_or_constant(columns);
    if (kernel_.phases[0].reductions.size() != 1 or (copied and inner.size() != 1)) return {};
    if (not copied and not std::ranges::all_of(inner, [&](std::uint32_t axis) { return nest_.extents[axis].is_constant(); })) return {};
    if (sum_block(columns) == 0 and inner_points() * kMaxVectors * unit_.lanes * 4 > kMaxPackedBytes) return {};
    const auto [factor, other] = factors(columns);
    if (depends(factor, rows) or depends(other, columns)) return {};
    const bool is_short = sum_block(columns) > 0 and not nest_.extents[inner.back()].is_constant() and inner_points() <= 2 * kSumBlock;  // likely, not surely: it would be one part, with all of its sums through memory
    if (copied) return depends(factor, inner.back()) and not is_short ? factor : ExprId();
    const bool along = std::ranges::all_of(loads_, [&](ExprId load) { return not depends(load, columns) or stride(load, inner.back()) == Stride::kOne; });
    return along ? factor : ExprId();
  }

  /// The other factor, where sums are taken in parts and it is walked with a stride.
  ExprId rows_to_pack(std::uint32_t rows, std::uint32_t columns) const {
    if (sum_block(columns) == 0 or nest_.inner[0].size() != 1) return {};
    const ExprId other = factors(columns).second;
    return contiguous_or_constant(rows) ? other : ExprId();
  }

  /// Are two inner axes as good as one, once the factor that depends on the columns is packed? Its vectors then begin at multiples of their length.
  bool joins(std::uint32_t columns) const {
    const std::vector<std::uint32_t>& inner = nest_.inner[0];
    if (inner.size() != 2 or not nest_.extents[inner[0]].is_constant() or not nest_.extents[inner[1]].is_constant()) return false;
    if (nest_.extents[inner[1]].value() % unit_.lanes != 0) return false;
    return std::ranges::all_of(loads_, [&](ExprId load) {
      const Offset& offset = nest_.loads.at(load);
      const auto step = [&offset](std::uint32_t axis) { return offset.axes.contains(axis) ? offset.axes.at(axis) : Size(0); };
      return depends(load, columns) or (offset.values.empty() and step(inner[0]) == step(inner[1]) * nest_.extents[inner[1]]);
    });
  }

  /// Is the rows' factor contiguous elsewhere than along the sum? Then a tile touches a cache line of it for each step, and those share few of its sets.
  bool walks_rows_with_stride(std::uint32_t columns) const {
    const std::uint32_t inner = nest_.inner[0].back();
    return std::ranges::any_of(loads_, [&](ExprId load) { return not depends(load, columns) and depends(load, inner) and stride(load, inner) != Stride::kOne; });
  }

  /// A sum that is not known to be of moderate length is packed in parts.
  std::int64_t sum_block(std::uint32_t columns) const {
    const std::vector<std::uint32_t>& inner = nest_.inner[0];
    if (inner.size() != 1) return joins(columns) and inner_points() > kWholeSum ? kSumBlock : 0;
    const Size& extent = nest_.extents[inner.front()];
    return extent.is_constant() and extent.value() <= (walks_rows_with_stride(columns) ? kWholeStridedSum : kWholeSum) ? 0 : kSumBlock;
  }

  enum class Source : std::uint8_t { kFirstLevel, kForeseen, kSecondLevel };

  /// Where what is loaded for `count` vectors of columns comes from, as it falls out of the first level cache between two tiles or does not: rows a power of two apart share few of its sets.
  Source source(std::uint32_t columns, std::int64_t count) const {
    const std::uint32_t inner = nest_.inner[0].back();
    Source farthest = Source::kFirstLevel;
    for (const ExprId load : loads_) {
      if (not depends(load, columns) or not depends(load, inner)) continue;
      const Offset& offset = nest_.loads.at(load);
      const auto step = offset.axes.find(inner);
      if (step == offset.axes.end() or not step->second.is_constant()) return Source::kSecondLevel;
      const std::int64_t bytes = std::max<std::int64_t>(1, std::abs(step->second.value()) * 4), lines = lines_of(count);
      const std::int64_t apart = std::max<std::int64_t>(1, kLine * kSets / std::gcd(bytes, kLine * kSets));
      if (inner_points() * lines <= std::min(kSets, apart * lines) * kWays) continue;
      const bool is_whole = nest_.extents[columns].is_constant() and nest_.extents[columns].value() <= count * unit_.lanes;
      const bool is_panel = stride(load, columns) == Stride::kOne and ((is_whole and step->second == nest_.extents[columns]) or bytes <= kForeseenStep);
      farthest = std::max(farthest, is_panel ? Source::kForeseen : Source::kSecondLevel);
    }
    return farthest;
  }

  std::int64_t lines_of(std::int64_t vectors) const { return ceil_div(4 * vectors * unit_.lanes, kLine); }

  std::int64_t lanes_for(std::uint32_t axis) const {
    const auto extent = static_cast<std::uint64_t>(expected(axis, kTypicalExtent));
    return std::min(unit_.lanes, std::max<std::int64_t>(4, static_cast<std::int64_t>(std::bit_ceil(std::max<std::uint64_t>(extent, 1)))));
  }

  void try_tiles(Blocking blocking) {
    const std::int64_t columns = expected(blocking.columns, kTypicalExtent), rows = blocking.rows ? expected(*blocking.rows, kTypicalRows) : 1;
    const std::int64_t most_columns = blocking.dots ? std::min({columns, kMaxDots, blocking.lanes}) : std::min(ceil_div(columns, blocking.lanes), kMaxVectors);
    const auto sums = static_cast<std::int64_t>(kernel_.phases[0].reductions.size());
    for (blocking.column_count = 1; blocking.column_count <= most_columns; ++blocking.column_count) {
      for (blocking.row_count = 1; blocking.row_count <= std::min(rows, kMaxRows); ++blocking.row_count) {
        if (kernel_.repeats and not std::has_single_bit(static_cast<std::uint64_t>(blocking.row_count))) continue;  // tiles that threads can share out without a rest
        const std::int64_t for_rows = unit_.registers / 8;  // more than the one that is needed at a time: else LLVM spills sums
        if (blocking.row_count * blocking.column_count * sums + blocking.column_count + for_rows > unit_.registers) break;
        const double cycles = cycles_per_point(blocking, columns, rows);
        if (best_ and cycles >= best_cycles_) continue;
        keep(blocking, cycles);
        const std::int64_t points = blocking.sum_block > 0 ? blocking.sum_block : inner_points();
        best_->kept_points = kPanelBytes / 4;
        const bool is_transposed = blocking.packed.valid() and not blocking.copied and blocking.sum_block == 0;
        const std::int64_t most_rows = is_transposed ? kTransposedRows : kPanelRows, most_bytes = is_transposed ? kTransposedBytes : kPanelBytes;
        best_->panel_rows = std::max<std::int64_t>(4, std::min(most_rows, most_bytes / (4 * points)) / blocking.row_count);
        best_->panels_at_a_time = std::max<std::int64_t>(1, kSumBytes / (4 * best_->panel_rows * blocking.row_count * blocking.width()));
        const std::int64_t sum = blocking.joined ? inner_points() : nest_.inner[0].size() == 1 ? expected(nest_.inner[0].back(), kTypicalRows) : 0;
        best_->prefetches = not blocking.dots and sum >= kLongSum;
      }
    }
  }

  void keep(const Blocking& blocking, double cycles) {
    best_ = blocking;
    best_cycles_ = cycles;
    if (blocking.rows) best_->beside = axes_that_share(*blocking.rows), std::erase(best_->beside, blocking.columns);
  }

  /// Tiles of four matrix registers, if each factor is contiguous along the sum or along its side of the tile.
  void try_matrices(std::uint32_t columns, std::uint32_t rows) {
    if (kernel_.repeats or kernel_.phases[0].reductions.size() != 1 or (nest_.inner[0].size() != 1 and not joins(columns))) return;
    const std::uint32_t inner = nest_.inner[0].back();
    const auto [of_columns, of_rows] = factors(columns);
    if (depends(of_columns, rows) or depends(of_rows, columns) or not depends(of_columns, inner) or not depends(of_rows, inner)) return;
    if (kernel_.exprs[of_columns].dtype != DType::kF32 or kernel_.exprs[of_rows].dtype != DType::kF32) return;
    const auto is_along_sum = [&](std::uint32_t side) {
      return std::ranges::all_of(loads_, [&](ExprId load) { return not depends(load, side) or stride(load, inner) == Stride::kOne or not depends(load, inner); });
    };
    Blocking blocking{.columns = columns, .rows = rows, .row_count = 2 * MatrixTiles::kSide, .column_count = 2, .lanes = MatrixTiles::kSide, .packed = of_columns, .copied = contiguous_or_constant(columns), .joined = joins(columns), .sum_block = kMatrixSumBlock, .rows_packed = of_rows, .matrices = true, .rows_along_sum = is_along_sum(rows)};
    if ((not blocking.copied and not is_along_sum(columns)) or (not blocking.rows_along_sum and not contiguous_or_constant(rows))) return;
    const std::int64_t width = expected(columns, kTypicalExtent), height = expected(rows, kTypicalRows), depth = blocking.joined ? inner_points() : expected(inner, kTypicalRows);
    const auto matrices = [](std::int64_t points) { return static_cast<double>(ceil_div(points, MatrixTiles::kSide)); };
    const double instructions = MatrixTiles::kProducts * matrices(height) * matrices(width) * static_cast<double>(ceil_div(depth, MatrixTiles::kDepth));
    const double sums = kMatrixTileCycles * matrices(height) * matrices(width) / 4 * static_cast<double>(ceil_div(depth, kMatrixSumBlock));
    std::int64_t panels = 1;  // that read the same rows
    for (const std::uint32_t axis : axes_that_share(rows)) panels *= axis == columns ? 1 : expected(axis, kTypicalExtent);
    const double packing = kTakenApart * static_cast<double>(width * depth * ceil_div(height, kMatrixPanelRows) + height * depth / panels);
    const double cycles = (instructions * kMatrixCycles + sums + packing) / static_cast<double>(std::max<std::int64_t>(1, width * height));
    if (best_ and cycles >= best_cycles_) return;
    keep(blocking, cycles);
    best_->panel_rows = kMatrixPanelRows / blocking.row_count;
    best_->is_one_part = (blocking.joined or nest_.extents[inner].is_constant()) and depth <= kMatrixSumBlock;
    best_->panels_at_a_time = best_->is_one_part ? kAllPanels : std::max<std::int64_t>(1, kSumBytes / (4 * kMatrixPanelRows * blocking.width()));
  }

  /// The two factors of the contraction: that of the columns, and the other.
  std::pair<ExprId, ExprId> factors(std::uint32_t columns) const {
    const Expr& product = kernel_.exprs[kernel_.phases[0].reductions[0].value];
    const bool first = depends(product.operands[0], columns);
    return {product.operands[first ? 0 : 1], product.operands[first ? 1 : 0]};
  }

  /// Of one point of the outer space.
  double cycles_per_point(const Blocking& blocking, std::int64_t columns, std::int64_t rows) const {
    const std::int64_t inner = inner_points();
    double steps = static_cast<double>(inner);
    if (blocking.dots) {
      const std::int64_t along = std::max<std::int64_t>(1, expected(nest_.inner[0].back(), kTypicalExtent));
      steps = static_cast<double>(inner / along * ceil_div(along, blocking.lanes));
    }
    const bool clamped = blocking.rows and not nest_.extents[*blocking.rows].is_constant();  // the last tile computes rows that are not there
    const std::int64_t last_columns = columns % blocking.width(),
                       last_rows = clamped and rows % blocking.row_count != 0 ? blocking.row_count : rows % blocking.row_count;
    const auto tile = [&](std::int64_t tile_rows, std::int64_t tile_width) {
      const std::int64_t cells = blocking.dots ? tile_width : ceil_div(tile_width, blocking.lanes);
      const double tail = blocking.dots ? 3.0 * static_cast<double>(tile_rows * cells) : 0;
      return with_loads(blocking, cells, step_cycles(tile_rows, cells) * (blocking.dots ? kDotCost : 1)) * steps + tail + kTileCycles;
    };
    const auto strip = [&](std::int64_t tile_rows) {
      return static_cast<double>(columns / blocking.width()) * tile(tile_rows, blocking.width()) + (last_columns > 0 ? tile(tile_rows, last_columns) : 0);
    };
    const double all = static_cast<double>(rows / blocking.row_count) * strip(blocking.row_count) + (last_rows > 0 ? strip(last_rows) : 0);
    const double pack_element = not blocking.packed.valid() ? 0 : blocking.copied ? kCopied : kTransposed;
    const double packing = pack_element * static_cast<double>(columns * inner * ceil_div(rows, kPanelRows));
    return (all + packing) / static_cast<double>(std::max<std::int64_t>(1, columns * rows));
  }

  /// Of a step whose instructions take `cycles`, with what it waits for the columns' factor.
  double with_loads(const Blocking& blocking, std::int64_t cells, double cycles) const {
    if (blocking.dots) return cycles;
    const auto lines = static_cast<double>(lines_of(cells));
    if (blocking.packed.valid()) return cycles + (4 * blocking.sum_block * cells * blocking.lanes > kLine * kSets * kWays ? kStreamCycles * lines : 0);
    switch (source(blocking.columns, cells)) {
      case Source::kFirstLevel: return cycles;
      case Source::kForeseen: return std::max(cycles, lines * unit_.line_cycles);
      case Source::kSecondLevel: return cycles + kMissCycles * lines;
    }
    return cycles;
  }

  std::int64_t inner_points() const {
    std::int64_t points = 1;
    for (const std::uint32_t axis : nest_.inner[0]) points *= std::max<std::int64_t>(1, expected(axis, kTypicalExtent));
    return points;
  }

  // ---- other kernels

  Blocking across() const {
    constexpr std::size_t kFewExpressions = 24;  // larger bodies are written down once
    Blocking blocking{.columns = nest_.outer.back(), .lanes = lanes_for(nest_.outer.back())};
    std::size_t expressions = 0;
    for (std::size_t p = 0; p < kernel_.phases.size(); ++p) expressions += expressions_of(kernel_, p).size();
    if (expressions <= kFewExpressions)
      blocking.column_count = std::clamp<std::int64_t>(ceil_div(expected(blocking.columns, kTypicalExtent), blocking.lanes), 1, kMaxVectors);
    return blocking;
  }

  const Kernel& kernel_;
  const Nest& nest_;
  const VectorUnit& unit_;
  const std::vector<std::uint64_t> axes_of_;
  std::vector<ExprId> loads_;  ///< of the contraction
  std::optional<Blocking> best_;
  double best_cycles_ = 0;
};

}  // namespace

std::optional<Blocking> choose_blocking(const Kernel& kernel, const Nest& nest, const VectorUnit& unit) { return Chooser(kernel, nest, unit).run(); }

bool slides(const Kernel& kernel, const VectorUnit& unit) {
  const std::optional<Blocking> blocking = choose_blocking(kernel, make_nest(kernel), unit);
  return blocking and blocking->sliding;
}

bool uses_matrices(const Kernel& kernel, const VectorUnit& unit) {
  const std::optional<Blocking> blocking = choose_blocking(kernel, make_nest(kernel), unit);
  return blocking and blocking->matrices;
}

}  // namespace hone
