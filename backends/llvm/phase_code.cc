#include "backends/llvm/phase_code.h"

namespace hone {

using llvm::Value;

namespace {

/// By ReduceKind, but for arg kinds.
constexpr ScalarOp kOps[] = {ScalarOp::kAdd, ScalarOp::kMul, ScalarOp::kMax, ScalarOp::kMin};

}  // namespace

void PhaseCode::start(std::size_t phase) {
  point_.each_cell([&] {
    for (const Reduction& reduction : kernel_.phases[phase].reductions) {
      const Point::Temp& temp = point_.temp(reduction.temp);
      point_.write(temp.cells[point_.cell()], reduction_start(ir_, reduction.kind, temp.dtype));
      if (not temp.positions.empty()) point_.write(temp.positions[point_.cell()], ir_.getInt64(0));
    }
  });
}

void PhaseCode::run(std::size_t phase, Order order) {
  const Phase& p = kernel_.phases[phase];
  point_.enter();
  point_.each_cell([&] {
    for (const Reduction& reduction : p.reductions) accumulate(reduction, phase, order);
    for (const Store& store : p.stores) {
      point_.value(store.value);
      if (store.guard.valid()) point_.value(store.guard);
    }
    for (std::size_t s = 0; s < p.stores.size(); ++s) perform(p.stores[s], nest_.stores[phase][s], nullptr);
  });
  point_.leave();
}

void PhaseCode::perform(const Store& store, const Offset& offset, Value* owned) {
  Value* guard = store.guard.valid() ? point_.value(store.guard) : nullptr;
  if (owned != nullptr) guard = guard == nullptr ? owned : ir_.CreateAnd(owned, guard);
  for (const auto& [id, coefficient] : offset.values) point_.value(id);
  Value* value = point_.value(store.value);
  const bool by_lane = guard != nullptr and guard->getType()->isVectorTy();
  Value* mask = point_.mask();
  if (by_lane) mask = mask == nullptr ? guard : ir_.CreateAnd(mask, guard);
  point_.when(by_lane ? nullptr : guard, [&] { point_.store(store, offset, value, mask); });
}

void PhaseCode::accumulate(const Reduction& reduction, std::size_t phase, Order order) {
  const Point::Temp& temp = point_.temp(reduction.temp);
  Value* variable = temp.cells[point_.cell()];
  Value* const before = point_.read(variable, temp.dtype);
  if (order == Order::kAsWritten and is_sum_of_products(reduction, temp)) return point_.write(variable, where_point(multiply_add(reduction, before), before));
  Value* value = point_.spread(point_.value(reduction.value));
  if (temp.dtype != temp.result) value = ir_.CreateFPExt(value, point_.cell_type(temp.dtype));
  value = where_point(value, point_.spread(reduction_start(ir_, reduction.kind, temp.dtype)));
  if (not temp.positions.empty()) return accumulate_position(reduction, phase, before, value);
  const llvm::IRBuilder<>::FastMathFlagGuard guard(ir_);
  llvm::FastMathFlags flags = ir_.getFastMathFlags();
  flags.setAllowReassoc(order == Order::kAny);
  flags.setAllowContract(order == Order::kAny);
  ir_.setFastMathFlags(flags);
  Value* const operands[] = {before, value};
  point_.write(variable, emit_operation(ir_, kOps[static_cast<std::size_t>(reduction.kind)], temp.dtype, temp.dtype, operands));
}

PhaseCode::Partial PhaseCode::combined(const Reduction& reduction, Partial a, Partial b) {
  const DType dtype = point_.temp(reduction.temp).dtype;
  if (a.position == nullptr) {
    Value* const operands[] = {a.value, b.value};
    return {emit_operation(ir_, kOps[static_cast<std::size_t>(reduction.kind)], dtype, dtype, operands)};
  }
  // Of two that are as good the one that stands first: neither is better than the other.
  Value* as_good = ir_.CreateNot(is_better(reduction, a.value, b.value));
  Value* takes_b = ir_.CreateOr(is_better(reduction, b.value, a.value), ir_.CreateAnd(as_good, ir_.CreateICmpSLT(b.position, a.position)));
  return {ir_.CreateSelect(takes_b, b.value, a.value), ir_.CreateSelect(takes_b, b.position, a.position)};
}

/// `value` in those lanes of one sum that are points, `otherwise` in the others.
Value* PhaseCode::where_point(Value* value, Value* otherwise) {
  const bool lanes_of_one_sum = point_.mask() != nullptr and point_.grid().lane_axis != point_.grid().column_axis;
  return lanes_of_one_sum ? ir_.CreateSelect(point_.mask(), value, otherwise) : value;
}

bool PhaseCode::is_sum_of_products(const Reduction& reduction, const Point::Temp& temp) const {
  return point_.multiply_add() == MultiplyAdd::kFused and reduction.kind == ReduceKind::kSum and is_float(temp.dtype) and temp.dtype == temp.result and
         kernel_.exprs[reduction.value].op == ScalarOp::kMul;
}

/// Said outright: LLVM may contract a product and a sum in the vectors of a loop and not in its rest, and results would depend on how the range is split.
Value* PhaseCode::multiply_add(const Reduction& reduction, Value* sum) {
  const Expr& product = kernel_.exprs[reduction.value];
  Value *a = point_.spread(point_.value(product.operands[0])), *b = point_.spread(point_.value(product.operands[1]));
  return ir_.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {a, b, sum});
}

void PhaseCode::accumulate_position(const Reduction& reduction, std::size_t phase, Value* best, Value* value) {
  const Point::Temp& temp = point_.temp(reduction.temp);
  Value* better = is_better(reduction, value, best);
  Value* position = ir_.getInt64(0);
  for (const std::uint32_t axis : nest_.inner[phase])
    position = ir_.CreateNSWAdd(ir_.CreateNSWMul(position, point_.size(nest_.extents[axis])), point_.index(axis));
  point_.write(temp.cells[point_.cell()], ir_.CreateSelect(better, value, best));
  Value* variable = temp.positions[point_.cell()];
  point_.write(variable, ir_.CreateSelect(better, point_.spread(position), point_.read(variable, DType::kI64)));
}

/// Does an arg reduction prefer `value`? A NaN to all that is none.
Value* PhaseCode::is_better(const Reduction& reduction, Value* value, Value* best) {
  const DType dtype = point_.temp(reduction.temp).dtype;
  Value* const operands[] = {value, best};
  Value* better = emit_operation(ir_, reduction.kind == ReduceKind::kArgMax ? ScalarOp::kGt : ScalarOp::kLt, dtype, DType::kBool, operands);
  return is_float(dtype) ? ir_.CreateOr(better, ir_.CreateAnd(ir_.CreateFCmpUNO(value, value), ir_.CreateFCmpORD(best, best))) : better;
}

}  // namespace hone
