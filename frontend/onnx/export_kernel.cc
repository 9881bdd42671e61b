// Ops written as what they mean: the loop nest of the op's entry (ir/kernel/kernel.h), each expression of which becomes a tensor over the loop's points.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>

#include "frontend/onnx/export_expression.h"
#include "frontend/onnx/export_kernel.h"
#include "ir/kernel/compute.h"
#include "ir/kernel/scalar_math.h"

namespace hone::onnx {

namespace {

/// Storage types that runtimes know.
bool is_written(DType dtype) { return not is_storage_only(dtype) or dtype == DType::kF16 or dtype == DType::kBF16; }

bool is_written(const Expr& expr) {
  if (expr.op != ScalarOp::kRoundTo) return is_written(expr.dtype);
  const StorageRounding to = StorageRounding::unpacked(expr.slot);
  return is_written(to.dtype) and to.rounding == Rounding::kNearest and not to.saturate;
}

bool is_written(const ExprPool& pool) {
  for (std::size_t i = 0; i < pool.size(); ++i)
    if (not is_written(pool[ExprId(i)])) return false;
  return true;
}

bool has_written_types(const Graph& graph, const Node& node) {
  for (const auto* values : {&node.operands, &node.results})
    for (const ValueId value : *values)
      if (value.valid() and not is_written(graph.type(value).dtype)) return false;
  return true;
}

/// A value read from memory or made for it, in the type that kernels compute in.
std::string widened(Exporter& e, const std::string& name, DType dtype, const std::string& hint, const Node& node) {
  return is_storage_only(dtype) ? e.cast(name, arithmetic_type(dtype), hint, node) : name;
}

class KernelWriter {
 public:
  KernelWriter(Exporter& e, const Node& node)
      : e_(e), node_(node), kernel_(kernel_of(e.graph, e.graph.value(node.results[0]).producer)), hint_(e.name(node.results[0])), stored_(kernel_.buffers.size()) {}

  bool write() {
    constexpr std::size_t kMostAxes = 60;  // a bit each
    if (kernel_.axes.size() > kMostAxes or not is_written(kernel_.exprs) or not has_sizes()) return false;
    for (const Phase& phase : kernel_.phases) write_phase(phase);
    std::map<std::string, ValueId> finished;
    for (std::size_t i = 0; i < node_.results.size(); ++i) finish(i, finished);
    return true;
  }

 private:
  /// What a phase loops over.
  struct Space {
    std::vector<std::uint32_t> axes;
    std::size_t rank() const { return axes.size(); }
  };
  /// What was written into a buffer so far.
  struct Stored {
    std::string name;
    bool flat = false;  ///< a vector, with one element behind the buffer's: where stores go that are not done
  };

  bool has_sizes() {
    for (const Dim& dim : size_arguments(kernel_))
      for (const std::string& symbol : dim.symbols())
        if (e_.symbol(symbol, node_).empty()) return false;
    return true;
  }

  std::string of(std::string_view type, const std::vector<std::string>& inputs) { return e_.value(type, inputs, hint_, node_); }
  std::string sizes(const Shape& dims) { return e_.sizes(dims, hint_ + "_sizes", node_); }
  const Dim& extent(std::uint32_t axis) const { return kernel_.axes[axis].extent; }

  void write_phase(const Phase& phase) {
    space_ = {};
    if (not phase.scatter)
      for (std::uint32_t axis = 0; axis < kernel_.outer_count; ++axis) space_.axes.push_back(axis);
    space_.axes.insert(space_.axes.end(), phase.inner.begin(), phase.inner.end());
    ExpressionWriter writer(e_, kernel_.exprs, hint_, node_, [&](const Expr& expr, const std::vector<Spread>& operands) { return leaf(expr, operands); });
    writer_ = &writer;
    for (const Reduction& reduction : phase.reductions) reduce(phase, reduction);
    for (const Store& store : phase.stores) write_store(store);
  }

  Spread leaf(const Expr& expr, const std::vector<Spread>& operands) {
    if (expr.op == ScalarOp::kIndex) return index(expr.slot);
    if (expr.op == ScalarOp::kTemp) return temporary(expr.slot);
    if (const auto positions = axes_of(kernel_.buffers[expr.slot].shape, expr.index); positions and not expr.guard.valid()) return direct_load(expr.slot, *positions);
    return indexed_load(expr, operands);
  }

  /// The positions along an axis.
  Spread index(std::uint32_t axis) {
    const std::size_t at = position(axis), rank = space_.rank() - at;
    const Dim& count = extent(axis);
    constexpr std::int64_t kMostWrittenOut = 4096;
    const std::uint64_t varies = std::uint64_t{1} << at;
    if (count.is_constant() and count.value() <= kMostWrittenOut) {
      Ints positions(static_cast<std::size_t>(count.value())), shape(rank, 1);
      std::iota(positions.begin(), positions.end(), 0);
      shape[0] = count.value();
      return {e_.constant(Tensor::of<std::int64_t>(shape, std::span<const std::int64_t>(positions)), hint_ + "_positions"), rank, varies};
    }
    const std::string end = of("Squeeze", {sizes({count}), e_.ints({0}, hint_ + "_axis")});
    Ints shape(rank, 1);
    shape[0] = -1;
    const std::string range = of("Range", {writer_->integer(DType::kI64, 0), end, writer_->integer(DType::kI64, 1)});
    return {rank == 1 ? range : of("Reshape", {range, e_.ints(shape, hint_ + "_shape")}), rank, varies};
  }

  std::size_t position(std::uint32_t axis) const { return static_cast<std::size_t>(std::ranges::find(space_.axes, axis) - space_.axes.begin()); }

  /// A sum over earlier inner axes, at each outer point.
  Spread temporary(std::uint32_t slot) {
    Spread made = temporaries_.at(slot);
    const std::size_t inner = space_.rank() - kernel_.outer_count;
    if (inner == 0 or made.rank == 0) return made;
    Ints axes;
    for (std::size_t i = 0; i < inner; ++i) axes.push_back(static_cast<std::int64_t>(made.rank + i));
    return {of("Unsqueeze", {made.name, e_.ints(axes, hint_ + "_axes")}), made.rank + inner, made.varies};
  }

  /// By axis of a buffer, the place in the space of the axis that counts it, whole; space_.rank() for an axis of extent 1 read at 0. Nothing where an index is
  /// anything else.
  std::optional<std::vector<std::size_t>> axes_of(const Shape& shape, const std::vector<ExprId>& index) const {
    std::vector<std::size_t> positions;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < index.size(); ++i) {
      const Expr& expr = kernel_.exprs[index[i]];
      if (expr.op == ScalarOp::kConstInt and expr.int_value == 0 and shape[i].is_constant(1)) {
        positions.push_back(space_.rank());
        continue;
      }
      if (expr.op != ScalarOp::kIndex or extent(expr.slot) != shape[i]) return std::nullopt;
      positions.push_back(position(expr.slot));
      const std::uint64_t bit = std::uint64_t{1} << positions.back();
      if ((seen & bit) != 0) return std::nullopt;
      seen |= bit;
    }
    return positions;
  }

  std::string operand(std::uint32_t slot) { return widened(e_, e_.name(node_.operands[slot]), kernel_.buffers[slot].dtype, hint_, node_); }

  /// A buffer that is read as it lies, but for the order of its axes.
  Spread direct_load(std::uint32_t slot, const std::vector<std::size_t>& positions) {
    const Shape& shape = kernel_.buffers[slot].shape;
    Ints perm(positions.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::ranges::stable_sort(perm, {}, [&](std::int64_t axis) {  // axes of extent 1 first, where they are leading ones
      const std::size_t at = positions[static_cast<std::size_t>(axis)];
      return at == space_.rank() ? std::size_t{0} : at + 1;
    });
    std::string name = operand(slot);
    if (not std::ranges::is_sorted(perm)) {
      const std::string moved = e_.fresh(hint_);
      set(e_.node("Transpose", {name}, {moved}, node_), "perm", perm);
      name = moved;
    }
    std::size_t first = space_.rank();
    std::uint64_t varies = 0;
    for (const std::size_t at : positions) {
      first = std::min(first, at);
      if (at < space_.rank()) varies |= std::uint64_t{1} << at;
    }
    Shape target;
    for (std::size_t at = first; at < space_.rank(); ++at) target.push_back((varies >> at & 1) != 0 ? extent(space_.axes[at]) : Dim(1));
    Shape found;
    for (const std::int64_t axis : perm) found.push_back(shape[static_cast<std::size_t>(axis)]);
    if (found != target) name = of("Reshape", {name, sizes(target)});
    return {name, target.size(), varies};
  }

  /// Row-major number of an element of `shape`.
  Spread linear(const Shape& shape, const std::vector<Spread>& index) {
    Spread at{writer_->integer(DType::kI64, 0)};
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::string scaled = i == 0 or shape[i].is_constant(1) ? at.name : of("Mul", {at.name, sizes({shape[i]})});
      at.name = i == 0 ? index[i].name : of("Add", {scaled, index[i].name});
      at.rank = std::max({at.rank, index[i].rank, i == 0 ? std::size_t{0} : std::size_t{1}});
      at.varies |= index[i].varies;
    }
    return at;
  }

  Spread indexed_load(const Expr& expr, const std::vector<Spread>& operands) {
    Spread at = linear(kernel_.buffers[expr.slot].shape, operands);
    const std::string flat = of("Reshape", {operand(expr.slot), e_.ints({-1}, hint_ + "_shape")});
    if (not expr.guard.valid()) return {of("Gather", {flat, at.name}), at.rank, at.varies};
    const Spread& guard = operands.back();
    const std::string inside = of("Where", {guard.name, at.name, writer_->integer(DType::kI64, 0)}), value = of("Gather", {flat, inside});
    return {writer_->select(guard.name, value, writer_->integer(expr.dtype, 0), expr.dtype), std::max(at.rank, guard.rank), at.varies | guard.varies};
  }

  /// Repeated along the axes from `first` on along which it does not vary; all axes are there then.
  std::string whole(const Spread& value, std::size_t first) {
    bool is_whole = value.rank == space_.rank();
    Shape wanted;
    for (std::size_t at = 0; at < space_.rank(); ++at) {
      const bool varies = (value.varies >> at & 1) != 0;
      if (at >= first and not varies and not extent(space_.axes[at]).is_constant(1)) is_whole = false;
      wanted.push_back(at < first ? Dim(1) : extent(space_.axes[at]));
    }
    return is_whole ? value.name : of("Expand", {value.name, sizes(wanted)});
  }

  void reduce(const Phase& phase, const Reduction& reduction) {
    const Spread value = writer_->write(reduction.value);
    std::string name = whole(value, kernel_.outer_count);
    const std::uint64_t outer = (std::uint64_t{1} << kernel_.outer_count) - 1;
    if (temporaries_.size() <= reduction.temp) temporaries_.resize(reduction.temp + 1);
    temporaries_[reduction.temp] = {reduced(reduction, kernel_.exprs[reduction.value].dtype, name, phase.inner.size()), kernel_.outer_count, value.varies & outer};
  }

  std::string reduced(const Reduction& reduction, DType dtype, std::string name, std::size_t inner) {
    if (reduction.kind == ReduceKind::kArgMax or reduction.kind == ReduceKind::kArgMin) {
      Ints shape(kernel_.outer_count, 0);
      shape.push_back(-1);
      const std::string made = e_.fresh(hint_);
      NodeProto& proto = e_.node(reduction.kind == ReduceKind::kArgMax ? "ArgMax" : "ArgMin", {of("Reshape", {name, e_.ints(shape, hint_ + "_shape")})}, {made}, node_);
      set(proto, "axis", std::int64_t{-1});
      set(proto, "keepdims", std::int64_t{0});
      return made;
    }
    const std::string_view type = reduction.kind == ReduceKind::kSum   ? "ReduceSum"
                                  : reduction.kind == ReduceKind::kProd ? "ReduceProd"
                                  : reduction.kind == ReduceKind::kMax  ? "ReduceMax"
                                                                        : "ReduceMin";
    if (inner == 0) return name;
    const bool is_direct = is_float(dtype) or dtype == DType::kI32 or dtype == DType::kI64;
    if (not is_direct) name = writer_->cast(name, DType::kI64);
    Ints axes;
    for (std::size_t i = 0; i < inner; ++i) axes.push_back(static_cast<std::int64_t>(kernel_.outer_count + i));
    const std::string made = e_.fresh(hint_);
    set(e_.node(type, {name, e_.ints(axes, hint_ + "_axes")}, {made}, node_), "keepdims", std::int64_t{0});
    return is_direct ? made : writer_->cast(made, dtype);
  }

  void write_store(const Store& store) {
    const KernelBuffer& buffer = kernel_.buffers[store.buffer];
    const Spread value = writer_->write(store.value);
    const auto positions = axes_of(buffer.shape, store.index);
    const bool covers = positions and not store.guard.valid() and store.combine == Combine::kReplace and
                        std::ranges::all_of(std::views::iota(std::size_t{0}, space_.rank()), [&](std::size_t at) {
                          return std::ranges::find(*positions, at) != positions->end() or extent(space_.axes[at]).is_constant(1);
                        });
    if (covers) stored_[store.buffer] = {laid_out(buffer, whole(value, 0), *positions)};
    else scatter(store, buffer, value);
  }

  /// `name`, a tensor over all points, with its axes as the buffer has them.
  std::string laid_out(const KernelBuffer& buffer, std::string name, const std::vector<std::size_t>& positions) {
    Ints perm;  // axes that the buffer does not have first
    for (std::size_t at = 0; at < space_.rank(); ++at)
      if (std::ranges::find(positions, at) == positions.end()) perm.push_back(static_cast<std::int64_t>(at));
    for (const std::size_t at : positions)
      if (at < space_.rank()) perm.push_back(static_cast<std::int64_t>(at));
    if (not std::ranges::is_sorted(perm)) {
      const std::string moved = e_.fresh(hint_);
      set(e_.node("Transpose", {name}, {moved}, node_), "perm", perm);
      name = moved;
    }
    const bool same = positions.size() == space_.rank() and std::ranges::find(positions, space_.rank()) == positions.end();
    return same ? name : of("Reshape", {name, sizes(buffer.shape)});
  }

  void scatter(const Store& store, const KernelBuffer& buffer, const Spread& value) {
    constexpr std::string_view kReductions[] = {"none", "add", "mul", "max", "min"};
    std::vector<Spread> index;
    for (const ExprId id : store.index) index.push_back(writer_->write(id));
    const std::string end = sizes({element_count(buffer.shape)});
    Spread at = linear(buffer.shape, index);
    if (store.guard.valid()) {
      const Spread guard = writer_->write(store.guard);
      at = {of("Where", {guard.name, at.name, end}), std::max({at.rank, guard.rank, std::size_t{1}}), at.varies | guard.varies};
    }
    const auto flat = [&](const Spread& spread) { return of("Reshape", {whole(spread, 0), e_.ints({-1}, hint_ + "_shape")}); };
    const DType dtype = arithmetic_type(buffer.dtype);
    Stored& stored = stored_[store.buffer];
    const std::string zero = writer_->integer(dtype, 0);
    if (stored.name.empty()) {
      stored = {of("Expand", {zero, sizes({element_count(buffer.shape) + 1})}), true};
    } else if (not stored.flat) {
      const std::string joined = e_.fresh(hint_);
      set(e_.node("Concat", {of("Reshape", {stored.name, e_.ints({-1}, hint_ + "_shape")}), of("Reshape", {zero, e_.ints({1}, hint_ + "_shape")})}, {joined}, node_), "axis",
          std::int64_t{0});
      stored = {joined, true};
    }
    const std::string made = e_.fresh(hint_);
    NodeProto& proto = e_.node("ScatterElements", {stored.name, flat(at), flat(value)}, {made}, node_);
    set(proto, "axis", std::int64_t{0});
    set(proto, "reduction", std::string(kReductions[static_cast<std::size_t>(store.combine)]));
    stored.name = made;
  }

  /// `finished`: what results were made of has their names now.
  void finish(std::size_t result, std::map<std::string, ValueId>& finished) {
    const KernelBuffer& buffer = kernel_.buffers[node_.operands.size() + result];
    Stored stored = stored_[node_.operands.size() + result];
    if (stored.flat) {
      const std::string kept = of("Slice", {stored.name, e_.ints({0}, hint_ + "_start"), sizes({element_count(buffer.shape)})});
      stored.name = of("Reshape", {kept, sizes(buffer.shape)});
    }
    if (is_storage_only(buffer.dtype)) stored.name = e_.cast(stored.name, buffer.dtype, hint_, node_);
    const auto [same, is_new] = finished.try_emplace(stored.name, node_.results[result]);
    e_.finish(is_new ? stored.name : e_.name(same->second), node_.results[result], node_);
  }

  Exporter& e_;
  const Node& node_;
  const Kernel kernel_;
  const std::string hint_;
  Space space_;
  ExpressionWriter* writer_ = nullptr;
  std::vector<Spread> temporaries_;
  std::vector<Stored> stored_;
};

/// Elementwise: tensors broadcast in ONNX as they do here.
bool write_elementwise(Exporter& e, const Node& node) {
  ExprPool pool;
  std::vector<Scalar> operands;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const DType dtype = arithmetic_type(e.graph.type(node.operands[i]).dtype);
    operands.emplace_back(pool, pool.add({.op = ScalarOp::kLoad, .dtype = dtype, .slot = static_cast<std::uint32_t>(i)}));
  }
  const Type& type = e.graph.type(node.results[0]);
  const Scalar result = expr::to_store(expr::cast(node.op->scalar({operands, node.attrs, type.dtype, pool}), type.dtype), type.dtype);
  if (not is_written(pool)) return false;
  const std::string hint = e.name(node.results[0]);
  std::vector<bool> reached(type.shape.size());  // the extents that the operands have
  ExpressionWriter writer(e, pool, hint, node, [&](const Expr& load, const std::vector<Spread>&) {
    const Type& operand = e.graph.type(node.operands[load.slot]);
    const std::size_t extra = type.shape.size() - operand.shape.size();
    for (std::size_t i = 0; i < operand.shape.size(); ++i)
      if (operand.shape[i] == type.shape[i + extra]) reached[i + extra] = true;
    return Spread{widened(e, e.name(node.operands[load.slot]), operand.dtype, hint, node), operand.shape.size()};
  });
  std::string made = writer.write(result.id()).name;
  if (is_storage_only(type.dtype)) made = e.cast(made, type.dtype, hint, node);
  if (not std::ranges::all_of(reached, std::identity{})) {  // a formula need not read all of its operands
    const std::string sizes = e.sizes(type.shape, hint + "_shape", node);
    if (sizes.empty()) return false;
    made = e.value("Expand", {made, sizes}, hint, node);
  }
  e.finish(made, node.results[0], node);
  return true;
}

}  // namespace

bool write_formula(Exporter& e, const Node& node) {
  if (not has_written_types(e.graph, node)) return false;
  if (node.op->scalar != nullptr) return write_elementwise(e, node);
  return node.op->compute != nullptr and KernelWriter(e, node).write();
}

}  // namespace hone::onnx
