#include "backends/llvm/blocks.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <utility>

#include "backends/llvm/matrix_tiles.h"
#include "backends/llvm/packing.h"
#include "backends/llvm/phase_code.h"
#include "backends/llvm/sliding_tiles.h"
#include "backends/llvm/tile_finish.h"
#include "backends/llvm/tile_order.h"

namespace hone {

namespace {

using llvm::Value;

class BlockCode : private TileOrder {
 public:
  BlockCode(const Kernel& kernel, const Nest& nest, const Blocking& blocking, Point& point)
      : TileOrder(kernel, nest, blocking, point), code_(point, kernel, nest), packing_(nest, blocking, point), matrices_(kernel, nest, blocking, point), finish_(kernel, nest, blocking, point) {}

  void run() {
    begin();
    const Range tiles = share_of(tile_count());
    if (blocking_.matrices) matrices_.begin();
    panels(tiles);
    if (blocking_.matrices) matrices_.end();
  }

 private:
  /// These tiles, panel by panel.
  void panels(const Range& tiles) {
    const Range panels{ir_.CreateUDiv(tiles.first, panel_height()), ceil_div(tiles.last, panel_height())};
    if (blocking_.sum_block > 0) return groups(panels, tiles);
    loops_.loop(panels.first, panels.last, {.unroll = 1}, [&](Value* panel) { this->panel(panel, tiles); });
  }

  void panel(Value* panel, const Range& tiles) {
    const Place place = place_of(panel);
    go_to(place);
    columns(place.column_block, [&](const TileSide& columns) {
      if (not blocking_.rows) return cells({nullptr, 1, nullptr}, columns);
      if (blocking_.packed.valid()) packing_.columns(columns, all_points());
      each_tile(tiles_of(panel, place, tiles), [&](Value*, const TileSide& rows) { cells(rows, columns); });
    });
  }

  template <typename Body>
  void each_tile(const Range& tiles, Body body) {
    loops_.loop(tiles.first, tiles.last, {.unroll = 1}, [&](Value* block) { rows(block, [&](const TileSide& rows) { body(block, rows); }); });
  }

  // ---- sums in parts

  /// Panels beside each other, of the same rows, whose sums wait in memory while their parts are added.
  void groups(const Range& panels, const Range& tiles) {
    Value* width = larger(panels_beside(), number(1));
    loops_.loop(ir_.CreateUDiv(panels.first, width), ceil_div(panels.last, width), {.unroll = 1}, [&](Value* row) {
      Value* leftmost = ir_.CreateNSWMul(row, width);
      Value* first = larger(leftmost, panels.first);
      Value* last = smaller(ir_.CreateNSWAdd(leftmost, width), panels.last);
      loops_.strided(first, last, number(blocking_.panels_at_a_time), {.unroll = 1}, [&](Value* from) {
        Value* to = smaller(ir_.CreateNSWAdd(from, number(blocking_.panels_at_a_time)), last);
        blocking_.matrices ? matrix_group({from, to}, tiles) : group({from, to}, tiles);
      });
    });
  }

  /// There is one sum: the columns' factor is packed, for each panel, and the rows' where it would be walked with a stride, for all of them.
  void group(const Range& panels, const Range& tiles) {
    const std::int64_t cells = tile_cells();
    llvm::Type* type = vector_type();
    llvm::AllocaInst* array = point_.array(type, blocking_.panels_at_a_time * blocking_.panel_rows * cells);
    const Place leftmost = place_of(panels.first);
    const auto sums_of = [&](Value* panel, Value* block) { return ir_.CreateInBoundsGEP(type, array, ir_.CreateNSWMul(number_among(panels, panel, leftmost, block), number(cells))); };
    Value* used = ir_.CreateNSWMul(tiles_of_all(panels), number(cells));
    clear(array, number(0), used);
    each_part([&](const SumPart& part, Value* is_last) {
      go_to(leftmost);
      if (blocking_.rows_packed.valid()) packing_.rows(leftmost.above, below(leftmost), part);
      loops_.loop(panels.first, panels.last, {.unroll = 1}, [&](Value* panel) {
        const Place place = place_of(panel);
        go_to(place);
        const Range mine = tiles_of(panel, place, tiles);
        columns(place.column_block, [&](const TileSide& columns) {
          packing_.columns(columns, part);
          each_tile(mine, [&](Value* block, const TileSide& rows) {
            packing_.set_tile(ir_.CreateNSWSub(block, leftmost.above));
            add_part(rows, columns, part, sums_of(panel, block), [&](Value* share) {
              const Range columns_of_panel{columns.first, ir_.CreateNSWAdd(columns.first, number(blocking_.width()))}, rows_of_panel{first_row(leftmost.above), first_row(below(leftmost))};
              if (blocking_.copied) prefetch_behind(part, blocking_.packed, columns_of_panel, {ir_.CreateNSWSub(block, mine.first), ir_.CreateNSWSub(mine.last, mine.first)}, share);
              if (blocking_.rows_packed.valid()) prefetch_behind(part, blocking_.rows_packed, rows_of_panel, {number_among(panels, panel, leftmost, block), tiles_of_all(panels)}, share);
            });
          });
          point_.when(is_last, [&] { each_tile(mine, [&](Value* block, const TileSide& rows) { finish(rows, columns, {sums_of(panel, block)}); }); });
        });
      });
    });
  }

  /// body(part, is it the last one?)
  template <typename Body>
  void each_part(Body body) {
    Value* end = all_points().to;
    Value* once_at_least = larger(end, number(1));  // an empty sum is finished, too
    loops_.strided(number(0), once_at_least, number(blocking_.sum_block), {.unroll = 1}, [&](Value* from) {
      const SumPart part = part_from(from);
      body(part, ir_.CreateICmpEQ(part.to, end));
    });
  }
  SumPart part_from(Value* from) { return {from, smaller(ir_.CreateNSWAdd(from, number(blocking_.sum_block)), all_points().to)}; }

  // ---- the matrix unit

  /// Packing that is done a few pieces at a time, between instructions of the matrix unit.
  class Ahead {
   public:
    using Pack = std::function<void(const MatrixTiles::Pieces& pieces)>;

    /// All `pieces` are packed in `times`, if some() is run so often.
    Ahead(BlockCode& code, Value* pieces, Value* times, Pack pack)
        : code_(code), pieces_(pieces), share_(code.ceil_div(pieces, code.larger(times, code.number(1)))), pack_(std::move(pack)), done_(code.point_.variable(code.ir_.getInt64Ty())) {
      code_.ir_.CreateStore(code_.number(0), done_);
    }
    void some() { up_to(code_.smaller(code_.ir_.CreateNSWAdd(done(), share_), pieces_)); }
    void rest() { up_to(pieces_); }

   private:
    Value* done() { return code_.ir_.CreateLoad(code_.ir_.getInt64Ty(), done_); }
    void up_to(Value* end) {
      pack_({done(), end});
      code_.ir_.CreateStore(end, done_);
    }

    BlockCode& code_;
    Value *pieces_, *share_;
    const Pack pack_;
    llvm::AllocaInst* done_;
  };

  /// Two places of `bytes` each: one is read while the other is packed.
  struct Pair {
    llvm::AllocaInst* array;
    std::int64_t bytes;
  };
  Value* bytes_in(Value* array, Value* which, std::int64_t bytes) { return ir_.CreateInBoundsGEP(ir_.getInt8Ty(), array, ir_.CreateNSWMul(which, number(bytes))); }
  Value* place_in(const Pair& pair, Value* which) { return bytes_in(pair.array, which, pair.bytes); }
  Value* other(Value* which) { return ir_.CreateXor(which, number(1)); }

  /// What all panels and parts of a group share.
  struct MatrixGroup {
    Range panels, tiles;
    Place leftmost;
    Value* below;
    llvm::AllocaInst* sums;
    Pair rows, columns;
    llvm::AllocaInst* turn;  ///< of the columns: in which place the panel's are
  };

  /// A group whose tiles are multiplied by the matrix unit. Its instructions take long and leave the vector units free: between them each tile's predecessor is finished, and the factors that come next are packed,
  /// the columns' of the next panel and the rows' of the next part.
  void matrix_group(const Range& panels, const Range& tiles) {
    const std::int64_t waiting = blocking_.is_one_part ? 2 : blocking_.panels_at_a_time * blocking_.panel_rows, rows = blocking_.panel_rows * matrices_.row_bytes();
    const Place leftmost = place_of(panels.first);
    llvm::Type* byte = ir_.getInt8Ty();
    const MatrixGroup group{panels, tiles, leftmost, below(leftmost), point_.array(vector_type(), waiting * tile_cells()), {point_.array(byte, (blocking_.is_one_part ? 1 : 2) * rows), rows},
                            {point_.array(byte, 2 * matrices_.column_bytes()), matrices_.column_bytes()}, point_.variable(ir_.getInt64Ty())};
    const SumPart first = part_from(number(0));
    go_to(leftmost);
    matrices_.pack_rows(leftmost.above, group.below, first, {number(0), matrices_.row_pieces(leftmost.above, group.below, first)}, group.rows.array);
    matrices_.pack_columns(first_column(leftmost), first, {number(0), matrices_.column_pieces(first)}, group.columns.array);
    ir_.CreateStore(number(0), group.turn);
    each_part([&](const SumPart& part, Value* is_last) {
      const SumPart next = part_from(part.to);
      Value* which = blocking_.is_one_part ? number(0) : ir_.CreateAnd(ir_.CreateUDiv(part.from, number(blocking_.sum_block)), number(1));
      Value* steps = ir_.CreateNSWMul(ir_.CreateNSWMul(ir_.CreateNSWSub(panels.last, panels.first), panel_height()), matrices_.steps(part));
      std::optional<Ahead> next_rows;
      if (not blocking_.is_one_part)
        next_rows.emplace(*this, matrices_.row_pieces(leftmost.above, group.below, next), steps,
                          [&](const MatrixTiles::Pieces& pieces) { matrices_.pack_rows(leftmost.above, group.below, next, pieces, place_in(group.rows, other(which))); });
      loops_.loop(panels.first, panels.last, {.unroll = 1}, [&](Value* panel) { matrix_panel(group, panel, part, next, is_last, place_in(group.rows, which), next_rows); });
      go_to(leftmost);
      if (next_rows) next_rows->rest();
    });
  }

  Value* first_row(Value* block) { return ir_.CreateNSWMul(block, number(blocking_.row_count)); }
  std::int64_t tile_cells() const { return blocking_.row_count * blocking_.column_count; }
  Value* first_column(const Place& place) { return ir_.CreateNSWMul(place.column_block, number(blocking_.width())); }

  /// A part of a panel's sums; behind it comes the next panel's, or the first panel's of the part `next`.
  void matrix_panel(const MatrixGroup& group, Value* panel, const SumPart& part, const SumPart& next, Value* is_last, Value* rows, std::optional<Ahead>& next_rows) {
    Value* one_more = ir_.CreateNSWAdd(panel, number(1));
    Value* goes_on = ir_.CreateICmpSLT(one_more, group.panels.last);
    const Place place = place_of(panel), next_place = place_of(ir_.CreateSelect(goes_on, one_more, group.panels.first));
    const SumPart next_part{ir_.CreateSelect(goes_on, part.from, next.from), ir_.CreateSelect(goes_on, part.to, next.to)};
    const Range mine = tiles_of(panel, place, group.tiles);
    Value* turn = ir_.CreateLoad(ir_.getInt64Ty(), group.turn);
    Ahead next_columns(*this, matrices_.column_pieces(next_part), ir_.CreateNSWMul(ir_.CreateNSWSub(mine.last, mine.first), matrices_.steps(part)), [&](const MatrixTiles::Pieces& pieces) {
      go_to(next_place);
      matrices_.pack_columns(first_column(next_place), next_part, pieces, place_in(group.columns, other(turn)));
      go_to(place);
    });
    go_to(place);
    columns(place.column_block, [&](const TileSide& columns) {
      point_.set_grid(along_columns({columns.first, 1, nullptr}));
      point_.make_temps();
      const auto sums_of = [&](Value* block) {
        Value* is_one_part = ir_.CreateICmpSLE(all_points().to, number(blocking_.sum_block));  // a tile is then done with when the next one is
        Value* tile = ir_.CreateSelect(is_one_part, ir_.CreateAnd(block, number(1)), number_among(group.panels, panel, group.leftmost, block));
        return ir_.CreateInBoundsGEP(vector_type(), group.sums, ir_.CreateNSWMul(tile, number(tile_cells())));
      };
      Value* height = number(blocking_.row_count);
      loops_.loop(mine.first, mine.last, {.unroll = 1}, [&](Value* block) {
        Value* before = ir_.CreateNSWSub(block, number(1));
        Value* unfinished = ir_.CreateSelect(ir_.CreateAnd(is_last, ir_.CreateICmpSGT(block, mine.first)), height, number(0));
        Value* steps = larger(matrices_.steps(part), number(1));
        const auto finished_at = [&](Value* step) { return ir_.CreateUDiv(ir_.CreateNSWMul(step, unfinished), steps); };
        matrices_.multiply(bytes_in(rows, ir_.CreateNSWSub(block, group.leftmost.above), matrices_.row_bytes()), place_in(group.columns, turn), part, sums_of(block), [&](Value* step) {
          finish_.rows(first_row(before), {finished_at(step), finished_at(ir_.CreateNSWAdd(step, number(1)))}, {.unroll = 1}, columns, {sums_of(before)});
          next_columns.some();
          if (next_rows) next_rows->some();
        });
      });
      Value* last = ir_.CreateNSWSub(mine.last, number(1));
      Value* left = ir_.CreateSelect(ir_.CreateICmpEQ(all_points().to, number(0)), mine.first, larger(last, mine.first));  // of an empty sum all are
      loops_.loop(ir_.CreateSelect(is_last, left, mine.last), mine.last, {.unroll = 1}, [&](Value* block) {
        Value* there = smaller(ir_.CreateNSWSub(extent(*blocking_.rows), first_row(block)), height);
        finish_.rows(first_row(block), {number(0), there}, {.unroll = 1}, columns, {sums_of(block)});
      });
      point_.set_grid({});
    });
    next_columns.rest();
    ir_.CreateStore(other(turn), group.turn);
  }

  Value* cell_at(Value* cells, llvm::Type* type, std::int64_t i) { return ir_.CreateConstInBoundsGEP1_64(type, cells, static_cast<std::uint64_t>(i)); }

  static constexpr std::int64_t kLine = 16;   ///< elements that are asked for together
  static constexpr std::int64_t kShares = 8;  ///< of a tile's steps in a part, before each of which it asks for some of the next part

  /// One of several tiles that share something out.
  struct Sharer {
    Value *number, *count;
  };

  /// Asks for a tile's share of what a factor, contiguous along its side of the tile, has at the points of the part behind `part`: packing waits for memory, sums do not.
  void prefetch_behind(const SumPart& part, ExprId factor, const Range& side, const Sharer& tile, Value* share) {
    if (kernel_.exprs[factor].op != ScalarOp::kLoad) return;
    Value *block = number(blocking_.sum_block), *points = ceil_div(block, ir_.CreateNSWMul(tile.count, number(kShares)));
    Value* first = ir_.CreateNSWMul(ir_.CreateNSWAdd(ir_.CreateNSWMul(tile.number, number(kShares)), share), points);
    loops_.loop(first, smaller(ir_.CreateNSWAdd(first, points), block), {.unroll = 1}, [&](Value* point) {
      point_.set_index(nest_.inner[0].back(), ir_.CreateNSWAdd(part.to, point));
      loops_.strided(side.first, side.last, number(kLine), {.unroll = 1}, [&](Value* at) {
        point_.set_grid(with_rows(along_columns({at, 1, nullptr}), {at, 1, nullptr}));  // the factor depends on one of them
        point_.prefetch(kernel_.exprs[factor].slot, nest_.loads.at(factor), false);
      });
    });
  }

  /// ahead(share) before each share of the steps, unless the part is the last one.
  template <typename Ahead>
  void add_part(const TileSide& rows, const TileSide& columns, const SumPart& part, Value* sums, Ahead ahead) {
    point_.set_grid(with_rows(along_columns(columns), rows));
    point_.make_temps();
    const std::vector<Value*> cells = point_.temp(0).cells;
    const auto in_memory = [&](std::size_t i) { return cell_at(sums, point_.cell_type(DType::kF32), static_cast<std::int64_t>(i)); };
    for (std::size_t i = 0; i < cells.size(); ++i) point_.write(cells[i], point_.read(in_memory(i), DType::kF32));
    sum(rows, columns, part, kShares, ahead);
    for (std::size_t i = 0; i < cells.size(); ++i) point_.write(in_memory(i), point_.read(cells[i], DType::kF32));
    point_.set_grid({});
  }

  // ---- a tile

  void cells(const TileSide& rows, const TileSide& columns) {
    if (not blocking_.rows and not blocking_.dots) {
      point_.set_grid(along_columns(columns));
      point_.make_temps();
      for (std::size_t p = 0; p < kernel_.phases.size(); ++p) phase(p);
    } else {
      point_.set_grid(with_rows(blocking_.dots ? dot_products(columns) : along_columns(columns), rows));
      point_.make_temps();
      code_.start(0);
      if ((nest_.inner[0].size() == 1 or blocking_.joined) and not blocking_.dots) sum(rows, columns, all_points(), 1, [](Value*) {});
      else if (nest_.inner[0].size() == 1) lanes_along(0, nest_.inner[0][0], counting(all_points(), rows, columns));
      else inner_loops(0, 0);
      finish(rows, columns, collect(columns.count));
    }
    point_.set_grid({});
  }

  PointGrid with_rows(PointGrid grid, const TileSide& rows) {
    grid.row_axis = *blocking_.rows;
    grid.rows = indices(rows, *blocking_.rows);
    return grid;
  }

  /// The sums over a part of the innermost inner axis. Between its steps it asks for what the phases behind the sums touch at the cells, row by row: rows of it
  /// lie apart, which no processor foresees, and all of them at once are more than it can ask for. Before other parts than the last it does what `ahead` says, in so many shares.
  template <typename Ahead>
  void sum(const TileSide& rows, const TileSide& columns, const SumPart& part, std::int64_t shares, Ahead ahead) {
    const PointGrid grid = point_.grid();
    const std::uint32_t axis = nest_.inner[0].back();
    const SumPart counted = counting(part, rows, columns);
    if (blocking_.joined) point_.set_index(nest_.inner[0].front(), number(0));  // the last axis goes on beyond its extent
    const auto steps = [&](Value* from, Value* to) {
      loops_.loop(from, to, {.unroll = unrolling(nest_.extents[axis])}, [&](Value* i) {
        point_.set_index(axis, i);
        code_.run(0, PhaseCode::Order::kAsWritten);
      });
    };
    if (not blocking_.prefetches) return steps(counted.from, counted.to);
    Value* is_last = ir_.CreateICmpEQ(part.to, all_points().to);  // the cells are wanted behind it; before it, a row is asked for to no harm
    Value* times = ir_.CreateSelect(is_last, number(rows.count), number(shares));
    Value* share = ceil_div(ir_.CreateNSWSub(counted.to, counted.from), times);
    loops_.loop(number(0), times, {.unroll = 1}, [&](Value* row) {
      if (shares > 1) loops_.branch(is_last, [&] { prefetch(ir_.CreateNSWAdd(rows.first, row), columns); }, [&] { ahead(row); });
      else prefetch(ir_.CreateNSWAdd(rows.first, row), columns);
      prefetch_beginning(ir_.CreateNSWAdd(rows.first, ir_.CreateNSWAdd(row, number(blocking_.row_count))));
      point_.set_grid(grid);
      Value* from = ir_.CreateNSWAdd(counted.from, ir_.CreateNSWMul(row, share));
      steps(from, smaller(ir_.CreateNSWAdd(from, share), counted.to));
    });
  }

  /// What of a part of a tile's sums lies in the kernel's triangle, as far as whole rows and columns of the tile do: elsewhere all terms are 0, or no sum is wanted.
  SumPart counting(const SumPart& part, const TileSide& rows, const TileSide& columns) {
    if (not kernel_.triangle or nest_.inner[0].size() != 1) return part;
    const auto [low, high] = *kernel_.triangle;
    if (nest_.dropped[low] or nest_.dropped[high]) return part;
    const std::uint32_t summed = nest_.inner[0][0];
    const auto first = [&](std::uint32_t axis) { return axis == blocking_.rows ? rows.first : axis == blocking_.columns ? columns.first : point_.index(axis); };
    const auto behind = [&](std::uint32_t axis) {
      const std::int64_t count = axis == blocking_.rows ? rows.count : axis != blocking_.columns ? 1 : blocking_.dots ? columns.count : columns.count * blocking_.lanes;
      return ir_.CreateNSWAdd(first(axis), number(count));
    };
    if (low == summed) return {part.from, larger(part.from, smaller(part.to, behind(high)))};
    if (high == summed) return {smaller(part.to, larger(part.from, first(low))), part.to};
    return {part.from, ir_.CreateSelect(ir_.CreateICmpSLT(first(low), behind(high)), part.to, part.from)};
  }

  /// What lies at a row's cells in memory.
  void prefetch(Value* row, const TileSide& columns) {
    const auto lies_at_cells = [&](const Offset& offset) {
      return offset.values.empty() and offset.axes.contains(*blocking_.rows) and offset.axes.contains(blocking_.columns);
    };
    PointGrid grid = along_columns(columns);
    grid.row_axis = *blocking_.rows;
    grid.rows = {row};
    point_.set_grid(grid);
    point_.each_cell([&] {
      for (std::size_t p = 1; p < kernel_.phases.size(); ++p) {
        for (const ExprId id : expressions_of(kernel_, p))
          if (kernel_.exprs[id].op == ScalarOp::kLoad and lies_at_cells(nest_.loads.at(id))) point_.prefetch(kernel_.exprs[id].slot, nest_.loads.at(id));
        for (std::size_t s = 0; s < kernel_.phases[p].stores.size(); ++s)
          if (lies_at_cells(nest_.stores[p][s])) point_.prefetch(kernel_.phases[p].stores[s].buffer, nest_.stores[p][s]);
      }
    });
  }

  /// Where a row's factor begins, if it lies along the sum: the processor foresees the rest of it, once it is being read.
  void prefetch_beginning(Value* row) {
    constexpr std::int64_t kLines = 4;
    const std::uint32_t axis = nest_.inner[0].back();
    const std::vector<std::uint64_t> axes_of = axes_of_expressions(kernel_);
    PointGrid grid;
    grid.row_axis = *blocking_.rows;
    grid.rows = {row};
    point_.set_grid(grid);
    for (const ExprId id : expressions_of(kernel_, 0)) {
      if (kernel_.exprs[id].op != ScalarOp::kLoad or id == blocking_.rows_packed) continue;
      const Offset& offset = nest_.loads.at(id);
      if (not offset.values.empty() or not offset.axes.contains(*blocking_.rows) or stride_along(offset, axis, axes_of) != Stride::kOne) continue;
      for (std::int64_t line = 0; line < kLines; ++line) {
        point_.set_index(axis, number(line * kLine));
        point_.prefetch(kernel_.exprs[id].slot, offset);
      }
    }
  }

  PointGrid dot_products(const TileSide& columns) {
    PointGrid grid;
    grid.column_axis = blocking_.columns;
    grid.columns = indices(columns, blocking_.columns);
    grid.lane_axis = nest_.inner[0].back();
    grid.lanes = static_cast<std::uint32_t>(blocking_.lanes);
    return grid;
  }

  void phase(std::size_t p) {
    code_.start(p);
    inner_loops(p, 0);
  }

  void inner_loops(std::size_t phase, std::size_t depth) {
    const std::vector<std::uint32_t>& axes = nest_.inner[phase];
    if (depth == axes.size()) return code_.run(phase, PhaseCode::Order::kAsWritten);
    const bool innermost = depth + 1 == axes.size();
    if (innermost and blocking_.dots) return lanes_along(phase, axes[depth], {number(0), extent(axes[depth])});
    loops_.loop(number(0), extent(axes[depth]), {.unroll = innermost ? unrolling(nest_.extents[axes[depth]]) : 1}, [&](Value* i) {
      point_.set_index(axes[depth], i);
      inner_loops(phase, depth + 1);
    });
  }

  /// Steps of an innermost loop that are written one after the other: enough to hide the loop, and all of a short one.
  std::int64_t unrolling(const Size& extent) const {
    constexpr std::int64_t kFewCells = 8, kManyCells = 200;
    if (not blocking_.rows) return 1;
    const std::int64_t cells = blocking_.row_count * blocking_.column_count;
    if (extent.is_constant() and extent.value() <= 8 and extent.value() * cells <= kManyCells) return std::max<std::int64_t>(1, extent.value());
    return cells <= kFewCells ? 4 : 1;
  }

  /// The innermost axis of dot products: whole vectors that have points of the part, and what is left under a mask.
  void lanes_along(std::size_t phase, std::uint32_t axis, const SumPart& part) {
    Value* lanes = number(blocking_.lanes);
    Value* rest = ir_.CreateURem(extent(axis), lanes);
    Value* whole = ir_.CreateNSWSub(extent(axis), rest);
    loops_.strided(ir_.CreateNSWSub(part.from, ir_.CreateURem(part.from, lanes)), smaller(whole, part.to), lanes, {.unroll = 1}, [&](Value* i) {
      point_.set_index(axis, i);
      code_.run(phase, PhaseCode::Order::kAsWritten);
    });
    if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(rest); constant != nullptr and constant->isZero()) return;
    point_.when(ir_.CreateAnd(ir_.CreateICmpSGT(rest, number(0)), ir_.CreateICmpSGT(part.to, whole)), [&] {
      PointGrid grid = point_.grid();
      grid.masks.assign(grid.columns.size(), lanes_below(rest, blocking_.lanes));
      point_.set_grid(grid);
      point_.set_index(axis, whole);
      code_.run(phase, PhaseCode::Order::kAsWritten);
      grid.masks.clear();
      point_.set_grid(grid);
    });
  }

  // ---- behind the sums

  /// The phases behind the contraction, row by row, from sums that lie in memory: registers again, where LLVM unrolls the loop.
  void finish(const TileSide& rows, const TileSide& columns, const std::vector<Value*>& sums) {
    finish_.rows(rows.first, {number(0), rows.left == nullptr ? number(rows.count) : rows.left}, {.unroll = rows.left == nullptr ? 0 : 1}, columns, sums);
  }

  /// An array of all sums for each temporary, by row and then by column: of dot products one vector a row.
  std::vector<Value*> collect(std::int64_t columns) {
    std::vector<Value*> arrays;
    for (std::uint32_t t = 0; t < point_.temp_count(); ++t) {
      std::vector<Value*> sums;
      for (Value* variable : point_.temp(t).cells) sums.push_back(point_.read(variable, DType::kF32));
      if (blocking_.dots) sums = totals(sums, columns);
      llvm::Type* type = sums.front()->getType();
      llvm::AllocaInst* array = point_.variable(llvm::ArrayType::get(type, sums.size()));
      for (std::size_t i = 0; i < sums.size(); ++i) ir_.CreateStore(sums[i], ir_.CreateConstInBoundsGEP1_64(type, array, i));
      arrays.push_back(array);
    }
    return arrays;
  }

  /// For each row, the sums of its `columns` vectors as the lanes of one.
  std::vector<Value*> totals(const std::vector<Value*>& partial, std::int64_t columns) {
    std::vector<Value*> result;
    for (auto row = partial.begin(); row != partial.end(); row += columns) {
      std::vector<Value*> vectors(row, row + columns);
      vectors.resize(std::bit_ceil(vectors.size()), llvm::Constant::getNullValue(vectors.front()->getType()));
      const std::size_t lanes = vectors.size();
      while (vectors.size() > 1) {
        for (std::size_t i = 0; i < vectors.size() / 2; ++i) vectors[i] = sum_of_neighbours(vectors[2 * i], vectors[2 * i + 1]);
        vectors.resize(vectors.size() / 2);
      }
      Value* sums = vectors.front();
      for (std::size_t length = static_cast<std::size_t>(blocking_.lanes); length > lanes; length /= 2) sums = sum_of_neighbours(sums, nullptr);
      result.push_back(lanes == 1 ? ir_.CreateExtractElement(sums, std::uint64_t{0}) : sums);
    }
    return result;
  }

  /// The sums of a's lanes 0 and 1, 2 and 3, ..., and then of b's.
  Value* sum_of_neighbours(Value* a, Value* b) {
    const auto length = static_cast<int>(llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements()) * (b == nullptr ? 1 : 2);
    std::vector<int> even, odd;
    for (int i = 0; i < length; i += 2) even.push_back(i), odd.push_back(i + 1);
    if (b == nullptr) b = llvm::PoisonValue::get(a->getType());
    return ir_.CreateFAdd(ir_.CreateShuffleVector(a, b, even), ir_.CreateShuffleVector(a, b, odd));
  }

  PhaseCode code_;
  Packing packing_;
  MatrixTiles matrices_;
  TileFinish finish_;
};

}  // namespace

void emit_blocks(const Kernel& kernel, const Nest& nest, const Blocking& blocking, Point& point) {
  if (blocking.sliding) SlidingTiles(kernel, nest, blocking, point).run();
  else BlockCode(kernel, nest, blocking, point).run();
}

}  // namespace hone
