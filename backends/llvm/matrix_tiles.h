// MatrixTiles: products of f32 by the matrix unit of a processor (AMX), which multiplies bf16 and adds up in f32.
//
// Each factor is taken apart into three numbers of bf16 whose sum it is exactly: 24 bits in three times 8. Of the nine products of parts the six largest are added up; the others are below 2^-25 of the
// whole product, half of what f32 rounds away. A sum so made errs no more than a chain of f32 multiply-adds (docs/performance.md has the numbers).
// What differs: a factor that is infinite makes NaN, as do those above 2^128 - 2^119, the largest bf16; what lies below 2^-126 is 0.
#pragma once

#include <functional>

#include "backends/llvm/tile_code.h"

namespace hone {

class MatrixTiles : private TileCode {
 public:
  static constexpr std::int64_t kSide = 16;    ///< rows of a matrix register, and f32 columns
  static constexpr std::int64_t kDepth = 32;   ///< terms of a sum that one instruction adds
  static constexpr std::int64_t kParts = 3;    ///< of a factor
  static constexpr std::int64_t kProducts = 6; ///< of parts that are taken

  MatrixTiles(const Nest& nest, const Blocking& blocking, Point& point) : TileCode(nest, blocking, point) {}

  /// Sets up the matrix registers; gives them back, which makes switching between threads cheap again.
  void begin();
  void end();

  /// Lays out the parts of the columns' factor, of these columns, for a part of the sum.
  void columns(const Side& columns, const SumPart& part);
  /// The same of the rows' factor, for the tiles [above, below) of a column.
  void rows(llvm::Value* above, llvm::Value* below, const SumPart& part);

  /// Adds the part's products to the sums of a whole tile: in memory, by row and then by column. `tile` counts those that rows() laid out. The first part starts from 0.
  /// Each of the depth_blocks() between(depth) is what else is to be done, between two instructions that take long.
  void multiply(llvm::Value* tile, const Side& columns, const SumPart& part, llvm::Value* sums, const std::function<void(llvm::Value* depth)>& between);
  /// Steps of a part, `kDepth` points each.
  llvm::Value* depth_blocks(const SumPart& part);

 private:
  /// A factor along one outer axis and the sum.
  struct Factor {
    ExprId value;
    std::uint32_t axis;
    bool along_sum;  ///< is it contiguous along the sum, not along the axis?
  };

  Factor columns_factor() const { return {blocking_.packed, blocking_.columns, not blocking_.copied}; }
  Factor rows_factor() const { return {blocking_.rows_packed, *blocking_.rows, blocking_.rows_along_sum}; }
  void set_point(const Factor& factor, llvm::Value* point);
  llvm::Value* along_sum(const Factor& factor, llvm::Value* index, llvm::Value* point, llvm::Value* left);

  void each_step(const SumPart& part, const std::function<void(llvm::Value* point, llvm::Value* left)>& body);
  std::vector<llvm::Value*> square(const Factor& factor, bool lanes_along_sum, llvm::Value* index, llvm::Value* point, llvm::Value* left);
  std::vector<llvm::Value*> parts_of(llvm::Value* vector);
  llvm::Value* upper_halves(llvm::Value* words);
  llvm::Value* at(llvm::Value* array, llvm::Value* bytes) { return ir_.CreateInBoundsGEP(ir_.getInt8Ty(), array, bytes); }
  llvm::Value* scaled(llvm::Value* count, std::int64_t bytes) { return ir_.CreateNSWMul(count, number(bytes)); }
  std::int64_t tile_bytes() const;
  void call(llvm::Intrinsic::ID id, std::vector<llvm::Value*> arguments) { ir_.CreateIntrinsic(id, {}, arguments); }
  llvm::Value* matrix(std::int64_t i) { return ir_.getInt8(static_cast<std::uint8_t>(i)); }

  llvm::AllocaInst *columns_ = nullptr, *rows_ = nullptr;
};

}  // namespace hone
