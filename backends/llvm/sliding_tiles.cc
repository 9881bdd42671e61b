#include "backends/llvm/sliding_tiles.h"

#include <algorithm>
#include <iterator>

namespace hone {

using llvm::Value;

// ---- the sliding factor

/// An outer and an inner index that lie at the position, whether or not they are within their extents.
void SlidingTiles::set_position(const Pair& pair, Value* position) {
  Value* const last = number(pair.inner_extent - 1);
  const bool by_outer = pair.outer_step == 1;
  point_.set_index(pair.outer, by_outer ? position : number(0));
  if (by_outer) point_.set_index(pair.inner, pair.inner_step < 0 ? last : number(0));
  else point_.set_index(pair.inner, pair.inner_step < 0 ? ir_.CreateNSWSub(last, position) : position);
}

void SlidingTiles::go_to(const std::vector<std::uint32_t>& axes, Value* flat) {
  if (axes.empty()) return;
  const Vectors indices = loops_.coordinates(nest_, axes, flat);
  for (std::size_t i = 0; i < axes.size(); ++i) point_.set_index(axes[i], indices[i]);
}

/// Lines are counted from the first that is laid out.
Value* SlidingTiles::element(Value* line, Value* position, Value* channel) {
  Value* place = ir_.CreateNSWAdd(scaled(line, sliding_.along.positions()), position);
  return ir_.CreateInBoundsGEP(ir_.getFloatTy(), laid_out_, ir_.CreateNSWAdd(scaled(place, sliding_.channel_count), channel));
}

/// Those numbers i of the range for which position base + stride * i is inside.
SlidingTiles::Range SlidingTiles::inside(const Pair& pair, Value* base, std::int64_t stride, const Range& range) {
  const auto first_from = [&](std::int64_t position) {
    Value* distance = larger(ir_.CreateNSWSub(number(position), base), number(0));
    return stride == 1 ? distance : ceil_div(distance, number(stride));
  };
  Value* first = larger(range.first, first_from(pair.inside_from));
  return {first, larger(first, smaller(range.last, first_from(pair.inside_to)))};
}

/// All positions along those of some lines that are inside, of all channels: 0 up to the first that is inside, and from the last on. What a vector has beyond the channels is written over by the next position.
void SlidingTiles::lay_out(Value* first_line, Value* lines) {
  PointGrid grid;
  grid.column_axis = grid.lane_axis = sliding_.channels;
  grid.lanes = static_cast<std::uint32_t>(blocking_.lanes);
  grid.columns.clear();
  for (std::int64_t first = 0; first < sliding_.channel_count; first += blocking_.lanes) {
    grid.columns.push_back(number(first));
    grid.masks.push_back(lanes_below(number(sliding_.channel_count - first), blocking_.lanes));
  }
  const Range all{number(0), lines}, there = sliding_.lines ? inside(*sliding_.lines, first_line, 1, all) : all;
  loops_.loop(there.first, there.last, {.unroll = 1}, [&](Value* line) {
    if (sliding_.lines) set_position(*sliding_.lines, ir_.CreateNSWAdd(first_line, line));
    point_.set_grid(grid);
    const auto fill = [&](std::int64_t first, std::int64_t last, bool with_zeros) {
      loops_.loop(number(first), number(last), {.unroll = 4}, [&](Value* position) {
        set_position(sliding_.along, position);
        point_.each_cell([&] {
          Value* vector = with_zeros ? llvm::Constant::getNullValue(vector_type()) : point_.spread(point_.unguarded(sliding_.moving));
          ir_.CreateAlignedStore(vector, element(line, position, grid.columns[point_.column()]), llvm::Align(4));
        });
      });
    };
    fill(0, sliding_.along.inside_from, true);
    fill(sliding_.along.inside_from, sliding_.along.inside_to, false);
    fill(sliding_.along.inside_to, sliding_.along.positions(), true);
    point_.set_grid({});
  });
}

// ---- multiplying

SlidingTiles::Vectors SlidingTiles::variables(std::int64_t count) {
  Vectors made;
  for (std::int64_t i = 0; i < count; ++i) made.push_back(point_.variable(vector_type()));
  return made;
}

Value* SlidingTiles::multiply_add(Value* a, Value* b, Value* sum) {
  if (point_.multiply_add() == MultiplyAdd::kFused) return ir_.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {a, b, sum});
  return ir_.CreateFAdd(ir_.CreateFMul(a, b), sum);
}

void SlidingTiles::multiply(const Vectors& sums, std::int64_t rows, std::span<const std::int64_t> offsets, const Vectors& standing, Value* first_position, Value* from) {
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(first_position);
  const auto terms = static_cast<std::int64_t>(offsets.size()), vectors = static_cast<std::int64_t>(standing.size()) / terms;
  const std::int64_t step = sliding_.along.outer_step, positions = step * (rows - 1) + *std::ranges::max_element(offsets) + 1;
  for (std::int64_t position = 0; position < positions; ++position) {
    if (known != nullptr and (known->getSExtValue() + position < sliding_.along.inside_from or known->getSExtValue() + position >= sliding_.along.inside_to)) continue;
    Value* spread = nullptr;  // the element at the position, in all lanes
    for (std::int64_t term = 0; term < terms; ++term) {
      const std::int64_t behind = position - offsets[static_cast<std::size_t>(term)], row = behind / step;
      if (behind < 0 or behind % step != 0 or row >= rows) continue;
      if (spread == nullptr) spread = ir_.CreateVectorSplat(static_cast<unsigned>(blocking_.lanes), ir_.CreateLoad(ir_.getFloatTy(), ir_.CreateConstInBoundsGEP1_64(ir_.getFloatTy(), from, static_cast<std::uint64_t>(position * sliding_.channel_count))));
      for (std::int64_t v = 0; v < vectors; ++v) {
        Value* variable = sums[static_cast<std::size_t>(row * vectors + v)];
        ir_.CreateStore(multiply_add(spread, standing[static_cast<std::size_t>(term * vectors + v)], ir_.CreateLoad(vector_type(), variable)), variable);
      }
    }
  }
}

std::int64_t SlidingTiles::column_blocks() const { return (nest_.extents[blocking_.columns].value() + blocking_.width() - 1) / blocking_.width(); }

TileSide SlidingTiles::columns_at(Value* column_block) {
  Value* first = scaled(column_block, blocking_.width());
  const bool is_whole = nest_.extents[blocking_.columns].value() % blocking_.width() == 0;
  return {first, blocking_.column_count, is_whole ? nullptr : ir_.CreateNSWSub(extent(blocking_.columns), first)};
}

// ---- sums over a window

void SlidingTiles::finished_sums() {
  const std::int64_t blocks = sliding_.lines ? (sliding_.lines->outer_extent + sliding_.line_block - 1) / sliding_.line_block : 1;
  const Range share = share_of(times_points(number(blocks), sliding_.fixed));
  laid_out_ = point_.array(ir_.getFloatTy(), laid_out_elements());
  point_.when(ir_.CreateICmpSLT(share.first, share.last), [&] {
    if (sliding_.packs_standing) pack_standing();
    loops_.loop(share.first, share.last, {.unroll = 1}, [&](Value* piece) {
      go_to(sliding_.fixed, ir_.CreateUDiv(piece, number(blocks)));
      if (not sliding_.lines) {
        lay_out(number(0), number(1));
        return tiles_of_line(number(0));
      }
      const Pair& lines = *sliding_.lines;
      Value* above = scaled(ir_.CreateURem(piece, number(blocks)), sliding_.line_block);
      Value* count = smaller(number(sliding_.line_block), ir_.CreateNSWSub(number(lines.outer_extent), above));
      const std::int64_t beyond = lines.positions_of(1, lines.inner_extent) - lines.outer_step;  // of the last one's window
      lay_out(scaled(above, lines.outer_step), ir_.CreateNSWAdd(scaled(count, lines.outer_step), number(beyond)));
      loops_.loop(number(0), count, {.unroll = 1}, [&](Value* i) {
        point_.set_index(lines.outer, ir_.CreateNSWAdd(above, i));
        tiles_of_line(scaled(i, lines.outer_step));
      });
    });
  });
}

/// `line`: the first that the windows lie over.
void SlidingTiles::tiles_of_line(Value* line) {
  const std::int64_t height = blocking_.row_count, whole = sliding_.along.outer_extent / height, rest = sliding_.along.outer_extent % height;
  loops_.loop(number(0), number(column_blocks()), {.unroll = 1}, [&](Value* column_block) {
    each_of_few(whole, [&](Value* i) { tile(scaled(i, height), height, column_block, line); });
    if (rest > 0) tile(number(whole * height), rest, column_block, line);
  });
}

void SlidingTiles::tile(Value* first_row, std::int64_t rows, Value* column_block, Value* line) {
  const Pair& along = sliding_.along;
  const Vectors sums = variables(rows * blocking_.column_count);
  for (Value* variable : sums) ir_.CreateStore(llvm::Constant::getNullValue(vector_type()), variable);
  std::vector<std::int64_t> offsets;
  for (std::int64_t term = 0; term < along.inner_extent; ++term) offsets.push_back(along.inner_stride() * (along.inner_step < 0 ? along.inner_extent - 1 - term : term));
  const Range all{number(0), number(window_lines())};
  Value* first_position = scaled(first_row, along.outer_step);
  const Range there = sliding_.lines ? inside(*sliding_.lines, scaled(point_.index(sliding_.lines->outer), sliding_.lines->outer_step), sliding_.lines->inner_stride(), all) : all;
  loops_.loop(there.first, there.last, {.unroll = 1}, [&](Value* i) {
    Value *in_window = i, *at = line;
    if (sliding_.lines) {
      if (sliding_.lines->inner_step < 0) in_window = ir_.CreateNSWSub(number(window_lines() - 1), i);
      at = ir_.CreateNSWAdd(line, scaled(i, sliding_.lines->inner_stride()));
    }
    loops_.loop(number(0), number(sliding_.channel_count), {.unroll = 1}, [&](Value* channel) {
      multiply(sums, rows, offsets, standing_of_window(column_block, in_window, channel), first_position, element(at, first_position, channel));
    });
  });
  llvm::AllocaInst* array = point_.array(vector_type(), static_cast<std::int64_t>(sums.size()));
  for (std::size_t i = 0; i < sums.size(); ++i) ir_.CreateStore(ir_.CreateLoad(vector_type(), sums[i]), ir_.CreateConstInBoundsGEP1_64(vector_type(), array, i));
  const TileSide columns = columns_at(column_block);
  point_.set_grid(along_columns({columns.first, 1, nullptr}));
  point_.make_temps();
  finish_.rows(first_row, {number(0), number(rows)}, {}, columns, {array});
  point_.set_grid({});
}

/// Vectors by block of columns, line of the window, channel, term, and then by column.
Value* SlidingTiles::standing_place(Value* column_block, Value* line, Value* channel, std::int64_t term) {
  Value* step = ir_.CreateNSWAdd(scaled(ir_.CreateNSWAdd(scaled(column_block, window_lines()), line), sliding_.channel_count), channel);
  Value* vector = ir_.CreateNSWAdd(scaled(step, sliding_.terms * blocking_.column_count), number(term * blocking_.column_count));
  return ir_.CreateInBoundsGEP(vector_type(), standing_, vector);
}

void SlidingTiles::pack_standing() {
  standing_ = point_.array(vector_type(), column_blocks() * window_lines() * sliding_.channel_count * sliding_.terms * blocking_.column_count);
  loops_.loop(number(0), number(column_blocks()), {.unroll = 1}, [&](Value* column_block) {
    point_.set_grid(along_columns(columns_at(column_block)));
    loops_.loop(number(0), number(window_lines()), {.unroll = 1}, [&](Value* line) {
      loops_.loop(number(0), number(sliding_.channel_count), {.unroll = 1}, [&](Value* channel) {
        for (std::int64_t term = 0; term < sliding_.terms; ++term) {
          Value* place = standing_place(column_block, line, channel, term);
          const Vectors vectors = standing_in_memory(line, channel, term);
          for (std::size_t v = 0; v < vectors.size(); ++v) ir_.CreateStore(vectors[v], ir_.CreateConstInBoundsGEP1_64(vector_type(), place, v));
        }
      });
    });
    point_.set_grid({});
  });
}

/// Of the columns of the grid.
SlidingTiles::Vectors SlidingTiles::standing_in_memory(Value* line, Value* channel, std::int64_t term) {
  if (sliding_.lines) point_.set_index(sliding_.lines->inner, line);
  point_.set_index(sliding_.channels, channel);
  point_.set_index(sliding_.along.inner, number(term));
  Vectors vectors;
  point_.enter();
  point_.each_cell([&] { vectors.push_back(point_.spread(point_.unguarded(sliding_.standing))); });
  point_.leave();
  return vectors;
}

/// For each term its columns.
SlidingTiles::Vectors SlidingTiles::standing_of_window(Value* column_block, Value* line, Value* channel) {
  Vectors vectors;
  if (not sliding_.packs_standing) point_.set_grid(along_columns(columns_at(column_block)));
  for (std::int64_t term = 0; term < sliding_.terms; ++term) {
    if (sliding_.packs_standing) {
      Value* place = standing_place(column_block, line, channel, term);
      for (std::int64_t v = 0; v < blocking_.column_count; ++v) vectors.push_back(ir_.CreateLoad(vector_type(), ir_.CreateConstInBoundsGEP1_64(vector_type(), place, static_cast<std::uint64_t>(v))));
    } else {
      std::ranges::copy(standing_in_memory(line, channel, term), std::back_inserter(vectors));
    }
  }
  point_.set_grid({});
  return vectors;
}

// ---- sums over all positions

/// A unit: some channels, a line of the window, a block of columns.
SlidingTiles::Unit SlidingTiles::unit_at(Value* unit) {
  const std::int64_t blocks = sliding_.channel_count / blocking_.row_count;
  Value* rest = ir_.CreateUDiv(unit, number(column_blocks()));
  return {ir_.CreateUDiv(rest, number(blocks)), scaled(ir_.CreateURem(rest, number(blocks)), blocking_.row_count), ir_.CreateURem(unit, number(column_blocks()))};
}

/// By point along the outer axis, and then by channel.
Value* SlidingTiles::sums_of(Value* unit) { return ir_.CreateInBoundsGEP(vector_type(), sums_, scaled(unit, sums_in_unit())); }

void SlidingTiles::for_each_fixed(std::size_t depth, const std::function<void()>& body) {
  if (depth == sliding_.fixed.size()) {
    Value* holds = nullptr;
    for (const ExprId id : sliding_.conditions) holds = holds == nullptr ? point_.value(id) : ir_.CreateAnd(holds, point_.value(id));
    return point_.when(holds, body);
  }
  loops_.loop(number(0), extent(sliding_.fixed[depth]), {.unroll = 1}, [&](Value* i) {
    point_.set_index(sliding_.fixed[depth], i);
    for_each_fixed(depth + 1, body);
  });
}

/// What calls share are the units of all points apart: those of one after those of another, so that each of few calls has points of its own; or, where a sum at such a point is over one fixed point at most, all points of
/// one unit after those of another, as there may be points without any.
void SlidingTiles::waiting_sums() {
  laid_out_ = point_.array(ir_.getFloatTy(), laid_out_elements());
  sums_ = point_.array(vector_type(), unit_count() * sums_in_unit());
  Value *points = times_points(number(1), sliding_.apart), *units = number(unit_count());
  const Range share = share_of(ir_.CreateNUWMul(points, units));
  Value* by_unit = ir_.CreateICmpSLE(times_points(number(1), sliding_.fixed), number(1));
  Value* most = larger(points, number(1));
  const Range of_all{ir_.CreateUDiv(share.first, most), ir_.CreateUDiv(share.last, most)};
  Value *first = ir_.CreateSelect(by_unit, number(0), ir_.CreateUDiv(share.first, units)), *last = ir_.CreateSelect(by_unit, points, ceil_div(share.last, units));
  loops_.loop(first, last, {.unroll = 1}, [&](Value* point) {
    go_to(sliding_.apart, point);
    Value* before = ir_.CreateNSWMul(point, units);
    const Range of_point{larger(ir_.CreateNSWSub(share.first, before), number(0)), smaller(ir_.CreateNSWSub(share.last, before), units)};
    sums_over_all({ir_.CreateSelect(by_unit, of_all.first, of_point.first), ir_.CreateSelect(by_unit, of_all.last, of_point.last)});
  });
}

/// Of these units, at a point of the axes apart.
void SlidingTiles::sums_over_all(const Range& share) {
  clear(sums_, scaled(share.first, sums_in_unit()), scaled(share.last, sums_in_unit()));
  const Vectors sums = variables(sums_in_unit());
  const auto add_lines = [&](Value* first, Value* count) {
    loops_.loop(share.first, share.last, {.unroll = 1}, [&](Value* unit) {
      const auto in_memory = [&](std::size_t i) { return ir_.CreateConstInBoundsGEP1_64(vector_type(), sums_of(unit), i); };
      for (std::size_t i = 0; i < sums.size(); ++i) ir_.CreateStore(ir_.CreateLoad(vector_type(), in_memory(i)), sums[i]);
      const Range all{number(0), count};
      Value* window_line = sliding_.lines ? scaled(unit_at(unit).window_line, sliding_.lines->outer_step) : number(0);
      const Range there = sliding_.lines ? inside(*sliding_.lines, ir_.CreateNSWAdd(window_line, scaled(first, sliding_.lines->inner_stride())), sliding_.lines->inner_stride(), all) : all;
      loops_.loop(there.first, there.last, {.unroll = 1}, [&](Value* i) {
        Value* line = i;
        if (sliding_.lines) {
          point_.when(ir_.CreateICmpEQ(unit, share.first), [&] { ask_for_line(ir_.CreateNSWAdd(ir_.CreateNSWAdd(first, count), i)); });
          point_.set_index(sliding_.lines->inner, ir_.CreateNSWAdd(first, i));
          line = ir_.CreateNSWAdd(window_line, scaled(i, sliding_.lines->inner_stride()));
        }
        const std::int64_t whole = sliding_.along.inner_extent / sliding_.terms, rest = sliding_.along.inner_extent % sliding_.terms;
        each_of_few(whole, [&](Value* block) { add_terms(sums, unit, line, scaled(block, sliding_.terms), sliding_.terms); });
        if (rest > 0) add_terms(sums, unit, line, number(whole * sliding_.terms), rest);
      });
      for (std::size_t i = 0; i < sums.size(); ++i) ir_.CreateStore(ir_.CreateLoad(vector_type(), sums[i]), in_memory(i));
    });
  };
  for_each_fixed(0, [&] {
    if (not sliding_.lines) {
      lay_out(number(0), number(1));
      return add_lines(number(0), number(1));
    }
    const Pair& lines = *sliding_.lines;
    loops_.strided(number(0), number(lines.inner_extent), number(sliding_.line_block), {.unroll = 1}, [&](Value* first) {
      Value* count = smaller(number(sliding_.line_block), ir_.CreateNSWSub(number(lines.inner_extent), first));
      const std::int64_t beyond = lines.positions_of(lines.outer_extent, 1) - lines.inner_stride();
      lay_out(scaled(first, lines.inner_stride()), ir_.CreateNSWAdd(scaled(count, lines.inner_stride()), number(beyond)));
      add_lines(first, count);
    });
  });
  loops_.loop(share.first, share.last, {.unroll = 1}, [&](Value* unit) { finish_unit(unit); });
}

/// What both factors have there will be wanted with the next lines; behind the last line of an image comes the first of the next one.
void SlidingTiles::ask_for_line(Value* line) {
  constexpr std::int64_t kCacheLine = 16;  // elements
  point_.set_index(sliding_.lines->inner, line);
  for (const std::uint32_t axis : {sliding_.lines->outer, sliding_.along.outer}) point_.set_index(axis, number(0));
  loops_.loop(number(0), number(sliding_.along.inner_extent), {.unroll = 4}, [&](Value* i) {
    point_.set_index(sliding_.along.inner, i);
    const auto ask_for = [&](ExprId load, std::uint32_t axis) {
      for (std::int64_t first = 0; first < nest_.extents[axis].value(); first += kCacheLine) {
        point_.set_index(axis, number(first));
        point_.prefetch(kernel_.exprs[load].slot, nest_.loads.at(load), false);
      }
    };
    ask_for(sliding_.moving, sliding_.channels);
    ask_for(sliding_.standing, blocking_.columns);
  });
}

void SlidingTiles::add_terms(const Vectors& sums, Value* unit, Value* line, Value* first, std::int64_t terms) {
  const Pair& along = sliding_.along;
  const Unit place = unit_at(unit);
  Vectors standing;
  std::vector<std::int64_t> offsets;
  point_.set_grid(along_columns(columns_at(place.column_block)));
  for (std::int64_t term = 0; term < terms; ++term) {
    point_.set_index(along.inner, ir_.CreateNSWAdd(first, number(term)));
    point_.enter();
    standing.push_back(point_.spread(point_.unguarded(sliding_.standing)));
    point_.leave();
    offsets.push_back(along.inner_step * term);
  }
  point_.set_grid({});
  const std::int64_t rows = blocking_.row_count;
  for (std::int64_t row = 0; row < rows; ++row) {
    Vectors of_row;
    for (std::int64_t i = 0; i < along.outer_extent; ++i) of_row.push_back(sums[static_cast<std::size_t>(i * rows + row)]);
    Value* first_position = scaled(first, along.inner_step);
    multiply(of_row, along.outer_extent, offsets, standing, first_position, element(line, first_position, ir_.CreateNSWAdd(place.first_channel, number(row))));
  }
}

void SlidingTiles::finish_unit(Value* unit) {
  const Unit place = unit_at(unit);
  if (sliding_.lines) point_.set_index(sliding_.lines->outer, place.window_line);
  const TileSide columns = columns_at(place.column_block);
  point_.set_grid(along_columns({columns.first, 1, nullptr}));
  point_.make_temps();
  loops_.loop(number(0), number(sliding_.along.outer_extent), {.unroll = 1}, [&](Value* i) {
    point_.set_index(sliding_.along.outer, i);
    finish_.rows(place.first_channel, {number(0), number(blocking_.row_count)}, {.unroll = 1}, columns, {ir_.CreateInBoundsGEP(vector_type(), sums_of(unit), scaled(i, blocking_.row_count))});
  });
  point_.set_grid({});
}

}  // namespace hone
