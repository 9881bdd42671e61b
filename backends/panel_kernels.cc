#include "backends/panel_kernels.h"

#include <algorithm>
#include <set>

#include "backends/kernel_set.h"
#include "backends/llvm/blocking.h"
#include "backends/llvm/reduction.h"
#include "base/check.h"
#include "ir/kernel/rebuild.h"

namespace hone {

namespace {

using plan::Panels;

constexpr std::int64_t kWidth = 32;          ///< columns of a tile of every vector unit are 32, or divide it
constexpr std::int64_t kWideWidth = 64;      ///< of four vectors: flatter tiles, which load less for each product, and go over the columns' factor more often
constexpr std::int64_t kManyRows = 1024;     ///< with which that is the better choice
constexpr std::int64_t kFewElements = 8192;  ///< a matrix that fits the first level cache is read as fast with a stride

bool contains(const std::vector<std::uint32_t>& list, std::uint32_t item) { return std::ranges::find(list, item) != list.end(); }

ExprId index_of(ExprPool& pool, std::uint32_t axis) { return pool.add({.op = ScalarOp::kIndex, .dtype = DType::kI64, .slot = axis}); }

/// Of the product's result: all outer points but those along the columns.
bool has_many_rows(const Kernel& kernel, std::uint32_t columns) {
  constexpr std::int64_t kTypicalExtent = 64;
  Dim rows = 1;
  for (std::uint32_t axis = 0; axis < kernel.outer_count; ++axis)
    if (axis != columns) rows *= kernel.axes[axis].extent;
  return rows.guess(kTypicalExtent) >= kManyRows;
}

/// Of panels of so many columns; 0: they would be no whole panels, or a single one.
std::int64_t width_along(std::int64_t columns, bool many_rows) {
  const auto cuts = [columns](std::int64_t width) { return columns % width == 0 and columns > width; };
  return many_rows and cuts(kWideWidth) ? kWideWidth : cuts(kWidth) ? kWidth : 0;
}

class Cutter {
 public:
  Cutter(const Kernel& kernel, const std::vector<std::uint32_t>& buffers, const Panels& panels) : kernel_(kernel), buffers_(buffers), panels_(panels) {}

  bool can_be_cut(const Shape& shape) {
    if (std::ranges::any_of(kernel_.phases, &Phase::scatter)) return false;
    for (const std::uint32_t buffer : buffers_)
      if (kernel_.buffers[buffer].shape != shape) return false;
    const std::vector<bool> live = reachable(kernel_);
    bool can = true;
    for (std::size_t i = 0; i < live.size(); ++i) {
      const Expr& e = kernel_.exprs[ExprId(i)];
      if (live[i] and e.op == ScalarOp::kLoad and contains(buffers_, e.slot)) can = can and note(e.index, shape);
    }
    for (const Phase& phase : kernel_.phases)
      for (const Store& store : phase.stores)
        if (contains(buffers_, store.buffer)) can = can and note(store.index, shape);
    return can;
  }

  Kernel run() {
    number_axes();
    Kernel made = rebuilt(kernel_, [&](ExprPool& pool, const Expr& old, Expr mapped) {
      if (old.op == ScalarOp::kIndex) {
        const ExprId inner = index_of(pool, inner_[old.slot]);
        if (not cut_.contains(old.slot)) return inner;
        const Scalar piece(pool, index_of(pool, outer_[old.slot]));
        return (piece * expr::constant_int(pool, DType::kI64, panels_.width) + Scalar(pool, inner)).id();
      }
      if (old.op == ScalarOp::kLoad and contains(buffers_, old.slot)) mapped.index = in_panels(pool, old.index, mapped.index);
      return pool.add(std::move(mapped));
    });
    made.axes = axes_;
    made.outer_count = outer_count_;
    made.triangle = triangle();
    for (const std::uint32_t buffer : buffers_) made.buffers[buffer].shape = plan::panel_shape(made.buffers[buffer].shape, panels_);
    for (std::size_t p = 0; p < made.phases.size(); ++p) {
      Phase& phase = made.phases[p];
      phase.inner.clear();
      for (const std::uint32_t axis : kernel_.phases[p].inner) {
        if (cut_.contains(axis)) phase.inner.push_back(outer_[axis]);
        phase.inner.push_back(inner_[axis]);
      }
      for (std::size_t s = 0; s < phase.stores.size(); ++s)
        if (contains(buffers_, phase.stores[s].buffer)) phase.stores[s].index = in_panels(made.exprs, kernel_.phases[p].stores[s].index, phase.stores[s].index);
    }
    verify(made);
    return made;
  }

 private:
  /// The kernel's triangle under its axes' new numbers, where both are still whole.
  std::optional<Triangle> triangle() const {
    if (not kernel_.triangle or cut_.contains(kernel_.triangle->low) or cut_.contains(kernel_.triangle->high)) return std::nullopt;
    return Triangle{.low = inner_[kernel_.triangle->low], .high = inner_[kernel_.triangle->high]};
  }

  /// An access: its axis is to be cut.
  bool note(const std::vector<ExprId>& index, const Shape& shape) {
    const Expr& along = kernel_.exprs[index[panels_.axis]];
    if (along.op != ScalarOp::kIndex or kernel_.axes[along.slot].extent != shape[panels_.axis]) return false;
    cut_.insert(along.slot);
    return true;
  }

  /// Does the kernel only walk its points, and most of what it touches lies in panels? It then walks them in the order of the memory.
  bool is_map_over_panels() const {
    const auto is_tensor = [](const KernelBuffer& buffer) { return not element_count(buffer.shape).is_constant(1); };
    const auto tensors = static_cast<std::size_t>(std::ranges::count_if(kernel_.buffers, is_tensor));
    return kernel_.axes.size() == kernel_.outer_count and cut_.size() == 1 and buffers_.size() > tensors / 2 and buffers_.size() > 1;
  }

  /// The pieces of outer axes come first: they are what threads share out. Both parts of an inner axis stay where it was.
  void number_axes() {
    outer_.assign(kernel_.axes.size(), 0);
    inner_.assign(kernel_.axes.size(), 0);
    const auto add = [this](const std::string& name, const Dim& extent) {
      axes_.push_back({name, extent});
      return static_cast<std::uint32_t>(axes_.size() - 1);
    };
    const auto add_pieces = [&](std::uint32_t axis) { outer_[axis] = add(kernel_.axes[axis].name + "o", floordiv(kernel_.axes[axis].extent, panels_.width)); };
    const auto add_rest = [&](std::uint32_t axis) {
      const KernelAxis& old = kernel_.axes[axis];
      inner_[axis] = cut_.contains(axis) ? add(old.name + "i", panels_.width) : add(old.name, old.extent);
    };
    for (const std::uint32_t axis : cut_)
      if (axis < kernel_.outer_count) add_pieces(axis);
    const bool cut_last = is_map_over_panels();
    for (std::uint32_t axis = 0; axis < kernel_.outer_count; ++axis)
      if (not cut_last or not cut_.contains(axis)) add_rest(axis);
    if (cut_last) add_rest(*cut_.begin());
    outer_count_ = static_cast<std::uint32_t>(axes_.size());
    for (std::uint32_t axis = kernel_.outer_count; axis < kernel_.axes.size(); ++axis) {
      if (cut_.contains(axis)) add_pieces(axis);
      add_rest(axis);
    }
  }

  /// The index of an access in panels; `made` is it in the new pool.
  std::vector<ExprId> in_panels(ExprPool& pool, const std::vector<ExprId>& old, const std::vector<ExprId>& made) const {
    const std::uint32_t axis = kernel_.exprs[old[panels_.axis]].slot;
    std::vector<ExprId> index = {index_of(pool, outer_[axis])};
    for (std::size_t i = 0; i < made.size(); ++i)
      if (i != panels_.axis) index.push_back(made[i]);
    index.push_back(index_of(pool, inner_[axis]));
    return index;
  }

  const Kernel& kernel_;
  const std::vector<std::uint32_t>& buffers_;
  const Panels& panels_;
  std::set<std::uint32_t> cut_;              // axes of the kernel
  std::vector<std::uint32_t> outer_, inner_;  // by axis: what stands for it; outer_ only if it is cut
  std::vector<KernelAxis> axes_;
  std::uint32_t outer_count_ = 0;
};

}  // namespace

std::optional<Kernel> over_panels(const Kernel& kernel, const std::vector<std::uint32_t>& buffers, const Shape& shape, const plan::Panels& panels) {
  const Kernel whole = unflattened(kernel, shape);
  Cutter cutter(whole, buffers, panels);
  if (not cutter.can_be_cut(shape)) return std::nullopt;
  return cutter.run();
}

std::optional<Panels> panels_for(const Kernel& kernel, std::uint32_t buffer) {
  const Shape& shape = kernel.buffers[buffer].shape;
  if (not is_constant(shape) or shape.size() < 2 or kernel.buffers[buffer].dtype != DType::kF32) return std::nullopt;
  const std::vector<std::uint64_t> axes_of = axes_of_expressions(kernel);
  for (const Phase& phase : kernel.phases)
    for (const Reduction& reduction : phase.reductions) {
      if (not is_contraction(kernel, reduction, axes_of)) continue;
      for (const ExprId factor : kernel.exprs[reduction.value].operands) {
        if (not factor.valid() or kernel.exprs[factor].op != ScalarOp::kLoad or kernel.exprs[factor].slot != buffer) continue;
        const bool slides = hone::slides(kernel, kAvx512);  // its tiles walk all of a weight for each line of an image, some columns at a time
        if (not slides and element_count(shape).value() < kFewElements) return std::nullopt;
        const std::vector<ExprId>& index = kernel.exprs[factor].index;
        const auto walks = [&](std::size_t axis, bool outer) {
          const Expr& along = kernel.exprs[index[axis]];
          return along.op == ScalarOp::kIndex and (along.slot < kernel.outer_count) == outer and not shape[axis].is_constant(1);
        };
        bool summed = false;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) summed = summed or walks(axis, false);
        for (std::size_t axis = shape.size(); summed and axis-- > 0;) {
          if (not walks(axis, true)) continue;
          const std::int64_t width = slides ? shape[axis].value() : width_along(shape[axis].value(), has_many_rows(kernel, kernel.exprs[index[axis]].slot));
          if (width > 0) return Panels{static_cast<std::uint32_t>(axis), width};
        }
      }
    }
  return std::nullopt;
}

Kernel copy_into_panels(const Shape& shape, const plan::Panels& panels) {
  Kernel kernel;
  kernel.name = "panels";
  kernel.buffers = {{"x", DType::kF32, shape, Access::kRead}, {"y", DType::kF32, shape, Access::kWrite}};
  std::vector<ExprId> point;
  for (std::uint32_t axis = 0; axis < shape.size(); ++axis) {
    kernel.axes.push_back({"i" + std::to_string(axis), shape[axis]});
    point.push_back(index_of(kernel.exprs, axis));
  }
  kernel.outer_count = static_cast<std::uint32_t>(shape.size());
  const ExprId value = kernel.exprs.add({.op = ScalarOp::kLoad, .dtype = DType::kF32, .slot = 0, .index = point});
  kernel.phases.resize(1);
  kernel.phases[0].stores.push_back({.buffer = 1, .index = point, .value = value, .guard = {}});
  return *over_panels(kernel, {1}, shape, panels);
}

}  // namespace hone
