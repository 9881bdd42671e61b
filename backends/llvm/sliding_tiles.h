// SlidingTiles: convolutions and their gradients, where a factor slides under the other (Sliding, blocking.h).
//
// The sliding factor is laid out line by line, with zeros where its guard does not hold, so that the sums' loops know no border. From there one element after the other is spread into a register and
// multiplied with all of the standing factor's vectors that meet it: an element of an image serves all the windows that lie over it, three multiply-adds for a load where a window is three wide.
#pragma once

#include <functional>
#include <vector>

#include "backends/llvm/tile_code.h"
#include "backends/llvm/tile_finish.h"

namespace hone {

class SlidingTiles : private TileCode {
 public:
  SlidingTiles(const Kernel& kernel, const Nest& nest, const Blocking& blocking, Point& point)
      : TileCode(nest, blocking, point), kernel_(kernel), sliding_(*blocking.sliding), finish_(kernel, nest, blocking, point) {}

  void run() { sliding_.sums_wait ? waiting_sums() : finished_sums(); }

 private:
  using Pair = Sliding::Pair;
  using Vectors = std::vector<llvm::Value*>;

  // ---- sums over a window
  void finished_sums();
  void tiles_of_line(llvm::Value* line);
  void tile(llvm::Value* first_row, std::int64_t rows, llvm::Value* column_block, llvm::Value* line);
  void pack_standing();
  llvm::Value* standing_place(llvm::Value* column_block, llvm::Value* line, llvm::Value* channel, std::int64_t term);
  Vectors standing_of_window(llvm::Value* column_block, llvm::Value* line, llvm::Value* channel);
  Vectors standing_in_memory(llvm::Value* line, llvm::Value* channel, std::int64_t term);

  // ---- sums over all positions
  void waiting_sums();
  void sums_over_all(const Range& units);
  void add_terms(const Vectors& sums, llvm::Value* unit, llvm::Value* line, llvm::Value* first, std::int64_t terms);
  void for_each_fixed(std::size_t depth, const std::function<void()>& body);
  void ask_for_line(llvm::Value* line);
  void finish_unit(llvm::Value* unit);
  struct Unit {
    llvm::Value *window_line, *first_channel, *column_block;
  };
  Unit unit_at(llvm::Value* unit);
  std::int64_t unit_count() const { return (sliding_.lines ? sliding_.lines->outer_extent : 1) * (sliding_.channel_count / blocking_.row_count) * column_blocks(); }
  llvm::Value* sums_of(llvm::Value* unit);
  std::int64_t sums_in_unit() const { return sliding_.along.outer_extent * blocking_.row_count; }

  // ---- the sliding factor
  void lay_out(llvm::Value* first_line, llvm::Value* lines);
  Range inside(const Pair& pair, llvm::Value* base, std::int64_t stride, const Range& range);
  void set_position(const Pair& pair, llvm::Value* position);
  llvm::Value* element(llvm::Value* line, llvm::Value* position, llvm::Value* channel);
  /// Elements of all lines that are laid out at a time, and behind them what the last vector has too many of.
  std::int64_t laid_out_elements() const { return sliding_.lines_of(sliding_.line_block) * sliding_.along.positions() * sliding_.channel_count + blocking_.lanes; }
  /// Goes to the point number `flat` of the space that the axes span.
  void go_to(const std::vector<std::uint32_t>& axes, llvm::Value* flat);

  /// sums[row][v] += the sliding factor at position outer_step * row + `offsets[term]` behind `from` * standing[term][v]. Positions that are known to lie outside of the tensor are left out.
  void multiply(const Vectors& sums, std::int64_t rows, std::span<const std::int64_t> offsets, const Vectors& standing, llvm::Value* first_position, llvm::Value* from);
  llvm::Value* multiply_add(llvm::Value* a, llvm::Value* b, llvm::Value* sum);
  Vectors variables(std::int64_t count);

  /// body(i) for i in [0, count).
  template <typename Body>
  void each_of_few(std::int64_t count, Body body) {
    if (count > Sliding::kWrittenOut) return loops_.loop(number(0), number(count), {.unroll = 1}, body);
    for (std::int64_t i = 0; i < count; ++i) body(number(i));
  }

  std::int64_t column_blocks() const;
  TileSide columns_at(llvm::Value* column_block);
  std::int64_t window_lines() const { return sliding_.lines ? sliding_.lines->inner_extent : 1; }
  llvm::Value* scaled(llvm::Value* count, std::int64_t factor) { return ir_.CreateNSWMul(count, number(factor)); }

  const Kernel& kernel_;
  const Sliding& sliding_;
  TileFinish finish_;
  llvm::AllocaInst *laid_out_ = nullptr, *standing_ = nullptr, *sums_ = nullptr;
};

}  // namespace hone
