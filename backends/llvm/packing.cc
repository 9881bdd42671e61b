#include "backends/llvm/packing.h"

#include <algorithm>
#include <bit>

namespace hone {

using llvm::Value;

void Packing::columns(const TileSide& columns, const SumPart& part) {
  std::int64_t points = blocking_.sum_block;
  if (points == 0) {
    points = 1;
    for (const std::uint32_t axis : nest_.inner[0]) points *= nest_.extents[axis].value();
  }
  llvm::Type* type = vector_type();
  llvm::AllocaInst* array = point_.array(type, points * columns.count);
  const Place place = [this, type, array, part, count = columns.count](Value* point, Value* column) {
    Value* vector = ir_.CreateNSWMul(ir_.CreateNSWSub(point, part.from), number(count));
    return ir_.CreateInBoundsGEP(type, array, ir_.CreateNSWAdd(vector, column));
  };
  point_.restore(blocking_.packed);
  if (blocking_.copied) copy(columns, part, place);
  else transpose_all(columns, 0, part, place);
  point_.replace(blocking_.packed, [this, type, place] { return ir_.CreateLoad(type, place(inner_point(), number(static_cast<std::int64_t>(point_.column())))); });
}

void Packing::rows(Value* above, Value* below, const SumPart& part) {
  constexpr std::int64_t kStrip = 8;  // points whose rows are copied side by side, so that a cache line is read once for all tiles that share it
  const std::int64_t height = blocking_.row_count;
  const std::int64_t lanes = std::min(blocking_.lanes, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(height))));
  const std::uint32_t axis = nest_.inner[0].back();
  llvm::Type* element = ir_.getFloatTy();
  const std::int64_t tile_size = blocking_.sum_block * height + lanes;  // the vectors of a point's rows reach beyond them, into what is written next, or into what is left free
  llvm::AllocaInst* array = point_.array(element, blocking_.panel_rows * tile_size);
  const auto place = [this, element, array, height, tile_size, part](Value* tile, Value* point) {
    Value* line = ir_.CreateNSWMul(ir_.CreateNSWSub(point, part.from), number(height));
    return ir_.CreateInBoundsGEP(element, array, ir_.CreateNSWAdd(ir_.CreateNSWMul(tile, number(tile_size)), line));
  };
  point_.restore(blocking_.rows_packed);
  loops_.strided(part.from, part.to, number(kStrip), {.unroll = 1}, [&](Value* from) {
    Value* to = smaller(ir_.CreateNSWAdd(from, number(kStrip)), part.to);
    loops_.loop(above, below, {.unroll = 1}, [&](Value* block) {
      Value* tile = ir_.CreateNSWSub(block, above);
      PointGrid grid;
      grid.column_axis = grid.lane_axis = *blocking_.rows;
      grid.lanes = static_cast<std::uint32_t>(lanes);
      grid.columns.clear();
      for (std::int64_t i = 0; i < height; i += lanes) {
        grid.columns.push_back(ir_.CreateNSWAdd(ir_.CreateNSWMul(block, number(height)), number(i)));
        grid.masks.push_back(lanes_below(ir_.CreateNSWSub(extent(*blocking_.rows), grid.columns.back()), lanes));
      }
      point_.set_grid(grid);
      loops_.loop(from, to, {.unroll = 4}, [&](Value* i) {
        point_.set_index(axis, i);
        Value* line = place(tile, i);
        point_.each_cell([&] {
          Value* at = ir_.CreateConstInBoundsGEP1_64(element, line, point_.column() * static_cast<std::uint64_t>(lanes));
          ir_.CreateAlignedStore(point_.spread(point_.value(blocking_.rows_packed)), at, llvm::Align(4));
        });
      });
      point_.set_grid({});
    });
  });
  point_.replace(blocking_.rows_packed, [this, element, place, axis] {
    return ir_.CreateAlignedLoad(element, ir_.CreateConstInBoundsGEP1_64(element, place(tile_, point_.index(axis)), point_.row()), llvm::Align(4));
  });
}

void Packing::copy(const TileSide& columns, const SumPart& part, const Place& place) {
  const std::uint32_t axis = nest_.inner[0].back();
  point_.set_grid(along_columns(columns));
  loops_.loop(part.from, part.to, {.unroll = 4}, [&](Value* i) {
    point_.set_index(axis, i);
    point_.each_cell([&] { ir_.CreateStore(point_.spread(point_.value(blocking_.packed)), place(i, number(static_cast<std::int64_t>(point_.column())))); });
  });
  point_.set_grid({});
}

/// The number of the inner point.
Value* Packing::inner_point() {
  Value* point = number(0);
  for (const std::uint32_t axis : nest_.inner[0]) point = ir_.CreateNSWAdd(ir_.CreateNSWMul(point, extent(axis)), point_.index(axis));
  return point;
}

void Packing::transpose_all(const TileSide& columns, std::size_t depth, const SumPart& part, const Place& place) {
  const std::uint32_t axis = nest_.inner[0][depth];
  if (blocking_.joined) return transpose_joined(columns, part, place);
  if (depth + 1 < nest_.inner[0].size()) {
    return loops_.loop(number(0), extent(axis), {.unroll = 1}, [&](Value* i) {
      point_.set_index(axis, i);
      transpose_all(columns, depth + 1, part, place);
    });
  }
  const std::int64_t lanes = blocking_.lanes, rest = nest_.extents[axis].value() % lanes, whole = nest_.extents[axis].value() - rest;
  loops_.loop(number(0), number(columns.count), {.unroll = 1}, [&](Value* column) {
    Value* behind = smaller(part.to, number(whole));
    loops_.strided(part.from, behind, number(lanes), {.unroll = 1}, [&](Value* i) { transpose(columns, column, axis, i, lanes, place); });
    if (rest > 0) point_.when(ir_.CreateICmpSGT(part.to, number(whole)), [&] { transpose(columns, column, axis, number(whole), rest, place); });
  });
}

void Packing::transpose_joined(const TileSide& columns, const SumPart& part, const Place& place) {
  const std::uint32_t outer = nest_.inner[0].front(), inner = nest_.inner[0].back();
  loops_.loop(number(0), number(columns.count), {.unroll = 1}, [&](Value* column) {
    loops_.strided(part.from, part.to, number(blocking_.lanes), {.unroll = 1}, [&](Value* i) {
      point_.set_index(outer, ir_.CreateUDiv(i, extent(inner)));
      transpose(columns, column, inner, ir_.CreateURem(i, extent(inner)), blocking_.lanes, place);
    });
  });
}

/// `count` inner points from `first` on: vectors along the inner axis, one for each lane, turned into vectors along the columns.
void Packing::transpose(const TileSide& columns, Value* column, std::uint32_t axis, Value* first, std::int64_t count, const Place& place) {
  const TileSide lanes{ir_.CreateNSWAdd(columns.first, ir_.CreateNSWMul(column, number(blocking_.lanes))), blocking_.lanes, columns.left};
  PointGrid grid;
  grid.column_axis = blocking_.columns;
  grid.columns = inside(lanes, blocking_.columns);
  grid.lane_axis = axis;
  grid.lanes = static_cast<std::uint32_t>(blocking_.lanes);
  if (count < blocking_.lanes) grid.masks.assign(grid.columns.size(), lanes_below(number(count), blocking_.lanes));
  point_.set_grid(grid);
  point_.set_index(axis, first);
  point_.enter();
  std::vector<Value*> vectors;
  point_.each_cell([&] { vectors.push_back(point_.spread(point_.value(blocking_.packed))); });
  point_.leave();
  vectors = transposed(std::move(vectors));
  Value* point = inner_point();
  for (std::int64_t i = 0; i < count; ++i) ir_.CreateStore(vectors[static_cast<std::size_t>(i)], place(ir_.CreateNSWAdd(point, number(i)), column));
  point_.set_grid({});
}

}  // namespace hone
