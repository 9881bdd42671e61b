// MatrixTiles: products of f32 by the matrix unit of a processor (AMX), which multiplies bf16 and adds up in f32.
//
// Each factor is taken apart into three numbers of bf16 whose sum it is exactly: 24 bits in three times 8. Of the nine products of parts the six largest are added up; the others are below 2^-25 of the
// whole product, half of what f32 rounds away. A sum so made errs no more than a chain of f32 multiply-adds (docs/performance.md has the numbers).
// What differs: a factor that is infinite makes NaN, as do those from 2^128 - 2^119 on, which are nearer to 2^128 than to any bf16; what lies below 2^-126 is 0.
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

  MatrixTiles(const Kernel& kernel, const Nest& nest, const Blocking& blocking, Point& point) : TileCode(nest, blocking, point), kernel_(kernel) {}

  /// Sets up the matrix registers; gives them back, which makes switching between threads cheap again.
  void begin();
  void end();

  /// Instructions that follow one another on a part of the sum, each `kDepth` points.
  llvm::Value* depths(const SumPart& part) { return ceil_div(ir_.CreateNSWSub(part.to, part.from), number(kDepth)); }

  /// Some of the pieces in which a factor is packed: [from, to).
  struct Pieces {
    llvm::Value *from, *to;
  };
  /// Where factors of a part lie, packed: bytes.
  std::int64_t column_bytes() const;  ///< of a tile's columns
  std::int64_t row_bytes() const;     ///< of a tile's rows

  /// Packs the columns' factor from column `first` on.
  llvm::Value* column_pieces(const SumPart& part) { return ir_.CreateNSWMul(depths(part), number(kStepsOfDepth * blocking_.column_count)); }
  void pack_columns(llvm::Value* first, const SumPart& part, const Pieces& pieces, llvm::Value* to);
  /// Packs the rows' factor of the tiles [above, below) of a column, one tile after the other.
  llvm::Value* row_pieces(llvm::Value* above, llvm::Value* below, const SumPart& part);
  void pack_rows(llvm::Value* above, llvm::Value* below, const SumPart& part, const Pieces& pieces, llvm::Value* to);

  /// Adds the part's products to the sums of a tile: in memory, by row and then by column. The first part starts from 0. Behind each of the steps() between(step) is what else is to be
  /// done: the unit takes long and leaves the vector units free, but a processor's window should reach the next step.
  void multiply(llvm::Value* rows, llvm::Value* columns, const SumPart& part, llvm::Value* sums, const std::function<void(llvm::Value* step)>& between);
  llvm::Value* steps(const SumPart& part) { return ir_.CreateNSWMul(depths(part), number(kProducts)); }

 private:
  static constexpr std::int64_t kStepsOfDepth = kDepth / kSide;  ///< a piece is `kSide` points deep

  /// A factor along one outer axis and the sum.
  struct Factor {
    ExprId value;
    std::uint32_t axis;
    bool along_sum;  ///< is it contiguous along the sum, not along the axis?
  };

  Factor columns_factor() const { return {blocking_.packed, blocking_.columns, not blocking_.copied}; }
  Factor rows_factor() const { return {blocking_.rows_packed, *blocking_.rows, blocking_.rows_along_sum}; }

  llvm::GlobalVariable* table(const char* name, llvm::Constant* content);
  llvm::GlobalVariable* pair_offsets();
  bool fills_matrices() const;
  llvm::Value* point_at(const SumPart& part, llvm::Value* step) { return ir_.CreateNSWAdd(part.from, scaled(step, kSide)); }
  llvm::Value* left_at(const SumPart& part, llvm::Value* point) { return fills_matrices() ? nullptr : ir_.CreateNSWSub(part.to, point); }
  void set_point(const Factor& factor, llvm::Value* point);
  void ask_for(const Factor& factor);
  llvm::Value* along_sum(const Factor& factor, llvm::Value* index, llvm::Value* point, llvm::Value* left);
  std::vector<llvm::Value*> square(const Factor& factor, bool lanes_along_sum, llvm::Value* index, llvm::Value* point, llvm::Value* left);
  std::vector<llvm::Value*> parts_of(llvm::Value* vector);
  llvm::Value* upper_halves(llvm::Value* words);
  llvm::Constant* in_all_lanes(std::uint32_t word) { return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(kSide), ir_.getInt32(word)); }
  llvm::Value* bytes_before(llvm::Value* step, std::int64_t count, std::int64_t bytes);
  void store_row(llvm::Value* row, llvm::Value* step, llvm::Value* place);
  llvm::Value* at(llvm::Value* array, llvm::Value* bytes) { return ir_.CreateInBoundsGEP(ir_.getInt8Ty(), array, bytes); }
  llvm::Value* scaled(llvm::Value* count, std::int64_t bytes) { return ir_.CreateNSWMul(count, number(bytes)); }
  void call(llvm::Intrinsic::ID id, std::vector<llvm::Value*> arguments) { ir_.CreateIntrinsic(id, {}, arguments); }
  llvm::Value* matrix(std::int64_t i) { return ir_.getInt8(static_cast<std::uint8_t>(i)); }

  const Kernel& kernel_;
};

}  // namespace hone
