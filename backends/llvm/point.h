// Point: the code of one kernel at the current point of its loops: index values, expressions, loads, stores and temporaries.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <map>
#include <vector>

#include "backends/llvm/nest.h"
#include "backends/llvm/scalar.h"

namespace hone {

/// Several points that are computed side by side: a grid of `rows` x `columns` cells, each with its own temporaries, and in each cell a vector of
/// `lanes` points along `lane_axis`. Values that do not depend on a cell's row, its column or its lanes are computed once for all.
struct PointGrid {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t row_axis = kNone, column_axis = kNone;
  std::vector<llvm::Value*> rows = {nullptr}, columns = {nullptr};  ///< the index on those axes; of lanes along the axis, that of the first
  std::uint32_t lane_axis = kNone;
  std::uint32_t lanes = 1;
  bool are_aligned = false;  ///< neighbouring elements of all lanes begin at a multiple of their bytes, not just of an element's
  std::vector<llvm::Value*> masks = {};  ///< by column: which lanes are points of the kernel (nullptr: all); empty: all
};

/// What a kernel's function is given.
enum class Signature : std::uint8_t {
  kRange,   ///< (void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end)
  kBlock,   ///< the same, and (int64_t block, int64_t blocks): what one block of a launch does
  kLaunch,  ///< a kernel of a GPU, launched in blocks: each buffer, each size, begin, end
};

class Point {
 public:
  /// Makes the kernel's function, with its entry block; `ir` stands after that, at a single point.
  Point(llvm::Module& module, const Kernel& kernel, const Nest& nest, HalfConversion half, MultiplyAdd multiply_add, Signature signature = Signature::kRange);

  llvm::IRBuilder<> ir;
  MultiplyAdd multiply_add() const { return multiply_add_; }
  llvm::Function* function() const { return function_; }
  Signature signature() const { return signature_; }
  /// Argument number `i` behind buffers and sizes.
  llvm::Value* argument(unsigned i) const { return function_->getArg(first_argument_ + i); }
  llvm::Value* begin() const { return argument(0); }
  llvm::Value* end() const { return argument(1); }

  void set_index(std::uint32_t axis, llvm::Value* value) { indices_[axis] = value; }
  /// The index at the current cell; where lanes run along the axis, that of the first lane.
  llvm::Value* index(std::uint32_t axis) const;
  /// The group of which later loads and stores are members: those of an innermost loop whose iterations are independent; or nullptr.
  void set_access_group(llvm::MDNode* group) { access_group_ = group; }

  /// From here on values are those of the grid's cells, at first the first one. Values known so far must have been forgotten by leave(), but for
  /// those that depend on neither the old grid nor the new one.
  void set_grid(PointGrid grid);
  const PointGrid& grid() const { return grid_; }
  void set_cell(std::size_t row, std::size_t column) { row_ = row, column_ = column; }
  template <typename Body>
  void each_cell(Body body);
  /// `value` in every lane.
  llvm::Value* spread(llvm::Value* value);
  /// Which lanes of the cell are points: nullptr: all.
  llvm::Value* mask() const { return grid_.masks.empty() ? nullptr : grid_.masks[column_]; }

  /// Values that are computed from here on are forgotten at the matching leave(): they are not available behind it.
  void enter() { marks_.push_back(computed_.size()); }
  void leave();

  /// A size, computed once at the function's entry.
  llvm::Value* size(const Size& size);
  /// An expression's value at the current cell: a vector where it differs from lane to lane, a scalar where not.
  llvm::Value* value(ExprId id);
  /// From here on the expression's value at a cell is what `by` gives, which depends on what the expression depends on.
  void replace(ExprId id, std::function<llvm::Value*()> by) { replaced_[id] = std::move(by); }
  void restore(ExprId id) { replaced_.erase(id); }
  /// An expression's value as it is written down, whatever replaces it.
  llvm::Value* formula(ExprId id);
  /// What a load reads where its guard is known to hold.
  llvm::Value* unguarded(ExprId load);
  /// Runs `body` only where `condition`, a scalar, holds (nullptr: always).
  template <typename Body>
  void when(llvm::Value* condition, Body body);

  /// Do all buffers begin at a multiple of so many bytes?
  llvm::Value* begins_at_multiples_of(std::uint32_t bytes);
  /// Stores `value`, or adds it to what is there, in the lanes of `mask` (nullptr: all). `offset` belongs to `store`.
  void store(const Store& store, const Offset& offset, llvm::Value* value, llvm::Value* mask);
  /// Says that the element will be wanted: soon, or else in the second level cache.
  void prefetch(std::uint32_t buffer, const Offset& offset, bool soon = true);

  /// A reduction's variables. They hold values, of all lanes of a cell.
  struct Temp {
    std::vector<llvm::Value*> cells;      ///< by cell, row-major: pointers
    std::vector<llvm::Value*> positions;  ///< the same for the position of the extreme element, for arg kinds
    DType dtype;                          ///< what it accumulates in: accumulator_type
    DType result;                         ///< what a reader gets
  };
  /// Gives every temporary variables of its own for the cells of the grid.
  void make_temps();
  Temp& temp(std::uint32_t slot) { return temps_[slot]; }
  std::size_t temp_count() const { return temps_.size(); }
  std::size_t row() const { return row_; }
  std::size_t column() const { return column_; }
  std::size_t cell() const { return row_ * grid_.columns.size() + column_; }
  llvm::Type* cell_type(DType dtype);
  llvm::Value* read(llvm::Value* variable, DType dtype);
  void write(llvm::Value* variable, llvm::Value* value);
  /// A variable of the function.
  llvm::AllocaInst* variable(llvm::Type* type) { return entry_.CreateAlloca(type); }
  /// Elements on the stack that begin at a cache line.
  llvm::AllocaInst* array(llvm::Type* element, std::int64_t count);

  llvm::BasicBlock* new_block(const char* name) { return llvm::BasicBlock::Create(ir.getContext(), name, function_); }

 private:
  void make_function(llvm::Module& module);
  void make_launched_function(llvm::Module& module);
  void begin_function(llvm::Module& module, llvm::ArrayRef<llvm::Type*> arguments);
  void load_arguments();
  void make_alias_scopes();
  std::size_t slot_of(ExprId id) const;
  llvm::Value* compute(ExprId id);
  llvm::Value* operate(const Expr& e);
  llvm::Value* load(const Expr& load, const Offset& offset);
  llvm::Value* load_lanes(std::uint32_t buffer, const Offset& offset, llvm::Value* mask);
  llvm::Align alignment(DType dtype) const;
  llvm::Align alignment_of_variable(llvm::Type* type) const;
  bool is_contiguous(const Offset& offset);
  bool has_vector_value(const Offset& offset);
  llvm::Value* offset_value(const Offset& offset);
  llvm::Value* scattered_offset(const Offset& offset);
  llvm::Value* both_masks(llvm::Value* a, llvm::Value* b);
  template <typename Access>
  Access* annotated(Access* access, std::uint32_t buffer);
  template <typename Access>
  Access* in_group(Access* access);

  const Kernel& kernel_;
  const Nest& nest_;
  HalfConversion half_;
  MultiplyAdd multiply_add_;
  Signature signature_;
  llvm::Function* function_ = nullptr;
  unsigned first_argument_ = 2;
  llvm::IRBuilder<> entry_;  ///< before the entry block's branch
  std::vector<llvm::Value*> buffers_, arguments_;
  std::vector<llvm::MDNode*> scope_, no_alias_;  ///< by buffer
  std::map<Size::Terms, llvm::Value*> sizes_;
  std::vector<Temp> temps_;
  std::vector<std::uint64_t> depends_;  ///< by expression: axes whose index its value depends on
  PointGrid grid_;
  std::size_t row_ = 0, column_ = 0;
  std::vector<llvm::Value*> indices_;  ///< by kernel axis
  llvm::MDNode* access_group_ = nullptr;
  std::map<std::pair<std::uint32_t, std::size_t>, llvm::Value*> values_;  ///< by expression and cell (the first of those that share the value)
  std::map<ExprId, std::function<llvm::Value*()>> replaced_;
  std::vector<std::pair<std::uint32_t, std::size_t>> computed_;
  std::vector<std::size_t> marks_;
};

template <typename Body>
void Point::each_cell(Body body) {
  for (std::size_t row = 0; row < grid_.rows.size(); ++row) {
    for (std::size_t column = 0; column < grid_.columns.size(); ++column) {
      set_cell(row, column);
      body();
    }
  }
  set_cell(0, 0);
}

template <typename Body>
void Point::when(llvm::Value* condition, Body body) {
  if (condition == nullptr) return body();
  llvm::BasicBlock *then = new_block("then"), *after = new_block("after");
  ir.CreateCondBr(condition, then, after);
  ir.SetInsertPoint(then);
  enter();
  body();
  leave();
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
}

}  // namespace hone
