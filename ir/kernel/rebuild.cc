#include "ir/kernel/rebuild.h"

#include <algorithm>

namespace hone {

std::vector<bool> reachable(const Kernel& kernel) {
  std::vector<bool> live(kernel.exprs.size());
  const auto mark = [&live](ExprId id) {
    if (id.valid()) live[id.index] = true;
  };
  for (const Phase& phase : kernel.phases) {
    for (const Reduction& reduction : phase.reductions) mark(reduction.value);
    for (const Store& store : phase.stores) {
      std::for_each(store.index.begin(), store.index.end(), mark);
      mark(store.value);
      mark(store.guard);
    }
  }
  for (std::size_t i = kernel.exprs.size(); i-- > 0;) {
    if (not live[i]) continue;
    const Expr& expr = kernel.exprs[ExprId(i)];
    for (const ExprId operand : expr.operands) mark(operand);
    for (const ExprId index : expr.index) mark(index);
    mark(expr.guard);
  }
  return live;
}

Kernel rebuilt(const Kernel& kernel, const std::function<Expr(const Expr& old, Expr mapped)>& change) {
  return rebuilt(kernel, [&change](ExprPool& pool, const Expr& old, Expr mapped) { return pool.add(change(old, std::move(mapped))); });
}

Kernel rebuilt(const Kernel& kernel, const std::function<ExprId(ExprPool& pool, const Expr& old, Expr mapped)>& change) {
  Kernel made;
  made.name = kernel.name;
  made.buffers = kernel.buffers;
  made.axes = kernel.axes;
  made.outer_count = kernel.outer_count;
  made.phases = kernel.phases;
  made.repeats = kernel.repeats;
  made.triangle = kernel.triangle;
  const std::vector<bool> live = reachable(kernel);
  std::vector<ExprId> map(kernel.exprs.size());
  const auto mapped = [&map](ExprId id) { return id.valid() ? map[id.index] : id; };
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    if (not live[i]) continue;
    const Expr& old = kernel.exprs[ExprId(i)];
    Expr expr = old;
    for (ExprId& operand : expr.operands) operand = mapped(operand);
    for (ExprId& index : expr.index) index = mapped(index);
    expr.guard = mapped(expr.guard);
    map[i] = change(made.exprs, old, std::move(expr));
  }
  for (Phase& phase : made.phases) {
    for (Reduction& reduction : phase.reductions) reduction.value = mapped(reduction.value);
    for (Store& store : phase.stores) {
      for (ExprId& index : store.index) index = mapped(index);
      store.value = mapped(store.value);
      store.guard = mapped(store.guard);
    }
  }
  return made;
}

}  // namespace hone
