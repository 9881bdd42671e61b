// TileCode: parts of a kernel's axes in code, and the grids of points that lie there.
#pragma once

#include "backends/llvm/blocking.h"
#include "backends/llvm/loop_builder.h"
#include "backends/llvm/point.h"

namespace hone {

/// Part of an axis: `count` of its indices, or vectors of them, in code; `left` says how many are there (nullptr: all).
struct TileSide {
  llvm::Value* first;
  std::int64_t count;
  llvm::Value* left;
};

/// Numbers from `first` up to, not with, `last`: of tiles, panels or rows.
struct NumberRange {
  llvm::Value *first, *last;
};

/// Points of the inner axes of a contraction, taken as one: [from, to).
struct SumPart {
  llvm::Value *from, *to;
};

/// What packing and the loops over tiles have in common.
class TileCode {
 protected:
  using Value = llvm::Value;
  using Range = NumberRange;

  TileCode(const Nest& nest, const Blocking& blocking, Point& point) : nest_(nest), blocking_(blocking), point_(point), ir_(point.ir), loops_(point) {}

  Value* number(std::int64_t value) { return ir_.getInt64(static_cast<std::uint64_t>(value)); }
  Value* smaller(Value* a, Value* b) { return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b); }
  Value* larger(Value* a, Value* b) { return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b); }
  Value* ceil_div(Value* a, Value* b) { return ir_.CreateUDiv(ir_.CreateNSWAdd(a, ir_.CreateNSWSub(b, number(1))), b); }
  Value* extent(std::uint32_t axis) { return point_.size(nest_.extents[axis]); }
  /// `count` for each point of the axes.
  Value* times_points(Value* count, const std::vector<std::uint32_t>& axes);
  bool is_constant(std::uint32_t axis) const { return nest_.extents[axis].is_constant(); }
  /// Which of `pieces` of the kernel are the work of this call: piece i is that of the call in whose range point i * points / pieces lies, so each is done once however the points are split.
  Range share_of(Value* pieces);
  /// All inner points of the contraction.
  SumPart all_points();

  /// A vector of f32.
  llvm::Type* vector_type() { return llvm::FixedVectorType::get(ir_.getFloatTy(), static_cast<unsigned>(blocking_.lanes)); }

  /// Sets vectors [from, to) of an array of sums to 0.
  void clear(Value* sums, Value* from, Value* to);

  /// The index of each row or column.
  std::vector<Value*> indices(const TileSide& side, std::uint32_t axis);
  /// The same, where there may be fewer: behind the last one it is the last one's, computed again for nothing.
  std::vector<Value*> inside(const TileSide& side, std::uint32_t axis);
  PointGrid along_columns(const TileSide& columns);
  /// The square matrix whose rows are `vectors`, transposed.
  std::vector<Value*> transposed(std::vector<Value*> vectors);
  /// The first `count` of the lanes, none if it is negative; nullptr if that is known to be all.
  Value* lanes_below(Value* count, std::int64_t lanes);

  const Nest& nest_;
  const Blocking& blocking_;
  Point& point_;
  llvm::IRBuilder<>& ir_;
  LoopBuilder loops_;
};

}  // namespace hone
