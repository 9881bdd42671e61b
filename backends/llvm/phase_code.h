// PhaseCode: what a phase does at the cells of a point's grid: its reductions and its stores.
#pragma once

#include "backends/llvm/point.h"

namespace hone {

class PhaseCode {
 public:
  PhaseCode(Point& point, const Kernel& kernel, const Nest& nest) : point_(point), kernel_(kernel), nest_(nest), ir_(point.ir) {}

  /// May a sum be taken in another order than that of the points? LLVM then makes vector lanes of it.
  enum class Order : std::uint8_t { kAsWritten, kAny };

  /// Sets the phase's accumulators to what they start with, in every cell.
  void start(std::size_t phase);
  /// Every cell, at one point of the phase's inner space. All values of a cell are computed before anything of it is stored: a store may overwrite an operand.
  void run(std::size_t phase, Order order);
  /// A reduction over some of the points, and for arg kinds where its extreme element is.
  struct Partial {
    llvm::Value* value;
    llvm::Value* position = nullptr;
  };
  /// The reduction over the points of both.
  Partial combined(const Reduction& reduction, Partial a, Partial b);

  /// A store where `owned` (nullptr: always) and its own guard hold.
  void perform(const Store& store, const Offset& offset, llvm::Value* owned);

 private:
  void accumulate(const Reduction& reduction, std::size_t phase, Order order);
  llvm::Value* where_point(llvm::Value* value, llvm::Value* otherwise);
  bool is_sum_of_products(const Reduction& reduction, const Point::Temp& temp) const;
  llvm::Value* multiply_add(const Reduction& reduction, llvm::Value* sum);
  void accumulate_position(const Reduction& reduction, std::size_t phase, llvm::Value* best, llvm::Value* value);
  llvm::Value* is_better(const Reduction& reduction, llvm::Value* value, llvm::Value* best);

  Point& point_;
  const Kernel& kernel_;
  const Nest& nest_;
  llvm::IRBuilder<>& ir_;
};

}  // namespace hone
