#include "ir/kernel/fused.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/kernel/compute.h"
#include "ir/kernel/rebuild.h"
#include "ir/kernel/scalar_math.h"
#include "ir/op.h"
#include "ir/ops/ops.h"

namespace hone {

namespace {

bool is_index_of(const Expr& expr, std::size_t axis) { return expr.op == ScalarOp::kIndex and expr.slot == axis; }

/// Does every store stand at the outer point's own index, in a phase of one point, once for each result?
bool stores_each_result_at_its_point(const Kernel& kernel) {
  std::vector<std::uint32_t> stored;
  for (const Phase& phase : kernel.phases) {
    if (phase.scatter or (not phase.stores.empty() and not phase.inner.empty())) return false;
    for (const Store& store : phase.stores) {
      if (store.guard.valid() or store.index.size() != kernel.outer_count) return false;
      for (std::size_t i = 0; i < store.index.size(); ++i)
        if (not is_index_of(kernel.exprs[store.index[i]], i)) return false;
      stored.push_back(store.buffer);
    }
  }
  std::ranges::sort(stored);
  return std::ranges::adjacent_find(stored) == stored.end();
}

/// The extents of these axes that are not 1.
Shape extents_of(const Kernel& kernel, std::size_t begin, std::size_t end) {
  Shape extents;
  for (std::size_t axis = begin; axis < end; ++axis)
    if (not kernel.axes[axis].extent.is_constant(1)) extents.push_back(kernel.axes[axis].extent);
  return extents;
}

Shape inner_extents(const Kernel& kernel, const Phase& phase) {
  Shape extents;
  for (const std::uint32_t axis : phase.inner)
    if (not kernel.axes[axis].extent.is_constant(1)) extents.push_back(kernel.axes[axis].extent);
  return extents;
}

NodeKernel::Kind kind_of(const Kernel& kernel) {
  if (not stores_each_result_at_its_point(kernel)) return NodeKernel::Kind::kOther;
  const Phase* reducing = nullptr;
  for (const Phase& phase : kernel.phases) {
    if (phase.reductions.empty()) continue;
    if (reducing != nullptr and inner_extents(kernel, *reducing) != inner_extents(kernel, phase)) return NodeKernel::Kind::kOther;
    reducing = &phase;
  }
  return reducing != nullptr ? NodeKernel::Kind::kReduction : NodeKernel::Kind::kMap;
}

/// Are its operands of one shape, copied to one result side by side?
bool joins_parts(const Graph& graph, const Node& node) {
  return *node.op == op::concat and std::ranges::all_of(node.operands, [&](ValueId operand) { return graph.type(operand).shape == graph.type(node.operands[0]).shape; });
}

constexpr std::uint32_t kMostAxes = 64;  // as many as a bit set has

/// Thrown and caught in this file: the members cannot be one kernel.
struct CannotFuse {
  std::string why;
};

/// Where the elements of `from` are read when its reshape to `to` is read at `at`. Throws CannotFuse where that would take a division.
Indices through_reshape(const Shape& from, const Shape& to, const Indices& at, ExprPool& pool) {
  Indices result(from.size(), expr::constant_int(pool, DType::kI64, 0));
  std::size_t t = 0;
  for (std::size_t f = 0; f < from.size(); ++f) {
    Dim product = 1;
    for (; product != from[f] and t < to.size(); ++t) {  // this axis of `from` is these axes of `to`
      if (to[t].is_constant(1)) continue;
      result[f] = result[f] * expr::size(pool, to[t]) + at[t];
      product *= to[t];
    }
    if (product != from[f]) throw CannotFuse{"a reshape between them merges axes"};
  }
  return result;
}

class Fuser {
 public:
  Fuser(NodeKernels& kernels, std::span<const NodeId> members) : kernels_(kernels), graph_(kernels.graph()), members_(members), pool_(made_.kernel.exprs) { made_.axes.resize(members.size()); }

  FusedKernel run(std::span<const ValueId> stored) {
    set_domain(stored);
    for (const NodeId member : members_)
      if (kernels_.of(member).kind == NodeKernel::Kind::kReduction) (void)temps_of(member);
    for (const ValueId value : stored) store(value);
    add_phases();
    const Node& last = graph_.node(members_.back());
    made_.kernel.name = members_.size() == 1 ? std::string(last.op->name) : fmt::format("{}_and_{}_more", last.op->name, members_.size() - 1);
    number_temps();
    return std::move(made_);
  }

 private:
  bool is_member(NodeId node) const { return node.valid() and std::ranges::binary_search(members_, node); }

  /// Is the value a member's result that is made of parts?
  bool has_parts(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    return is_member(producer) and kernels_.of(producer).kind == NodeKernel::Kind::kParts;
  }

  /// As they are made, before they are reshaped to what is joined: if all are of one shape there, too.
  Shape shape_of_parts(const Node& node) const {
    const auto made = [this](ValueId part) -> const Shape& { return graph_.type(through_reshapes(graph_, part)).shape; };
    const bool one_shape = std::ranges::all_of(node.operands, [&](ValueId part) { return made(part) == made(node.operands[0]); });
    return one_shape ? made(node.operands[0]) : graph_.type(node.operands[0]).shape;
  }

  // --- The index space

  void set_domain(std::span<const ValueId> stored) {
    for (const NodeId member : members_)
      if (kernels_.of(member).kind == NodeKernel::Kind::kReduction) return set_reduction_domain(kernels_.of(member).kernel);
    shape_ = has_parts(stored.back()) ? shape_of_parts(graph_.producer(stored.back())) : graph_.type(stored.back()).shape;
    add_axes(shape_, outer_, "i");
    made_.kernel.outer_count = static_cast<std::uint32_t>(outer_.size());
  }

  void set_reduction_domain(const Kernel& kernel) {
    add_axes(extents_of(kernel, 0, kernel.outer_count), outer_, "i");
    made_.kernel.outer_count = static_cast<std::uint32_t>(outer_.size());
    for (const Phase& phase : kernel.phases) {
      if (phase.reductions.empty()) continue;
      add_axes(inner_extents(kernel, phase), inner_, "k");
      return;
    }
  }

  void add_axes(const Shape& extents, Indices& indices, std::string_view name) {
    for (const Dim& extent : extents) {
      const auto axis = static_cast<std::uint32_t>(made_.kernel.axes.size());
      if (axis == kMostAxes) throw CannotFuse{"they run over too many axes"};
      made_.kernel.axes.push_back({fmt::format("{}{}", name, indices.size()), extent});
      indices.emplace_back(pool_, pool_.add({.op = ScalarOp::kIndex, .dtype = DType::kI64, .slot = axis}));
    }
  }

  Scalar zero() { return expr::constant_int(pool_, DType::kI64, 0); }

  /// `at` for a shape whose extents other than 1 are those of `space`, in order; empty if they are not.
  std::optional<Indices> own_index(const Shape& shape, const Indices& space) {
    Indices at;
    std::size_t next = 0;
    for (const Dim& extent : shape) {
      if (extent.is_constant(1)) {
        at.push_back(zero());
      } else {
        if (next == space.size() or extent != made_.kernel.axes[pool_[space[next].id()].slot].extent) return std::nullopt;
        at.push_back(space[next++]);
      }
    }
    return next == space.size() ? std::optional(at) : std::nullopt;
  }

  /// Notes an index by which a tensor of this shape is walked once, element by element, as outer and inner axes move.
  void note_walk(const Shape& shape, const Indices& at) {
    if (inner_.empty()) return;
    std::vector<bool> seen(made_.kernel.axes.size());
    for (std::size_t i = 0; i < at.size(); ++i) {
      const Expr& e = pool_[at[i].id()];
      if (shape[i].is_constant(1)) continue;
      if (e.op != ScalarOp::kIndex or seen[e.slot] or made_.kernel.axes[e.slot].extent != shape[i]) return;
      seen[e.slot] = true;
    }
    if (std::ranges::count(seen, true) != static_cast<std::ptrdiff_t>(seen.size())) return;
    if (std::ranges::none_of(walks_, [&](const auto& walk) { return walk.first == shape; })) walks_.emplace_back(shape, at);
  }

  // --- Values

  /// The value's element at `at`; where `guard` is false it may be anything, but nothing is read.
  Scalar evaluate(ValueId value, const Indices& at, Scalar guard) {
    if (const Scalar number = literal(graph_, value, pool_); number.valid()) return number;
    std::vector<std::uint32_t> key = {value.index, guard.valid() ? guard.id().index : UINT32_MAX};
    for (const Scalar& index : at) key.push_back(index.id().index);
    const auto [found, is_new] = values_.try_emplace(std::move(key));
    if (is_new) {
      const Scalar made = as_stored(formula(value, at, guard), graph_.type(value).dtype);
      found->second = made;
    }
    return found->second;
  }

  /// An integer of a type that is storage only has its low bits for all who read it. (Floats of such types are rounded where they are stored.)
  static Scalar as_stored(Scalar value, DType dtype) {
    return is_storage_only(dtype) and is_integer(dtype) and value.pool()[value.id()].op != ScalarOp::kLoad ? expr::round_to(value, {.dtype = dtype}) : value;
  }

  Scalar formula(ValueId value, const Indices& at, Scalar guard) {
    const Type& type = graph_.type(value);
    note_walk(type.shape, at);
    const NodeId producer = graph_.value(value).producer;
    if (is_member(producer)) return result_of(producer, value, at, guard);
    if (comes_from_member(value)) {
      const ValueId source = graph_.node(producer).operands[0];
      return evaluate(source, through_reshape(graph_.type(source).shape, type.shape, at, pool_), guard);
    }
    Expr load{.op = ScalarOp::kLoad, .dtype = arithmetic_type(type.dtype), .slot = buffer_of(value, Access::kRead)};
    for (const Scalar& index : at) load.index.push_back(index.id());
    if (guard.valid()) load.guard = guard.id();
    return {pool_, pool_.add(std::move(load))};
  }

  /// Is the value a member's result, perhaps reshaped?
  bool comes_from_member(ValueId value) const { return is_member(graph_.value(through_reshapes(graph_, value)).producer); }

  Scalar result_of(NodeId member, ValueId value, const Indices& at, Scalar guard) {
    const Node& node = graph_.node(member);
    std::uint64_t& axes = made_.axes[static_cast<std::size_t>(std::ranges::lower_bound(members_, member) - members_.begin())];
    for (const Scalar& index : at) axes |= needs_of(index.id()).axes;
    if (node.op->scalar != nullptr) {
      std::vector<Scalar> operands;
      for (const ValueId operand : node.operands)
        operands.push_back(evaluate(operand, broadcast_index(graph_.type(operand).shape, graph_.type(value).shape, at, pool_), guard));
      const DType dtype = graph_.type(value).dtype;
      return expr::cast(node.op->scalar({operands, node.attrs, dtype, pool_}), dtype);
    }
    const NodeKernel& made = kernels_.of(member);
    if (made.kind == NodeKernel::Kind::kParts) throw CannotFuse{fmt::format("the result of {} is read where it is not made", node.op->name)};
    Inlining inlining{node, made.kernel, at, {}, {}};
    inlining.axes.resize(made.kernel.axes.size());
    if (made.kind == NodeKernel::Kind::kReduction) {
      if (not is_outer_point(made.kernel, at)) throw CannotFuse{fmt::format("the result of {} is read elsewhere than where it is made", node.op->name)};
      inlining.temps = temps_of(member);
    }
    return inlined(inlining, stored_value(node, made.kernel, value), guard);
  }

  static ExprId stored_value(const Node& node, const Kernel& kernel, ValueId value) {
    const auto result = static_cast<std::size_t>(std::ranges::find(node.results, value) - node.results.begin());
    for (const Phase& phase : kernel.phases)
      for (const Store& store : phase.stores)
        if (store.buffer == node.operands.size() + result) return store.value;
    internal_error(__FILE__, __LINE__, "a result that is not stored");
  }

  /// Is `at`, an index of the reduction's result, the group's outer point?
  bool is_outer_point(const Kernel& kernel, const Indices& at) const {
    std::size_t next = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (kernel.axes[i].extent.is_constant(1)) continue;
      if (next == outer_.size() or at[i].id() != outer_[next].id()) return false;
      ++next;
    }
    return next == outer_.size();
  }

  /// The temporaries of a reduction, which it gets at its first use.
  const std::vector<Scalar>& temps_of(NodeId member) {
    const auto [found, is_new] = temps_.try_emplace(member);
    if (not is_new) return found->second;
    const Node& node = graph_.node(member);
    const Kernel& kernel = kernels_.of(member).kernel;
    const std::optional<Indices> at = own_index(graph_.type(node.results[0]).shape, outer_);
    if (not at) throw CannotFuse{"their reductions run over other points"};
    Inlining inlining{node, kernel, *at, {}, {}};
    inlining.axes.resize(kernel.axes.size());
    for (const Phase& phase : kernel.phases) {
      if (phase.reductions.empty()) continue;
      set_inner(phase, inlining);
      for (const Reduction& reduction : phase.reductions) {
        const Scalar value = inlined(inlining, reduction.value, {});
        const auto slot = static_cast<std::uint32_t>(reductions_.size());
        reductions_.push_back({{reduction.kind, value.id(), slot, reduction.dtype}, level_of(value.id())});
        inlining.temps.emplace_back(pool_, pool_.add({.op = ScalarOp::kTemp, .dtype = reduction.dtype, .slot = slot}));
      }
    }
    return temps_[member] = std::move(inlining.temps);
  }

  struct Inlining {
    const Node& node;
    const Kernel& kernel;
    Indices outer;              ///< the index of the result: of the kernel's outer axes
    Indices axes;               ///< of its inner axes, by axis
    std::vector<Scalar> temps;  ///< by number of its reduction
    std::map<ExprId, Scalar> known = {};
  };

  void set_inner(const Phase& phase, Inlining& inlining) {
    std::size_t next = 0;
    inlining.known.clear();
    for (const std::uint32_t axis : phase.inner) {
      const Dim& extent = inlining.kernel.axes[axis].extent;
      if (extent.is_constant(1)) {
        inlining.axes[axis] = zero();
        continue;
      }
      if (next == inner_.size() or made_.kernel.axes[outer_.size() + next].extent != extent) throw CannotFuse{"their reductions run over other inner axes"};
      inlining.axes[axis] = inner_[next++];
    }
    if (next != inner_.size()) throw CannotFuse{"their reductions run over other inner axes"};
  }

  /// An expression of a member's kernel, in this one. Its depth is that of one op's formula.
  Scalar inlined(Inlining& inlining, ExprId id, Scalar guard) {
    if (const auto found = inlining.known.find(id); found != inlining.known.end()) return found->second;
    const Expr& e = inlining.kernel.exprs[id];
    Scalar made;
    if (e.op == ScalarOp::kIndex) {
      made = e.slot < inlining.kernel.outer_count ? inlining.outer[e.slot] : inlining.axes[e.slot];
    } else if (e.op == ScalarOp::kTemp) {
      made = inlining.temps[e.slot];
    } else if (e.op == ScalarOp::kLoad) {
      made = inlined_load(inlining, e, guard);
    } else {
      Expr copy = e;
      for (int i = 0; i < info(e.op).operands; ++i) copy.operands[i] = inlined(inlining, e.operands[i], guard).id();
      made = {pool_, pool_.add(std::move(copy))};
    }
    return inlining.known[id] = made;
  }

  Scalar inlined_load(Inlining& inlining, const Expr& load, Scalar guard) {
    Indices at;
    for (const ExprId index : load.index) at.push_back(inlined(inlining, index, guard));
    const Scalar own = load.guard.valid() ? inlined(inlining, load.guard, guard) : Scalar();
    const ValueId operand = inlining.node.operands[load.slot];
    const Scalar value = evaluate(operand, at, both(guard, own));
    return own.valid() and pool_[value.id()].op != ScalarOp::kLoad ? expr::select(own, value, expr::like(value, 0)) : value;
  }

  // --- Buffers and stores

  std::uint32_t buffer_of(ValueId value, Access access) {
    const auto found = std::ranges::find(made_.buffers, value);
    if (found != made_.buffers.end()) return static_cast<std::uint32_t>(found - made_.buffers.begin());
    const Type& type = graph_.type(value);
    made_.kernel.buffers.push_back({fmt::format("{}{}", access == Access::kRead ? "x" : "y", made_.buffers.size()), type.dtype, type.shape, access});
    made_.buffers.push_back(value);
    return static_cast<std::uint32_t>(made_.buffers.size() - 1);
  }

  /// Each part at the point, as far into the result as there are parts before it.
  void store_parts(ValueId value) {
    const Node& node = graph_.producer(value);
    const Type& part = graph_.type(node.operands[0]);
    if (not reductions_.empty() or shape_of_parts(node) != shape_) throw CannotFuse{"parts of another shape than what they run over"};
    const Indices first = through_reshape(part.shape, shape_, outer_, pool_);
    const auto axis = static_cast<std::size_t>(node.attrs[kAxis]);
    const std::uint32_t buffer = buffer_of(value, Access::kWrite);
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      Indices at = first;
      at[axis] = first[axis] + expr::size(pool_, part.shape[axis] * Dim(static_cast<std::int64_t>(i)));
      const ValueId made = part.shape == shape_ ? node.operands[i] : through_reshapes(graph_, node.operands[i]);
      Store store{buffer, {}, expr::to_store(evaluate(made, outer_, {}), part.dtype).id(), ExprId{}};
      for (const Scalar& index : at) store.index.push_back(index.id());
      row_stores_.push_back(std::move(store));
    }
  }

  /// Where the element lies that is made at the outer point: of what is transposed last, elsewhere than its source's; else at its own index.
  std::optional<Indices> row_index(ValueId value) {
    const NodeId producer = graph_.value(value).producer;
    if (is_member(producer) and *graph_.node(producer).op == op::transpose) {
      const Node& node = graph_.node(producer);
      if (const std::optional<Indices> from = own_index(graph_.type(node.operands[0]).shape, outer_)) {
        Indices at;
        for (const std::int64_t axis : node.attrs[kPerm]) at.push_back((*from)[static_cast<std::size_t>(axis)]);
        return at;
      }
    }
    return own_index(graph_.type(value).shape, outer_);
  }

  void store(ValueId value) {
    if (has_parts(value)) return store_parts(value);
    const Type& type = graph_.type(value);
    std::optional<Indices> at = reductions_.empty() ? (type.shape == shape_ ? std::optional(outer_) : std::nullopt) : row_index(value);
    const bool is_row = at.has_value();
    if (not is_row) {
      const auto walk = std::ranges::find_if(walks_, [&](const auto& known) { return known.first == type.shape; });
      if (walk == walks_.end()) throw CannotFuse{"a result that is wanted has another shape than what they run over"};
      at = walk->second;
    }
    const Scalar stored = expr::to_store(evaluate(value, *at, {}), type.dtype);
    Store store{buffer_of(value, Access::kWrite), {}, stored.id(), ExprId{}};
    for (const Scalar& index : *at) store.index.push_back(index.id());
    if (is_row) row_stores_.push_back(std::move(store));
    else inner_stores_.emplace_back(std::move(store), level_of(stored.id()));
  }

  // --- Phases

  /// What must be there before an expression can be evaluated.
  struct Needs {
    std::size_t level = 0;   ///< phases with reductions that must have run
    std::uint64_t axes = 0;  ///< whose index it depends on, as a bit set
  };

  const Needs& needs_of(ExprId id) {
    for (std::size_t i = needs_.size(); i < pool_.size(); ++i) {
      const Expr& e = pool_[ExprId(i)];
      Needs needs{e.op == ScalarOp::kTemp ? reductions_[e.slot].level + 1 : 0, e.op == ScalarOp::kIndex ? std::uint64_t{1} << e.slot : 0};
      const auto add = [&](ExprId other) {
        needs.level = std::max(needs.level, needs_[other.index].level);
        needs.axes |= needs_[other.index].axes;
      };
      for (int k = 0; k < info(e.op).operands; ++k) add(e.operands[k]);
      for (const ExprId index : e.index) add(index);
      if (e.guard.valid()) add(e.guard);
      needs_.push_back(needs);
    }
    return needs_[id.index];
  }
  std::size_t level_of(ExprId id) { return needs_of(id).level; }

  void add_phases() {
    std::size_t count = 0;
    for (const LeveledReduction& reduction : reductions_) count = std::max(count, reduction.level + 1);
    for (const auto& [store, level] : inner_stores_) count = std::max(count, level + 1);
    std::vector<std::uint32_t> inner;
    for (const Scalar& index : inner_) inner.push_back(pool_[index.id()].slot);
    for (std::size_t level = 0; level < count; ++level) {
      Phase& phase = made_.kernel.phases.emplace_back();
      phase.inner = inner;
      for (const LeveledReduction& reduction : reductions_)
        if (reduction.level == level) phase.reductions.push_back(reduction.reduction);
      for (auto& [store, at_level] : inner_stores_)
        if (at_level == level) phase.stores.push_back(std::move(store));
    }
    if (not row_stores_.empty()) made_.kernel.phases.emplace_back().stores = std::move(row_stores_);
  }

  /// Reductions are numbered in the order of phases.
  void number_temps() {
    std::vector<std::uint32_t> numbers(reductions_.size());
    std::uint32_t next = 0;
    for (Phase& phase : made_.kernel.phases)
      for (Reduction& reduction : phase.reductions) reduction.temp = numbers[reduction.temp] = next++;
    made_.kernel = rebuilt(made_.kernel, [&](const Expr&, Expr expr) {
      if (expr.op == ScalarOp::kTemp) expr.slot = numbers[expr.slot];
      return expr;
    });
  }

  struct LeveledReduction {
    Reduction reduction;
    std::size_t level;  ///< number of the phase
  };

  NodeKernels& kernels_;
  const Graph& graph_;
  std::span<const NodeId> members_;
  FusedKernel made_;
  ExprPool& pool_;
  Shape shape_;  ///< without reductions: of all results that are stored
  Indices outer_, inner_;
  std::vector<std::pair<Shape, Indices>> walks_;
  std::map<std::vector<std::uint32_t>, Scalar> values_;
  std::map<NodeId, std::vector<Scalar>> temps_;
  std::vector<LeveledReduction> reductions_;
  std::vector<Store> row_stores_;
  std::vector<std::pair<Store, std::size_t>> inner_stores_;
  std::vector<Needs> needs_;  // by expression
};

}  // namespace

const NodeKernel& NodeKernels::of(NodeId id) {
  std::optional<NodeKernel>& known = kernels_[id.index];
  if (known) return *known;
  known.emplace();
  const OpDef& op = *graph_.node(id).op;
  if (op.scalar != nullptr) {
    known->kind = NodeKernel::Kind::kMap;
  } else if (op.compute != nullptr) {
    known->kernel = kernel_of(graph_, id);
    known->kind = kind_of(known->kernel);
    if (known->kind == NodeKernel::Kind::kOther and joins_parts(graph_, graph_.node(id))) known->kind = NodeKernel::Kind::kParts;
  }
  return *known;
}

ValueId through_reshapes(const Graph& graph, ValueId value) {
  while (graph.is_op(value, op::reshape)) value = graph.producer(value).operands[0];
  return value;
}

FusedKernel fused_kernel(NodeKernels& kernels, std::span<const NodeId> members, std::span<const ValueId> stored) {
  try {
    return Fuser(kernels, members).run(stored);
  } catch (const CannotFuse& reason) { return {{}, {}, {}, reason.why}; }
}

}  // namespace hone
