// Point: the code of one kernel at the current point of its loops: index values, expressions, loads, stores and temporaries.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <vector>

#include "backends/llvm/nest.h"
#include "backends/llvm/scalar.h"

namespace hone {

/// In what a reduction accumulates: its value's type, but sums of f32 in f64, so that long ones (batch statistics, losses) lose nothing.
DType accumulator_type(const Kernel& kernel, const Reduction& reduction);

class Point {
 public:
  /// Makes the kernel's function, with its entry block; `ir` stands after that. `lanes` is the number of points that are computed side
  /// by side, each with its own temporaries; 1 for one after the other.
  Point(llvm::Module& module, const Kernel& kernel, const Nest& nest, HalfConversion half, std::int64_t lanes);

  llvm::IRBuilder<> ir;
  llvm::Function* function() const { return function_; }
  llvm::Value* begin() const { return function_->getArg(2); }
  llvm::Value* end() const { return function_->getArg(3); }
  std::int64_t lanes() const { return lanes_; }

  void set_index(std::uint32_t axis, llvm::Value* value) { indices_[axis] = value; }
  llvm::Value* index(std::uint32_t axis) const { return indices_[axis]; }
  void set_lane(llvm::Value* lane) { lane_ = lane; }
  /// The group of which later loads and stores are members: those of an innermost loop whose iterations are independent; or nullptr.
  void set_access_group(llvm::MDNode* group) { access_group_ = group; }

  /// Values that are computed from here on are forgotten at the matching leave(): they are not available behind it.
  void enter() { marks_.push_back(computed_.size()); }
  void leave();

  /// A size, computed once at the function's entry.
  llvm::Value* size(const Size& size);
  /// An expression's value at this point.
  llvm::Value* value(ExprId id);
  /// Runs `body` only where `condition` holds (nullptr: always).
  template <typename Body>
  void when(llvm::Value* condition, Body body);

  /// Stores `value`, or adds it to what is there. `offset` belongs to `store`.
  void store(const Store& store, const Offset& offset, llvm::Value* value);

  struct Temp {
    llvm::AllocaInst* value = nullptr;
    llvm::AllocaInst* position = nullptr;  ///< of the extreme element, for arg kinds
    DType dtype;                           ///< of `value`: accumulator_type
    DType result;                          ///< what a reader gets
  };
  const Temp& temp(std::uint32_t slot) const { return temps_[slot]; }
  llvm::Value* read(llvm::AllocaInst* variable, DType dtype);
  void write(llvm::AllocaInst* variable, DType dtype, llvm::Value* value);

  llvm::BasicBlock* new_block(const char* name) { return llvm::BasicBlock::Create(ir.getContext(), name, function_); }

 private:
  void make_function(llvm::Module& module);
  void load_arguments();
  void make_alias_scopes();
  void make_temps();
  llvm::Value* compute(ExprId id);
  llvm::Value* load(const Expr& load, const Offset& offset);
  llvm::Value* offset_value(const Offset& offset);
  llvm::Value* address(std::uint32_t buffer, const Offset& offset);
  llvm::Value* variable_address(llvm::AllocaInst* variable);
  template <typename Access>
  Access* annotated(Access* access, std::uint32_t buffer);
  template <typename Access>
  Access* in_group(Access* access);

  const Kernel& kernel_;
  const Nest& nest_;
  HalfConversion half_;
  std::int64_t lanes_;
  llvm::Function* function_ = nullptr;
  llvm::IRBuilder<> entry_;  ///< before the entry block's branch
  std::vector<llvm::Value*> buffers_, arguments_;
  std::vector<llvm::MDNode*> scope_, no_alias_;  ///< by buffer
  std::map<Size::Terms, llvm::Value*> sizes_;
  std::vector<Temp> temps_;
  std::vector<llvm::Value*> indices_;  ///< by kernel axis
  llvm::Value* lane_ = nullptr;
  llvm::MDNode* access_group_ = nullptr;
  std::vector<llvm::Value*> values_;  ///< by expression; null: not computed
  std::vector<ExprId> computed_;
  std::vector<std::size_t> marks_;
};

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
