#include "backends/kernel_cost.h"

#include "backends/arithmetic.h"
#include "backends/cost_model.h"
#include "base/check.h"
#include "ir/kernel/rebuild.h"

namespace hone {

namespace {

using Axes = std::uint64_t;  // a bit for each axis

/// The axes along which an expression may change; a temporary is of its outer point.
std::vector<Axes> axes_of_values(const Kernel& kernel) {
  HONE_CHECK(kernel.axes.size() < 64, "kernel " + kernel.name + " has more than 63 axes");
  std::vector<Axes> sets(kernel.exprs.size());
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const Expr& expr = kernel.exprs[ExprId(i)];
    if (expr.op == ScalarOp::kIndex) sets[i] = Axes{1} << expr.slot;
    if (expr.op == ScalarOp::kTemp) sets[i] = (Axes{1} << kernel.outer_count) - 1;
    for (int k = 0; k < info(expr.op).operands; ++k) sets[i] |= sets[expr.operands[k].index];
    for (const ExprId index : expr.index) sets[i] |= sets[index.index];
  }
  return sets;
}

/// How many elements an access at that index touches, some of them perhaps more than once.
Dim touched(const Kernel& kernel, const std::vector<ExprId>& index, const std::vector<Axes>& axes_of) {
  Axes axes = 0;
  for (const ExprId each : index) axes |= axes_of[each.index];
  Dim count = 1;
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (axes >> axis & 1) count *= kernel.axes[axis].extent;
  return count;
}

Dim bytes_of(const Kernel& kernel) {
  const std::vector<Axes> axes_of = axes_of_values(kernel);
  const std::vector<bool> live = reachable(kernel);
  std::vector<Dim> elements(kernel.buffers.size());
  for (std::size_t i = 0; i < live.size(); ++i)
    if (const Expr& expr = kernel.exprs[ExprId(i)]; live[i] and expr.op == ScalarOp::kLoad) elements[expr.slot] += touched(kernel, expr.index, axes_of);
  for (const Phase& phase : kernel.phases)
    for (const Store& store : phase.stores) elements[store.buffer] += touched(kernel, store.index, axes_of);
  Dim bytes = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Dim all = element_count(kernel.buffers[i].shape);
    const bool is_a_part = elements[i].is_constant(0) or is_much_less(elements[i], all);
    bytes += (is_a_part ? elements[i] : all) * static_cast<std::int64_t>(size_of(kernel.buffers[i].dtype));
  }
  return bytes;
}

}  // namespace

KernelCost cost_of(const Kernel& kernel) { return {arithmetic_of(kernel).flops, bytes_of(kernel)}; }

}  // namespace hone
