#include "backends/llvm/choose_sliding.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "backends/llvm/reduction.h"

namespace hone {

namespace {

constexpr std::int64_t kMostExtent = 1 << 14;            ///< products of four of them fit
constexpr std::int64_t kMostStride = 4, kMostDilation = 64;  ///< positions between neighbours of an axis that runs over an image, and of a window's
constexpr std::int64_t kLineBytes = 3 << 13;             ///< of positions that are laid out together: half of the first level cache
constexpr std::int64_t kMostLineBytes = 1 << 19;         ///< of the fewest that can be: they lie on the stack
constexpr std::int64_t kMostStandingBytes = 1 << 20;     ///< of a factor that is walked once for each line, and of sums that wait: in the second level cache
constexpr std::int64_t kMostVectors = 4;
constexpr std::int64_t kMostRows = 8, kMostTerms = 8;    ///< where sums wait
constexpr std::int64_t kMostSums = 8;                    ///< of a row of theirs
constexpr double kLineCycles = 2;                        ///< to begin a loop over a line's terms: larger tiles begin fewer
constexpr double kTileCycles = 30;                       ///< to find a tile's place, and to fill and empty the pipeline
constexpr double kLeastEfficiency = 0.65;                ///< of what two multiply-adds a cycle would do

class SlidingChooser {
 public:
  SlidingChooser(const Kernel& kernel, const Nest& nest, const VectorUnit& unit) : kernel_(kernel), nest_(nest), unit_(unit), axes_of_(axes_of_expressions(kernel)) {}

  /// Any tiles that there are.
  std::optional<Blocking> run() {
    if (kernel_.repeats or kernel_.phases[0].reductions.size() != 1) return std::nullopt;
    const Expr& product = kernel_.exprs[kernel_.phases[0].reductions[0].value];
    for (const bool first : {true, false}) {
      sliding_ = {.moving = product.operands[first ? 0 : 1], .standing = product.operands[first ? 1 : 0]};
      if (are_loads() and find_pairs() and find_channels() and find_columns() and find_fixed() and find_insides()) return sliding_.sums_wait ? waiting_tiles() : finished_tiles();
    }
    return std::nullopt;
  }

  /// Of the tiles that run() has found: what part of two multiply-adds a cycle they are.
  double efficiency() const { return efficiency_; }

 private:
  // ---- what the kernel is

  bool are_loads() const {
    for (const ExprId id : {sliding_.moving, sliding_.standing}) {
      const Expr& e = kernel_.exprs[id];
      if (e.op != ScalarOp::kLoad or e.dtype != DType::kF32) return false;
    }
    return true;
  }

  bool depends(ExprId id, std::uint32_t axis) const { return (axes_of_[id.index] >> axis & 1) != 0; }
  const std::vector<std::uint32_t>& inner() const { return nest_.inner[0]; }
  std::int64_t extent(std::uint32_t axis) const { return nest_.extents[axis].value(); }
  bool is_known(std::uint32_t axis) const { return nest_.extents[axis].is_constant() and extent(axis) >= 1 and extent(axis) <= kMostExtent; }
  static std::optional<std::int64_t> step(const Offset& offset, std::uint32_t axis) {
    const auto at = offset.axes.find(axis);
    if (at == offset.axes.end()) return 0;
    return at->second.is_constant() ? std::optional(at->second.value()) : std::nullopt;
  }
  bool is_contiguous(ExprId load, std::uint32_t axis) const { return stride_along(nest_.loads.at(load), axis, axes_of_) == Stride::kOne; }

  static std::int64_t largest_step(const Sliding::Pair& pair) { return std::max(pair.outer_step, pair.inner_stride()); }
  /// Do many positions lie between those of a window?
  static bool has_holes(const Sliding::Pair& pair) { return largest_step(pair) > kMostStride; }

  /// Pairs of axes, those with the smallest steps first; each axis is in one of them.
  bool find_pairs() {
    struct Candidate {
      Sliding::Pair pair;
      std::int64_t unit;  ///< elements from a position to the next
    };
    std::vector<Candidate> candidates;
    const Offset& offset = nest_.loads.at(sliding_.moving);
    for (const std::uint32_t outer : nest_.outer)
      for (const std::uint32_t inner : this->inner()) {
        const auto a = step(offset, outer), b = step(offset, inner);
        if (not a or not b or *a <= 0 or *b == 0 or depends(sliding_.standing, outer) or not is_known(outer) or not is_known(inner)) continue;
        const std::int64_t unit = std::min(*a, std::abs(*b));
        if (*a % unit != 0 or *b % unit != 0) continue;
        const Sliding::Pair pair = {outer, inner, extent(outer), extent(inner), *a / unit, *b / unit};
        const bool is_window = pair.outer_step <= kMostStride or pair.outer_extent <= kMostSums;
        if (has_holes(pair) and (unit == 1 or largest_step(pair) > kMostDilation or not is_window)) continue;  // steps of 1 are channels beside positions
        candidates.push_back({pair, unit});
      }
    std::ranges::stable_sort(candidates, {}, [](const Candidate& c) { return c.pair.outer_step + c.pair.inner_stride(); });
    std::vector<Candidate> taken;
    for (const Candidate& c : candidates)
      if (std::ranges::none_of(taken, [&](const Candidate& t) { return t.pair.outer == c.pair.outer or t.pair.inner == c.pair.inner; })) taken.push_back(c);
    if (taken.empty() or taken.size() > 2) return false;
    if (taken.size() == 2 and std::ranges::any_of(taken, [](const Candidate& c) { return has_holes(c.pair); })) return false;  // the library is as quick: it passes over padding, of which there is much
    std::ranges::sort(taken, {}, &Candidate::unit);
    sliding_.along = taken[0].pair;
    if (taken.size() == 2) sliding_.lines = taken[1].pair;
    return true;
  }

  bool is_in_pair(std::uint32_t axis) const {
    const auto in = [axis](const Sliding::Pair& pair) { return pair.outer == axis or pair.inner == axis; };
    return in(sliding_.along) or (sliding_.lines and in(*sliding_.lines));
  }

  bool find_channels() {
    const auto is_channels = [&](std::uint32_t axis) { return not is_in_pair(axis) and is_known(axis) and is_contiguous(sliding_.moving, axis); };
    for (const auto* axes : {&inner(), &nest_.outer})
      for (const std::uint32_t axis : *axes)
        if (is_channels(axis)) {
          sliding_.channels = axis;
          sliding_.channel_count = extent(axis);
          sliding_.sums_wait = axes == &nest_.outer;
          return not sliding_.sums_wait or not depends(sliding_.standing, axis);
        }
    return false;
  }

  /// Where sums wait, stores may be scattered: there is one for thousands of terms.
  bool find_columns() {
    for (const std::uint32_t axis : nest_.outer) {
      if (is_in_pair(axis) or axis == sliding_.channels or not is_known(axis) or depends(sliding_.moving, axis) or not depends(sliding_.standing, axis)) continue;
      const bool is_read_together = is_contiguous(sliding_.standing, axis);
      if (not(sliding_.sums_wait ? is_read_together : is_contiguous_in_stores(nest_, axis, axes_of_))) continue;
      columns_ = axis;
      sliding_.packs_standing = not is_read_together;
      return true;
    }
    return false;
  }

  bool find_fixed() {
    const auto is_other = [&](std::uint32_t axis) { return not is_in_pair(axis) and axis != sliding_.channels and axis != columns_; };
    for (const std::uint32_t axis : nest_.outer) {
      if (not is_other(axis)) continue;
      if (sliding_.sums_wait and depends(sliding_.standing, axis) and depends(sliding_.moving, axis)) {
        sliding_.apart.push_back(axis);
        continue;
      }
      if (sliding_.sums_wait or depends(sliding_.standing, axis)) return false;
      sliding_.fixed.push_back(axis);
    }
    for (const std::uint32_t axis : inner()) {
      if (not is_other(axis)) continue;
      if (not sliding_.sums_wait) return false;
      sliding_.fixed.push_back(axis);
    }
    return has_linear_accesses(sliding_.moving) and has_linear_accesses(sliding_.standing);
  }

  /// But for where what is apart begins.
  bool has_linear_accesses(ExprId load) const {
    return std::ranges::all_of(nest_.loads.at(load).values, [&](const auto& value) {
      std::uint64_t axes = axes_of_[value.first.index];
      for (const std::uint32_t axis : sliding_.apart) axes &= ~(std::uint64_t{1} << axis);
      return axes == 0;
    });
  }

  /// Takes the guards apart: each comparison bounds the position along one of the pairs by a number, or is the same for all that is done at a point of the fixed axes. Then both factors are guarded by it, or the moving one alone.
  bool find_insides() {
    const auto all_inside = [](Sliding::Pair& pair) { pair.inside_from = 0, pair.inside_to = pair.positions(); };
    all_inside(sliding_.along);
    if (sliding_.lines) all_inside(*sliding_.lines);
    for (const ExprId id : comparisons_of(sliding_.moving)) {
      const Expr& e = kernel_.exprs[id];
      if (is_of_fixed(id)) sliding_.conditions.push_back(id);
      else if ((e.op != ScalarOp::kGe and e.op != ScalarOp::kLt) or not(bound(sliding_.along, e) or (sliding_.lines and bound(*sliding_.lines, e)))) return false;
    }
    return std::ranges::all_of(comparisons_of(sliding_.standing), [&](ExprId id) { return std::ranges::count(sliding_.conditions, id) > 0; });
  }

  /// Of the load's guard, which holds where all of them do.
  std::vector<ExprId> comparisons_of(ExprId load) const {
    std::vector<ExprId> open, found;
    if (const ExprId guard = kernel_.exprs[load].guard; guard.valid()) open.push_back(guard);
    while (not open.empty()) {
      const Expr& e = kernel_.exprs[open.back()];
      if (e.op != ScalarOp::kAnd) found.push_back(open.back());
      open.pop_back();
      if (e.op == ScalarOp::kAnd) open.insert(open.end(), e.operands, e.operands + 2);
    }
    return found;
  }

  bool is_of_fixed(ExprId id) const {
    std::uint64_t axes = axes_of_[id.index];
    for (const auto* list : {&sliding_.fixed, &sliding_.apart})
      for (const std::uint32_t axis : *list) axes &= ~(std::uint64_t{1} << axis);
    return sliding_.sums_wait and axes == 0;
  }

  bool bound(Sliding::Pair& pair, const Expr& comparison) const {
    const Offset left = linear_form(kernel_, nest_, comparison.operands[0]), right = linear_form(kernel_, nest_, comparison.operands[1]);
    const bool is_of_pair = left.values.empty() and right.values.empty() and right.axes.empty() and left.axes.size() == 2 and left.constant.is_constant() and right.constant.is_constant();
    if (not is_of_pair or step(left, pair.outer) != pair.outer_step or step(left, pair.inner) != pair.inner_step) return false;
    const std::int64_t at_first = left.constant.value() + (pair.inner_step < 0 ? pair.inner_step * (pair.inner_extent - 1) : 0), position = right.constant.value() - at_first;
    if (comparison.op == ScalarOp::kGe) pair.inside_from = std::clamp(position, pair.inside_from, pair.inside_to);
    else pair.inside_to = std::clamp(position, pair.inside_from, pair.inside_to);
    return true;
  }

  // ---- tiles

  /// For the sliding factor's elements; with fewer LLVM spills sums.
  std::int64_t spare_registers() const { return unit_.registers / 16 + 1; }
  static std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
  static double cycles_of(std::int64_t products, std::int64_t loads, std::int64_t terms) {
    return std::max({static_cast<double>(products) / 2, static_cast<double>(loads) / 2, 4.0 * static_cast<double>(terms)});
  }

  /// Few columns are shorter vectors.
  std::int64_t lanes() const { return std::min(unit_.lanes, std::max<std::int64_t>(4, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent(columns_)))))); }
  std::int64_t vectors() const { return ceil_div(extent(columns_), lanes()); }
  double ideal_cycles(std::int64_t products) const { return static_cast<double>(products * extent(columns_)) / static_cast<double>(lanes()) / 2; }

  std::optional<Blocking> blocking(std::uint32_t rows, std::int64_t row_count, std::int64_t column_count) const {
    return Blocking{.columns = columns_, .rows = rows, .row_count = row_count, .column_count = column_count, .lanes = lanes(), .sliding = sliding_};
  }

  /// Of positions along the lines that are laid out at a time, as many as fit. False: not even the fewest do.
  bool choose_line_block() {
    const auto bytes = [&](std::int64_t block) { return sliding_.along.positions() * sliding_.channel_count * 4 * sliding_.lines_of(block); };
    const std::int64_t most = not sliding_.lines ? 1 : sliding_.sums_wait ? sliding_.lines->inner_extent : sliding_.lines->outer_extent;
    sliding_.line_block = 1;
    while (sliding_.line_block < most and bytes(sliding_.line_block + 1) <= kLineBytes) ++sliding_.line_block;
    sliding_.line_block = ceil_div(most, ceil_div(most, sliding_.line_block));  // blocks of equal size
    return bytes(sliding_.line_block) <= kMostLineBytes;
  }

  /// Rows of points along the outer axis of `along`, all terms of a window.
  std::optional<Blocking> finished_tiles() {
    const Sliding::Pair& along = sliding_.along;
    const std::int64_t steps = sliding_.channel_count * (sliding_.lines ? sliding_.lines->inner_extent : 1), terms = along.inner_extent;
    if (terms < 2 or steps * terms * vectors() * lanes() * 4 > kMostStandingBytes) return std::nullopt;
    std::int64_t row_count = 0, column_count = 0;
    double best = 0;
    for (std::int64_t columns = 1; columns <= std::min(vectors(), kMostVectors); ++columns) {
      if (vectors() % columns != 0) continue;
      for (std::int64_t rows = 1; rows <= along.outer_extent; ++rows) {
        if (rows * columns + terms * columns + spare_registers() > unit_.registers) break;
        const auto tile = [&](std::int64_t count) { return count == 0 ? 0 : kTileCycles + static_cast<double>(steps) * cycles_of(count * columns * terms, along.elements_of(count, terms) + terms * columns, terms); };
        const double cycles = static_cast<double>(vectors() / columns) * (static_cast<double>(along.outer_extent / rows) * tile(rows) + tile(along.outer_extent % rows));
        if (row_count == 0 or cycles < best) best = cycles, row_count = rows, column_count = columns;
      }
    }
    if (row_count == 0) return std::nullopt;
    efficiency_ = ideal_cycles(along.outer_extent * steps * terms) / best;
    sliding_.terms = terms;
    if (not choose_line_block()) return std::nullopt;
    return blocking(along.outer, row_count, column_count);
  }

  /// For each of some channels all sums along the outer axis of `along`, over some terms at a time. Of tiles that are as good by the count the smaller, where blocks
  /// of terms stand one after the other: LLVM loads the standing factor ahead for all of them, and beside 24 sums it spilled some, at two thirds of the speed.
  std::optional<Blocking> waiting_tiles() {
    const Sliding::Pair& along = sliding_.along;
    const std::int64_t sums = along.outer_extent, tiles = sums * (sliding_.lines ? sliding_.lines->outer_extent : 1);
    if (along.inner_step < 0 or (sliding_.lines and sliding_.lines->inner_step < 0) or sums < 2 or sums > kMostSums or tiles * sliding_.channel_count * vectors() * lanes() * 4 > kMostStandingBytes) return std::nullopt;
    std::int64_t row_count = 0;
    double best = 0;
    for (std::int64_t rows = 1; rows <= std::min(sliding_.channel_count, kMostRows); ++rows) {
      if (sliding_.channel_count % rows != 0) continue;
      for (std::int64_t terms = 1; terms <= std::min(along.inner_extent, kMostTerms); ++terms) {
        if (rows * sums + terms + spare_registers() > unit_.registers) break;
        const auto block = [&](std::int64_t count) { return count == 0 ? 0 : cycles_of(rows * sums * count, rows * along.elements_of(sums, count) + count, count); };
        const std::int64_t blocks = along.inner_extent / terms;
        const double line = (blocks > Sliding::kWrittenOut ? kLineCycles : 0) + static_cast<double>(blocks) * block(terms) + block(along.inner_extent % terms);
        const double cycles = line * static_cast<double>(sliding_.channel_count / rows * vectors());
        if (row_count == 0 or cycles < best) best = cycles, row_count = rows, sliding_.terms = terms;
      }
    }
    if (row_count == 0) return std::nullopt;
    efficiency_ = ideal_cycles(along.inner_extent * sums * sliding_.channel_count) / best;
    if (not choose_line_block()) return std::nullopt;
    return blocking(sliding_.channels, row_count, 1);
  }

  const Kernel& kernel_;
  const Nest& nest_;
  const VectorUnit& unit_;
  const std::vector<std::uint64_t> axes_of_;
  Sliding sliding_;
  std::uint32_t columns_ = 0;
  double efficiency_ = 0;
};

}  // namespace

std::optional<Blocking> choose_sliding(const Kernel& kernel, const Nest& nest, const VectorUnit& unit) {
  SlidingChooser on_large_unit(kernel, nest, kAvx512);
  if (not on_large_unit.run() or on_large_unit.efficiency() < kLeastEfficiency or not SlidingChooser(kernel, nest, kAvx2).run()) return std::nullopt;
  return SlidingChooser(kernel, nest, unit).run();
}

}  // namespace hone
