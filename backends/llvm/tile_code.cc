#include "backends/llvm/tile_code.h"

namespace hone {

using llvm::Value;

Value* TileCode::times_points(Value* count, const std::vector<std::uint32_t>& axes) {
  for (const std::uint32_t axis : axes) count = ir_.CreateNUWMul(count, extent(axis));
  return count;
}

TileCode::Range TileCode::share_of(Value* pieces) {
  Value* points = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, times_points(number(1), nest_.outer), number(1));
  const auto piece_at = [&](Value* point) { return ir_.CreateUDiv(ir_.CreateNUWMul(point, pieces), points); };
  return {piece_at(point_.begin()), piece_at(point_.end())};
}

SumPart TileCode::all_points() { return {number(0), times_points(number(1), nest_.inner[0])}; }

void TileCode::clear(Value* sums, Value* from, Value* to) {
  loops_.loop(from, to, {.unroll = 4}, [&](Value* i) { ir_.CreateStore(llvm::Constant::getNullValue(vector_type()), ir_.CreateInBoundsGEP(vector_type(), sums, i)); });
}

std::vector<Value*> TileCode::indices(const TileSide& side, std::uint32_t axis) {
  if (side.left != nullptr and not is_constant(axis)) return inside(side, axis);
  std::vector<Value*> made;
  for (std::int64_t i = 0; i < side.count; ++i) made.push_back(ir_.CreateNSWAdd(side.first, number(i)));
  return made;
}

std::vector<Value*> TileCode::inside(const TileSide& side, std::uint32_t axis) {
  Value* last = ir_.CreateNSWSub(extent(axis), number(1));
  std::vector<Value*> made;
  for (std::int64_t i = 0; i < side.count; ++i) made.push_back(smaller(ir_.CreateNSWAdd(side.first, number(i)), last));
  return made;
}

PointGrid TileCode::along_columns(const TileSide& columns) {
  PointGrid grid;
  grid.column_axis = grid.lane_axis = blocking_.columns;
  grid.lanes = static_cast<std::uint32_t>(blocking_.lanes);
  grid.columns.clear();
  for (std::int64_t i = 0; i < columns.count; ++i) {
    Value* skipped = number(i * blocking_.lanes);
    grid.columns.push_back(ir_.CreateNSWAdd(columns.first, skipped));
    grid.masks.push_back(columns.left == nullptr ? nullptr : lanes_below(ir_.CreateNSWSub(columns.left, skipped), blocking_.lanes));
  }
  return grid;
}

/// log2(n) times, rows i and i + n/2 are interleaved.
std::vector<Value*> TileCode::transposed(std::vector<Value*> vectors) {
  const std::size_t n = vectors.size();
  std::vector<int> low, high;
  for (std::size_t i = 0; i < n; ++i) {
    low.push_back(static_cast<int>(i / 2 + i % 2 * n));
    high.push_back(static_cast<int>(n / 2 + i / 2 + i % 2 * n));
  }
  for (std::size_t step = 1; step < n; step *= 2) {
    std::vector<Value*> next;
    for (std::size_t i = 0; i < n / 2; ++i) {
      next.push_back(ir_.CreateShuffleVector(vectors[i], vectors[i + n / 2], low));
      next.push_back(ir_.CreateShuffleVector(vectors[i], vectors[i + n / 2], high));
    }
    vectors = std::move(next);
  }
  return vectors;
}

Value* TileCode::lanes_below(Value* count, std::int64_t lanes) {
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(count); constant != nullptr and constant->getSExtValue() >= lanes) return nullptr;
  auto* type = llvm::FixedVectorType::get(ir_.getInt32Ty(), static_cast<unsigned>(lanes));
  Value* bound = ir_.CreateTrunc(larger(smaller(count, number(lanes)), number(0)), ir_.getInt32Ty());
  return ir_.CreateICmpULT(ir_.CreateStepVector(type), ir_.CreateVectorSplat(static_cast<unsigned>(lanes), bound));
}

}  // namespace hone
