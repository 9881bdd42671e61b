#include "backends/llvm/nest.h"

#include <algorithm>
#include <functional>
#include <set>

#include "backends/cost_model.h"
#include "base/check.h"

namespace hone {

namespace {

bool is_number(const Offset& offset) { return offset.axes.empty() and offset.values.empty(); }

void add_scaled(Offset& sum, const Offset& term, const Size& factor) {
  sum.constant = sum.constant + term.constant * factor;
  const auto add = [&factor](auto& to, const auto& from) {
    for (const auto& [key, coefficient] : from) {
      Size& slot = to[key];
      slot = slot + coefficient * factor;
      if (slot.is_constant(0)) to.erase(key);
    }
  };
  add(sum.axes, term.axes);
  add(sum.values, term.values);
}

/// Linear forms of i64 expressions, and of accesses.
class Linearizer {
 public:
  Linearizer(const Kernel& kernel, const Nest& nest) : kernel_(kernel), nest_(nest) {}

  Offset access(std::uint32_t buffer, const std::vector<ExprId>& index) const {
    Offset offset;
    Size stride = 1;
    for (std::size_t axis = index.size(); axis-- > 0;) {
      add_scaled(offset, linear(index[axis]), stride);
      stride = stride * Size::of(kernel_.buffers[buffer].shape[axis], nest_.arguments);
    }
    return offset;
  }

  Offset linear(ExprId id) const {
    const Expr& e = kernel_.exprs[id];
    Offset result;
    switch (e.op) {
      case ScalarOp::kConstInt: result.constant = e.int_value; return result;
      case ScalarOp::kSize: result.constant = Size::of(e.size, nest_.arguments); return result;
      case ScalarOp::kIndex:
        if (not nest_.dropped[e.slot]) result.axes[e.slot] = 1;
        return result;
      case ScalarOp::kNeg: add_scaled(result, linear(e.operands[0]), -1); return result;
      case ScalarOp::kAdd:
      case ScalarOp::kSub:
        result = linear(e.operands[0]);
        add_scaled(result, linear(e.operands[1]), e.op == ScalarOp::kAdd ? 1 : -1);
        return result;
      case ScalarOp::kMul: {
        const Offset a = linear(e.operands[0]), b = linear(e.operands[1]);
        if (is_number(a) or is_number(b)) {
          add_scaled(result, is_number(a) ? b : a, is_number(a) ? a.constant : b.constant);
          return result;
        }
        break;
      }
      default: break;
    }
    result.values[id] = 1;
    return result;
  }

 private:
  const Kernel& kernel_;
  const Nest& nest_;
};

/// Visits every expression reachable from `roots`, operands after users. `through_index`: also what a load's index is computed from.
class Reach {
 public:
  Reach(const Kernel& kernel, const std::function<std::vector<ExprId>(ExprId)>& indices) : kernel_(kernel), indices_(indices), seen_(kernel.exprs.size()) {}

  void add(ExprId root) {
    if (not root.valid() or seen_[root.index]) return;
    seen_[root.index] = true;
    const Expr& e = kernel_.exprs[root];
    for (int i = 0; i < info(e.op).operands; ++i) add(e.operands[i]);
    add(e.guard);
    if (e.op != ScalarOp::kLoad) return;
    for (const ExprId id : indices_(root)) add(id);
  }
  const std::vector<bool>& seen() const { return seen_; }

 private:
  const Kernel& kernel_;
  std::function<std::vector<ExprId>(ExprId)> indices_;
  std::vector<bool> seen_;
};

std::vector<ExprId> values_of(const Offset& offset) {
  std::vector<ExprId> ids;
  for (const auto& [id, coefficient] : offset.values) ids.push_back(id);
  return ids;
}

/// The axes whose index is read other than through linear forms of accesses: they must stay what they are.
std::set<std::uint32_t> pinned_axes(const Kernel& kernel, const Nest& nest) {
  Reach reach(kernel, [&nest](ExprId load) { return values_of(nest.loads.at(load)); });
  for (std::size_t p = 0; p < kernel.phases.size(); ++p) {
    const Phase& phase = kernel.phases[p];
    for (const Reduction& reduction : phase.reductions) reach.add(reduction.value);
    for (std::size_t s = 0; s < phase.stores.size(); ++s) {
      reach.add(phase.stores[s].value);
      reach.add(phase.stores[s].guard);
      if (phase.scatter) reach.add(phase.stores[s].index[0]);
      for (const ExprId id : values_of(nest.stores[p][s])) reach.add(id);
    }
  }
  std::set<std::uint32_t> pinned;
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i)
    if (reach.seen()[i] and kernel.exprs[ExprId(i)].op == ScalarOp::kIndex) pinned.insert(kernel.exprs[ExprId(i)].slot);
  if (kernel.triangle) pinned.insert({kernel.triangle->low, kernel.triangle->high});
  return pinned;
}

class Merger {
 public:
  Merger(Nest& nest, std::set<std::uint32_t> pinned) : nest_(nest), pinned_(std::move(pinned)) {}

  void run() {
    merge_list(nest_.outer);
    for (std::size_t p = 0; p < nest_.inner.size(); ++p) merge_list(nest_.inner[p]);
  }

 private:
  void merge_list(std::vector<std::uint32_t>& list) {
    for (std::size_t i = list.size(); i-- > 1;) {
      const std::uint32_t a = list[i - 1], b = list[i];
      if (can_merge(a, b)) merge(a, b);
    }
  }

  bool can_merge(std::uint32_t a, std::uint32_t b) const {
    if (pinned_.contains(a) or pinned_.contains(b)) return false;
    for (const auto& phase : nest_.inner) {
      const auto at = std::ranges::find(phase, a), bt = std::ranges::find(phase, b);
      const bool neither = at == phase.end() and bt == phase.end();
      if (not neither and (at == phase.end() or at + 1 != bt)) return false;
    }
    bool contiguous = true;
    for_each_offset([&](const Offset& offset) {
      const auto coefficient = [&offset](std::uint32_t axis) { return offset.axes.contains(axis) ? offset.axes.at(axis) : Size(0); };
      contiguous = contiguous and coefficient(a) == coefficient(b) * nest_.extents[b];
    });
    return contiguous;
  }

  /// b stands for both.
  void merge(std::uint32_t a, std::uint32_t b) {
    nest_.extents[b] = nest_.extents[a] * nest_.extents[b];
    for_each_offset([a](Offset& offset) { offset.axes.erase(a); });
    std::erase(nest_.outer, a);
    for (auto& phase : nest_.inner) std::erase(phase, a);
  }

  template <typename Function>
  void for_each_offset(Function function) const {
    for (auto& [id, offset] : nest_.loads) function(offset);
    for (auto& phase : nest_.stores)
      for (Offset& offset : phase) function(offset);
  }

  Nest& nest_;
  std::set<std::uint32_t> pinned_;
};

/// What it costs, roughly, to make `axis` the innermost loop: scattered accesses, and a loop too short to be worth a vector, most of all where it takes exponentials.
int cost_along(const Kernel& kernel, const Nest& nest, std::size_t phase, std::uint32_t axis, const std::vector<std::uint64_t>& axes_of) {
  int scattered = 0, work = 0;
  for (const ExprId id : expressions_of(kernel, phase)) {
    if (kernel.exprs[id].op == ScalarOp::kLoad and stride_along(nest.loads.at(id), axis, axes_of) == Stride::kOther) ++scattered;
    if (axes_of[id.index] >> axis & 1) work += cost_of(kernel.exprs[id].op);
  }
  for (const Offset& offset : nest.stores[phase])
    if (stride_along(offset, axis, axes_of) == Stride::kOther) ++scattered;
  const Size& extent = nest.extents[axis];
  const bool is_short = extent.is_constant() and extent.value() < 16;
  return 4 * scattered + (is_short ? 3 + work / 2 : 0);
}

}  // namespace

std::vector<ExprId> expressions_of(const Kernel& kernel, std::size_t phase) {
  Reach reach(kernel, [&kernel](ExprId load) { return kernel.exprs[load].index; });
  for (const Reduction& reduction : kernel.phases[phase].reductions) reach.add(reduction.value);
  for (const Store& store : kernel.phases[phase].stores) {
    reach.add(store.value);
    reach.add(store.guard);
    for (const ExprId id : store.index) reach.add(id);
  }
  std::vector<ExprId> ids;
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i)
    if (reach.seen()[i]) ids.emplace_back(i);
  return ids;
}

std::vector<std::uint64_t> axes_of_expressions(const Kernel& kernel) {
  HONE_CHECK(kernel.axes.size() <= 64, "kernel " + kernel.name + " has more than 64 axes");
  std::vector<std::uint64_t> sets(kernel.exprs.size());
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const Expr& e = kernel.exprs[ExprId(i)];
    if (e.op == ScalarOp::kIndex) sets[i] = std::uint64_t{1} << e.slot;
    for (int k = 0; k < info(e.op).operands; ++k) sets[i] |= sets[e.operands[k].index];
    for (const ExprId index : e.index) sets[i] |= sets[index.index];
    if (e.guard.valid()) sets[i] |= sets[e.guard.index];
  }
  return sets;
}

Offset linear_form(const Kernel& kernel, const Nest& nest, ExprId id) { return Linearizer(kernel, nest).linear(id); }

Nest make_nest(const Kernel& kernel) {
  Nest nest;
  nest.arguments = size_arguments(kernel);
  for (std::uint32_t axis = 0; axis < kernel.axes.size(); ++axis) {
    nest.extents.push_back(Size::of(kernel.axes[axis].extent, nest.arguments));
    const bool scatter_rows = axis == 0 and std::ranges::any_of(kernel.phases, &Phase::scatter);  // its range is what a call owns
    nest.dropped.push_back(nest.extents.back().is_constant(1) and not scatter_rows);
    if (axis < kernel.outer_count and not nest.dropped[axis]) nest.outer.push_back(axis);
  }
  const Linearizer linearizer(kernel, nest);
  for (std::size_t p = 0; p < kernel.phases.size(); ++p) {
    std::vector<std::uint32_t> inner = kernel.phases[p].inner;
    std::erase_if(inner, [&nest](std::uint32_t axis) { return nest.dropped[axis]; });
    nest.inner.push_back(std::move(inner));
    for (const ExprId id : expressions_of(kernel, p)) {
      const Expr& e = kernel.exprs[id];
      if (e.op == ScalarOp::kLoad) nest.loads.try_emplace(id, linearizer.access(e.slot, e.index));
    }
    std::vector<Offset>& stores = nest.stores.emplace_back();
    for (const Store& store : kernel.phases[p].stores) stores.push_back(linearizer.access(store.buffer, store.index));
  }
  Merger(nest, pinned_axes(kernel, nest)).run();
  return nest;
}

Stride stride_along(const Offset& offset, std::uint32_t axis, const std::vector<std::uint64_t>& axes_of) {
  for (const auto& [id, coefficient] : offset.values)
    if (axes_of[id.index] >> axis & 1) return Stride::kOther;
  const auto at = offset.axes.find(axis);
  if (at == offset.axes.end()) return Stride::kNone;
  return at->second.is_constant(1) ? Stride::kOne : Stride::kOther;
}

bool is_contiguous_in_stores(const Nest& nest, std::uint32_t axis, const std::vector<std::uint64_t>& axes_of) {
  return std::ranges::all_of(nest.stores, [&](const std::vector<Offset>& offsets) {
    return std::ranges::all_of(offsets, [&](const Offset& offset) { return stride_along(offset, axis, axes_of) == Stride::kOne; });
  });
}

bool runs_across_outer(const Kernel& kernel, const Nest& nest) {
  if (nest.outer.empty()) return false;
  const std::uint32_t across = nest.outer.back();
  if (nest.extents[across].is_constant() and nest.extents[across].value() < 4) return false;
  const std::vector<std::uint64_t> axes_of = axes_of_expressions(kernel);
  int along_cost = 0, across_cost = 0, loops = 0;
  for (std::size_t p = 0; p < kernel.phases.size(); ++p) {
    if (nest.inner[p].empty() or kernel.phases[p].scatter) continue;
    ++loops;
    along_cost += cost_along(kernel, nest, p, nest.inner[p].back(), axes_of);
    across_cost += cost_along(kernel, nest, p, across, axes_of) + 1;  // the block's accumulators pass through memory
  }
  return loops > 0 and across_cost < along_cost;
}

}  // namespace hone
