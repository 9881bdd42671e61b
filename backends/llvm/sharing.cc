#include <algorithm>

#include "backends/llvm/emit.h"
#include "backends/llvm/nest.h"

namespace hone {

namespace {

bool is_index_of(const Kernel& kernel, ExprId id, std::uint32_t axis) { return kernel.exprs[id].op == ScalarOp::kIndex and kernel.exprs[id].slot == axis; }

/// Does each point that runs `store` in phase `phase` write an element of its own? Each axis must stand by itself in the index.
bool writes_apart(const Kernel& kernel, const Phase& phase, const Store& store) {
  std::vector<std::uint32_t> axes = phase.inner;
  for (std::uint32_t axis = 0; axis < kernel.outer_count; ++axis) axes.push_back(axis);
  return std::ranges::all_of(axes, [&](std::uint32_t axis) {
    return kernel.axes[axis].extent.is_constant(1) or std::ranges::any_of(store.index, [&](ExprId id) { return is_index_of(kernel, id, axis); });
  });
}

/// Does an outer point in an earlier phase load only what the same point stores later? Then inner axes may have other numbers, not other extents.
bool same_elements(const Kernel& kernel, const Expr& load, const Store& store) {
  for (std::size_t i = 0; i < load.index.size(); ++i) {
    const Expr &a = kernel.exprs[load.index[i]], &b = kernel.exprs[store.index[i]];
    if (load.index[i] == store.index[i]) continue;
    const bool inner = a.op == ScalarOp::kIndex and b.op == ScalarOp::kIndex and a.slot >= kernel.outer_count and b.slot >= kernel.outer_count;
    if (not inner or kernel.axes[a.slot].extent != kernel.axes[b.slot].extent) return false;
  }
  return true;
}

}  // namespace

bool may_share_memory(const Kernel& kernel, std::uint32_t written, std::uint32_t read) {
  const KernelBuffer &to = kernel.buffers[written], &from = kernel.buffers[read];
  if (to.access != Access::kWrite or from.access != Access::kRead or to.dtype != from.dtype or to.shape != from.shape) return false;
  if (std::ranges::any_of(kernel.phases, &Phase::scatter)) return false;
  for (std::size_t stored = 0; stored < kernel.phases.size(); ++stored) {
    for (const Store& store : kernel.phases[stored].stores) {
      if (store.buffer != written) continue;
      if (not writes_apart(kernel, kernel.phases[stored], store)) return false;
      for (std::size_t loaded = 0; loaded < kernel.phases.size(); ++loaded) {
        for (const ExprId id : expressions_of(kernel, loaded)) {
          const Expr& load = kernel.exprs[id];
          if (load.op != ScalarOp::kLoad or load.slot != read) continue;
          const bool fits = loaded == stored ? load.index == store.index : loaded < stored and same_elements(kernel, load, store);
          if (not fits) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace hone
