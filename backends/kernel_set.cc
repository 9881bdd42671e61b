#include "backends/kernel_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cost_model.h"
#include "base/check.h"
#include "ir/kernel/rebuild.h"

namespace hone {

namespace {

const Dim& all_elements() {
  static const Dim n = Dim::symbol("n_elements");
  return n;
}

/// Are these the outer axes in order?
bool is_outer_index(const Kernel& kernel, const std::vector<ExprId>& index) {
  if (index.size() != kernel.outer_count) return false;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const Expr& expr = kernel.exprs[index[i]];
    if (expr.op != ScalarOp::kIndex or expr.slot != i) return false;
  }
  return true;
}

bool has_outer_shape(const Kernel& kernel, const Shape& shape) {
  if (shape.size() != kernel.outer_count) return false;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != kernel.axes[i].extent) return false;
  return true;
}

/// One element: every index is 0.
bool is_single(const Kernel& kernel, const KernelBuffer& buffer, const std::vector<ExprId>& index) {
  for (const ExprId id : index)
    if (kernel.exprs[id].op != ScalarOp::kConstInt) return false;
  return element_count(buffer.shape).is_constant(1);
}

bool is_elementwise(const Kernel& kernel, const std::vector<bool>& live) {
  if (kernel.phases.size() != 1 or not kernel.phases[0].inner.empty() or not kernel.phases[0].reductions.empty() or kernel.outer_count == 0) return false;
  for (const Store& store : kernel.phases[0].stores)
    if (store.guard.valid() or not is_outer_index(kernel, store.index) or not has_outer_shape(kernel, kernel.buffers[store.buffer].shape)) return false;
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    const Expr& expr = kernel.exprs[ExprId(i)];
    if (not live[i]) continue;
    if (expr.op == ScalarOp::kSize) return false;
    if (expr.op != ScalarOp::kLoad) continue;
    const KernelBuffer& buffer = kernel.buffers[expr.slot];
    if (expr.guard.valid()) return false;
    if (not(is_outer_index(kernel, expr.index) and has_outer_shape(kernel, buffer.shape)) and not is_single(kernel, buffer, expr.index)) return false;
  }
  // The indices themselves may serve as indices only.
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    if (not live[i]) continue;
    for (const ExprId operand : kernel.exprs[ExprId(i)].operands)
      if (operand.valid() and kernel.exprs[operand].op == ScalarOp::kIndex) return false;
  }
  return kernel.exprs[kernel.phases[0].stores[0].value].op != ScalarOp::kIndex;
}

/// What work_of() takes a point of a phase to do.
std::int64_t operations_of(const Kernel& kernel) {
  const std::vector<bool> live = reachable(kernel);
  return std::max<std::int64_t>(1, std::count(live.begin(), live.end(), true) / std::max<std::int64_t>(1, static_cast<std::int64_t>(kernel.phases.size())));
}

Dim work_of(const Kernel& kernel) {
  Dim inner_points = 0;
  for (const Phase& phase : kernel.phases) {
    Dim points = 1;
    for (const std::uint32_t axis : phase.inner) points *= kernel.axes[axis].extent;
    inner_points += points;
  }
  return kernel.outer_size() * inner_points * operations_of(kernel);
}

}  // namespace

Kernel without_unused_buffers(const Kernel& kernel, std::vector<std::uint32_t>& kept) {
  const std::vector<bool> live = reachable(kernel);
  std::vector<bool> used(kernel.buffers.size());
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i)
    if (live[i] and kernel.exprs[ExprId(i)].op == ScalarOp::kLoad) used[kernel.exprs[ExprId(i)].slot] = true;
  for (const Phase& phase : kernel.phases)
    for (const Store& store : phase.stores) used[store.buffer] = true;
  std::vector<std::uint32_t> numbers(kernel.buffers.size());
  kept.clear();
  for (const Access access : {Access::kRead, Access::kWrite}) {
    for (std::uint32_t i = 0; i < used.size(); ++i) {
      if (not used[i] or kernel.buffers[i].access != access) continue;
      numbers[i] = static_cast<std::uint32_t>(kept.size());
      kept.push_back(i);
    }
  }
  Kernel made = rebuilt(kernel, [&](const Expr&, Expr expr) {
    if (expr.op == ScalarOp::kLoad) expr.slot = numbers[expr.slot];
    return expr;
  });
  made.buffers.clear();
  for (const std::uint32_t i : kept) made.buffers.push_back(kernel.buffers[i]);
  for (Phase& phase : made.phases)
    for (Store& store : phase.stores) store.buffer = numbers[store.buffer];
  return made;
}

Kernel flattened(const Kernel& kernel, std::map<std::string, Dim, std::less<>>& sizes) {
  if (not is_elementwise(kernel, reachable(kernel))) return rebuilt(kernel, [](const Expr&, Expr expr) { return expr; });
  const Dim n = all_elements();
  sizes.emplace(n.text(), kernel.outer_size());
  Kernel made = rebuilt(kernel, [&](const Expr&, Expr expr) {
    if (expr.op == ScalarOp::kLoad) {
      const bool single = element_count(kernel.buffers[expr.slot].shape).is_constant(1);
      expr.index = single ? std::vector<ExprId>{} : std::vector<ExprId>{expr.index.back()};
    }
    if (expr.op == ScalarOp::kIndex) expr.slot = 0;  // all outer indices become the one
    return expr;
  });
  made.axes = {{"i", n}};
  made.outer_count = 1;
  for (KernelBuffer& buffer : made.buffers) buffer.shape = element_count(buffer.shape).is_constant(1) and not has_outer_shape(kernel, buffer.shape) ? Shape{} : Shape{n};
  for (Phase& phase : made.phases)
    for (Store& store : phase.stores) store.index = {store.index.back()};
  return made;
}

Kernel unflattened(const Kernel& kernel, const Shape& shape) {
  if (kernel.axes.size() != 1 or kernel.axes[0].extent != all_elements()) return kernel;
  const auto point = [&](ExprPool& pool) {
    std::vector<ExprId> index;
    for (std::uint32_t axis = 0; axis < shape.size(); ++axis) index.push_back(pool.add({.op = ScalarOp::kIndex, .dtype = DType::kI64, .slot = axis}));
    return index;
  };
  Kernel made = rebuilt(kernel, [&](ExprPool& pool, const Expr&, Expr expr) {
    if (expr.op == ScalarOp::kLoad and not expr.index.empty()) expr.index = point(pool);
    return pool.add(std::move(expr));
  });
  made.axes.clear();
  for (std::size_t axis = 0; axis < shape.size(); ++axis) made.axes.push_back({fmt::format("i{}", axis), shape[axis]});
  made.outer_count = static_cast<std::uint32_t>(shape.size());
  for (KernelBuffer& buffer : made.buffers)
    if (not buffer.shape.empty()) buffer.shape = shape;
  for (Phase& phase : made.phases)
    for (Store& store : phase.stores) store.index = point(made.exprs);
  return made;
}

const Kernel& KernelSet::find(const std::string& symbol) const {
  const auto found = std::ranges::find(kernels_, symbol, &Kernel::name);
  HONE_CHECK(found != kernels_.end(), "there is no kernel " + symbol);
  return *found;
}

double arithmetic_share(const Kernel& kernel) {
  std::vector<bool> counts(kernel.exprs.size());  // values of elements; not indices and guards
  const auto mark = [&](ExprId id) {
    if (id.valid()) counts[id.index] = true;
  };
  int arithmetic = 0;
  for (const Phase& phase : kernel.phases) {
    arithmetic += static_cast<int>(phase.reductions.size());
    for (const Reduction& reduction : phase.reductions) mark(reduction.value);
    for (const Store& store : phase.stores) mark(store.value);
  }
  for (std::size_t i = kernel.exprs.size(); i-- > 0;) {
    if (not counts[i]) continue;
    const Expr& expr = kernel.exprs[ExprId(i)];
    arithmetic += cost_of(expr.op);
    for (const ExprId operand : expr.operands) mark(operand);
  }
  const auto phases = static_cast<double>(std::max<std::size_t>(1, kernel.phases.size()));
  return arithmetic / phases / static_cast<double>(operations_of(kernel));
}

void KernelSet::keep(const std::set<std::string>& symbols) {
  std::erase_if(kernels_, [&](const Kernel& kernel) { return not symbols.contains(kernel.name); });
  std::erase_if(symbols_, [&](const auto& item) { return not symbols.contains(item.second); });
}

KernelCall KernelSet::add(Kernel kernel) {
  KernelCall call;
  std::map<std::string, Dim, std::less<>> stands_for;
  Kernel canonical = flattened(without_unused_buffers(kernel, call.buffers), stands_for);
  const std::string name = kernel.name;
  canonical.name.assign(1, 'k');  // not "= \"k\"": gcc 12 sees an overlapping copy in it
  for (std::size_t i = 0; i < canonical.buffers.size(); ++i) canonical.buffers[i].name = fmt::format("{}{}", canonical.buffers[i].access == Access::kWrite ? "y" : "x", i);
  const std::string text = print(canonical);
  auto [found, is_new] = symbols_.try_emplace(text, "");
  if (is_new) {
    found->second = fmt::format("{}_{}", name, added_++);
    canonical.name = found->second;
    kernels_.push_back(rebuilt(canonical, [](const Expr&, Expr expr) { return expr; }));
  }
  call.symbol = found->second;
  for (const Dim& size : size_arguments(canonical)) call.sizes.push_back(size.substitute(stands_for));
  call.range = canonical.outer_size().substitute(stands_for);
  call.work = work_of(canonical).substitute(stands_for);
  return call;
}

}  // namespace hone
