#include "backends/panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "backends/llvm/nest.h"
#include "backends/llvm/reduction.h"
#include "base/check.h"
#include "base/text.h"
#include "ir/kernel/rebuild.h"

namespace hone {

namespace {

using plan::Buffer;
using plan::Entry;
using plan::KernelStep;
using plan::Panels;
using plan::Step;

constexpr std::int64_t kWidth = 32;         ///< columns of a tile of every vector unit are 32, or divide it
constexpr std::int64_t kFewElements = 8192;  ///< a matrix that fits the first level cache is read as fast with a stride

bool contains(const std::vector<std::uint32_t>& list, std::uint32_t item) { return std::ranges::find(list, item) != list.end(); }

ExprId index_of(ExprPool& pool, std::uint32_t axis) { return pool.add({.op = ScalarOp::kIndex, .dtype = DType::kI64, .slot = axis}); }

// ---- kernels

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
  /// An access: its axis is to be cut.
  bool note(const std::vector<ExprId>& index, const Shape& shape) {
    const Expr& along = kernel_.exprs[index[panels_.axis]];
    if (along.op != ScalarOp::kIndex or kernel_.axes[along.slot].extent != shape[panels_.axis]) return false;
    cut_.insert(along.slot);
    return true;
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
    for (std::uint32_t axis = 0; axis < kernel_.outer_count; ++axis) add_rest(axis);
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

/// The panels that a product of the kernel would read the buffer in: along the last axis that the columns walk, where another is summed over.
std::optional<Panels> panels_for(const Kernel& kernel, std::uint32_t buffer) {
  const Shape& shape = kernel.buffers[buffer].shape;
  if (not is_constant(shape) or shape.size() < 2 or kernel.buffers[buffer].dtype != DType::kF32 or element_count(shape).value() < kFewElements) return std::nullopt;
  const std::vector<std::uint64_t> axes_of = axes_of_expressions(kernel);
  for (const Phase& phase : kernel.phases)
    for (const Reduction& reduction : phase.reductions) {
      if (not is_contraction(kernel, reduction, axes_of)) continue;
      for (const ExprId factor : kernel.exprs[reduction.value].operands) {
        if (not factor.valid() or kernel.exprs[factor].op != ScalarOp::kLoad or kernel.exprs[factor].slot != buffer) continue;
        const std::vector<ExprId>& index = kernel.exprs[factor].index;
        const auto walks = [&](std::size_t axis, bool outer) {
          const Expr& along = kernel.exprs[index[axis]];
          return along.op == ScalarOp::kIndex and (along.slot < kernel.outer_count) == outer and not shape[axis].is_constant(1);
        };
        bool summed = false;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) summed = summed or walks(axis, false);
        for (std::size_t axis = shape.size(); summed and axis-- > 0;)
          if (walks(axis, true) and shape[axis].value() % kWidth == 0 and shape[axis].value() > kWidth) return Panels{static_cast<std::uint32_t>(axis), kWidth};
      }
    }
  return std::nullopt;
}

// ---- steps

/// What becomes of the steps that touch some tensors, once it is known that all of them can.
class Change {
 public:
  Change(const Shape& shape, const Panels& panels, KernelSet& kernels) : shape_(shape), panels_(panels), kernels_(kernels) {}

  /// `touched`: buffers of the entry that show one of the tensors. If something else than a kernel touches one, or a kernel that cannot, tells why not.
  void add(Entry& entry, const std::set<std::uint32_t>& touched) {
    for (const Buffer& buffer : entry.buffers)
      if (buffer.storage == Buffer::Storage::kView and touched.contains(buffer.index)) return refuse("it is read under another shape", entry);
    for (const plan::Result& result : entry.results)
      if (touched.contains(result.buffer)) return refuse("it is a result", entry);
    for (Step& step : entry.steps) {
      std::vector<std::uint32_t> numbers;  // of the kernel's buffers
      const auto* call = std::get_if<KernelStep>(&step.what);
      for (std::uint32_t i = 0; call != nullptr and i < call->buffers.size(); ++i)
        if (touched.contains(call->buffers[i])) numbers.push_back(i);
      bool otherwise = false;
      if (call == nullptr) plan::for_each_buffer(step, [&](std::uint64_t buffer, plan::Access) { otherwise = otherwise or touched.contains(static_cast<std::uint32_t>(buffer)); });
      if (otherwise) return refuse("no kernel reads it: " + step.origin, entry);
      if (numbers.empty()) continue;
      auto made = over_panels(kernels_.find(call->symbol), numbers, shape_, panels_);
      if (not made) return refuse("a kernel works out where it reads: " + step.origin, entry);
      calls_.emplace_back(&step, std::move(*made));
    }
    for (const std::uint32_t buffer : touched) buffers_.push_back(&entry.buffers[buffer]);
  }
  const std::string& why_not() const { return why_not_; }

  void apply() {
    for (auto& [step, kernel] : calls_) {
      auto& call = std::get<KernelStep>(step->what);
      kernel.name = call.symbol.substr(0, call.symbol.rfind('_'));  // the set numbers it
      const KernelCall made = kernels_.add(std::move(kernel));
      HONE_CHECK(made.buffers.size() == call.buffers.size(), "a kernel in panels touches other buffers");
      call = {made.symbol, call.buffers, made.sizes, made.range, made.work, call.read_only};
    }
    for (Buffer* buffer : buffers_) buffer->shape = plan::panel_shape(buffer->shape, panels_);
  }

 private:
  void refuse(const std::string& reason, const Entry& entry) {
    if (why_not_.empty()) why_not_ = fmt::format("{} ({})", reason, entry.name);
  }

  const Shape shape_;
  const Panels panels_;
  KernelSet& kernels_;
  std::string why_not_;
  std::vector<std::pair<Step*, Kernel>> calls_;
  std::vector<Buffer*> buffers_;
};

/// The entry and all bodies in it.
void for_each_entry(Entry& entry, const std::function<void(Entry&)>& visit) {
  visit(entry);
  for (Step& step : entry.steps)
    if (auto* region = std::get_if<plan::RegionStep>(&step.what))
      for (Entry& body : region->bodies) for_each_entry(body, visit);  // the verifier limits the depth
}

class WeightLayout {
 public:
  WeightLayout(std::vector<Entry>& entries, std::vector<plan::Persistent>& persistents, KernelSet& kernels)
      : entries_(entries), persistents_(persistents), kernels_(kernels) {}

  std::vector<std::string> run() {
    std::vector<std::string> lines;
    for (std::uint32_t weight = 0; weight < persistents_.size(); ++weight) {
      if (persistents_[weight].role != plan::Persistent::Role::kWeight or persistents_[weight].panels) continue;
      const std::optional<Panels> panels = wanted(weight);
      if (not panels) continue;
      const std::set<std::uint32_t> group = updated_alike(weight);
      Change change(shape_of(persistents_[weight].initial.shape()), *panels, kernels_);
      for_each([&](Entry& entry) { change.add(entry, buffers_of(entry, group)); });
      const std::string name = printable(persistents_[weight].name);
      if (not change.why_not().empty()) {
        lines.push_back(fmt::format("{}: row by row, because {}", name, change.why_not()));
        continue;
      }
      change.apply();
      for (const std::uint32_t member : group) persistents_[member].panels = panels;
      lines.push_back(fmt::format("{}: in panels of {} along axis {}, and {} states with it", name, panels->width, panels->axis, group.size() - 1));
    }
    return lines;
  }

 private:
  void for_each(const std::function<void(Entry&)>& visit) {
    for (Entry& entry : entries_) for_each_entry(entry, visit);
  }

  static std::set<std::uint32_t> buffers_of(const Entry& entry, const std::set<std::uint32_t>& group) {
    std::set<std::uint32_t> buffers;
    for (std::uint32_t i = 0; i < entry.buffers.size(); ++i)
      if (entry.buffers[i].storage == Buffer::Storage::kPersistent and group.contains(entry.buffers[i].index)) buffers.insert(i);
    return buffers;
  }

  /// Calls visit(entry, call, number of the kernel's buffer) for what kernels touch of a persistent tensor.
  void for_each_touch(std::uint32_t persistent, const std::function<void(const Entry&, const KernelStep&, std::uint32_t)>& visit) {
    for_each([&](Entry& entry) {
      const std::set<std::uint32_t> buffers = buffers_of(entry, {persistent});
      for (const Step& step : entry.steps)
        if (const auto* call = std::get_if<KernelStep>(&step.what))
          for (std::uint32_t i = 0; i < call->buffers.size(); ++i)
            if (buffers.contains(call->buffers[i])) visit(entry, *call, i);
    });
  }

  /// By the first product that reads the weight, which is one of the forward pass.
  std::optional<Panels> wanted(std::uint32_t weight) {
    std::optional<Panels> panels;
    for_each_touch(weight, [&](const Entry&, const KernelStep& call, std::uint32_t buffer) {
      if (not panels) panels = panels_for(kernels_.find(call.symbol), buffer);
    });
    return panels;
  }

  /// The weight, and the states of its shape that a kernel touches as it stores the weight.
  std::set<std::uint32_t> updated_alike(std::uint32_t weight) {
    std::set<std::uint32_t> group = {weight};
    for_each_touch(weight, [&](const Entry& entry, const KernelStep& call, std::uint32_t number) {
      if (number < call.read_only) return;
      const Kernel& kernel = kernels_.find(call.symbol);
      for (std::uint32_t i = 0; i < call.buffers.size(); ++i) {
        const Buffer& buffer = entry.buffers[call.buffers[i]];
        if (buffer.storage != Buffer::Storage::kPersistent or kernel.buffers[i].shape != kernel.buffers[number].shape) continue;
        const plan::Persistent& state = persistents_[buffer.index];
        if (state.role == plan::Persistent::Role::kState and state.initial.shape() == persistents_[weight].initial.shape()) group.insert(buffer.index);
      }
    });
    return group;
  }

  std::vector<Entry>& entries_;
  std::vector<plan::Persistent>& persistents_;
  KernelSet& kernels_;
};

}  // namespace

std::optional<Kernel> over_panels(const Kernel& kernel, const std::vector<std::uint32_t>& buffers, const Shape& shape, const plan::Panels& panels) {
  const Kernel whole = unflattened(kernel, shape);
  Cutter cutter(whole, buffers, panels);
  if (not cutter.can_be_cut(shape)) return std::nullopt;
  return cutter.run();
}

std::vector<std::string> lay_out_in_panels(std::vector<plan::Entry>& entries, std::vector<plan::Persistent>& persistents, KernelSet& kernels) {
  return WeightLayout(entries, persistents, kernels).run();
}

std::optional<plan::Panels> lay_out_feed_in_panels(plan::Entry& body, std::uint32_t feed, KernelSet& kernels) {
  std::set<std::uint32_t> shown;
  for (std::uint32_t i = 0; i < body.buffers.size(); ++i)
    if (body.buffers[i].storage == Buffer::Storage::kFeed and body.buffers[i].index == feed) shown.insert(i);
  std::optional<Panels> panels;
  for (const Step& step : body.steps)
    if (const auto* call = std::get_if<KernelStep>(&step.what))
      for (std::uint32_t i = 0; i < call->buffers.size() and not panels; ++i)
        if (shown.contains(call->buffers[i])) panels = panels_for(kernels.find(call->symbol), i);
  if (not panels) return std::nullopt;
  Change change(body.feeds[feed].shape, *panels, kernels);
  change.add(body, shown);
  if (not change.why_not().empty()) return std::nullopt;
  change.apply();
  body.feeds[feed].shape = plan::panel_shape(body.feeds[feed].shape, *panels);
  return panels;
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
