#include "ir/known.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "ir/kernel/scalar_math.h"
#include "ir/op.h"

namespace hone {

namespace {

constexpr std::int64_t kMostElements = 64;

/// Are sizes, and what is computed of them, numbers of this type? Of shorter ones they may be cut off; a number below 0 is a large one without a sign.
bool holds_sizes(DType dtype) { return is_integer(dtype) and info(dtype).is_signed and info(dtype).bits >= 32; }

bool is_negative(const Dim& dim) { return dim.is_constant() and dim.value() < 0; }

/// Nothing for what is not computed when compiling: divisions by 0 among others.
std::optional<Dim> of_numbers(ScalarOp op, DType dtype, std::int64_t a, std::int64_t b) {
  switch (op) {
    case ScalarOp::kDiv:
    case ScalarOp::kFloorDiv:
    case ScalarOp::kMod:
      if (b == 0) return std::nullopt;
      [[fallthrough]];
    case ScalarOp::kAdd:
    case ScalarOp::kSub:
    case ScalarOp::kMul:
    case ScalarOp::kMax:
    case ScalarOp::kMin:
    case ScalarOp::kEq:
    case ScalarOp::kNe:
    case ScalarOp::kLt:
    case ScalarOp::kLe:
    case ScalarOp::kGt:
    case ScalarOp::kGe:
    case ScalarOp::kAnd:
    case ScalarOp::kOr: return Dim(scalar_math::integer_binary(op, dtype, a, b));
    default: return std::nullopt;
  }
}

/// `op` of two integers of that type, over sizes. nullopt: not known.
std::optional<Dim> computed(ScalarOp op, DType dtype, const Dim& a, const Dim& b) {
  if (a.is_constant() and b.is_constant()) return of_numbers(op, dtype, a.value(), b.value());
  if (not holds_sizes(dtype)) return std::nullopt;
  const auto compare = [&](auto test) {
    const Dim difference = a - b;
    return difference.is_constant() ? std::optional(Dim(test(difference.value()))) : std::nullopt;
  };
  switch (op) {
    case ScalarOp::kAdd: return a + b;
    case ScalarOp::kSub: return a - b;
    case ScalarOp::kMul: return a * b;
    case ScalarOp::kDiv:  // truncates; sizes are not negative, numbers may be
      if (b.is_constant(0) or b.may_be_negative()) return std::nullopt;
      return a.may_be_negative() ? max(floordiv(a, b), 0) - max(floordiv(0 - a, b), 0) : floordiv(a, b);
    case ScalarOp::kFloorDiv: return b.is_constant(0) ? std::nullopt : std::optional(floordiv(a, b));
    case ScalarOp::kMod: return b.is_constant(0) ? std::nullopt : std::optional(mod(a, b));
    case ScalarOp::kMax: return max(a, b);
    case ScalarOp::kMin: return min(a, b);
    case ScalarOp::kEq:
      if ((is_negative(a) and not b.may_be_negative()) or (is_negative(b) and not a.may_be_negative())) return Dim(0);  // a size is never -1
      return compare([](std::int64_t d) { return d == 0; });
    case ScalarOp::kNe: return compare([](std::int64_t d) { return d != 0; });
    case ScalarOp::kLt:
      if (not a.is_constant() and not a.may_be_negative() and b.is_constant() and b.value() <= 0) return Dim(0);
      return compare([](std::int64_t d) { return d < 0; });
    case ScalarOp::kLe: return compare([](std::int64_t d) { return d <= 0; });
    case ScalarOp::kGt: return compare([](std::int64_t d) { return d > 0; });
    case ScalarOp::kGe: return compare([](std::int64_t d) { return d >= 0; });
    default: return std::nullopt;
  }
}

/// Evaluates expressions of one kernel at one outer index, over sizes. nullopt: not known.
class DimEvaluator {
 public:
  DimEvaluator(const Graph& graph, const Node& node, const Kernel& kernel) : graph_(graph), node_(node), kernel_(kernel) {}

  std::vector<std::int64_t> index;         // of all axes
  std::vector<std::optional<Dim>> temps;  // results of the reductions so far

  std::optional<Dim> operator()(ExprId id) const {
    const Expr& expr = kernel_.exprs[id];
    switch (expr.op) {
      case ScalarOp::kConstInt: return Dim(expr.int_value);
      case ScalarOp::kIndex: return Dim(index[expr.slot]);
      case ScalarOp::kSize: return expr.size;
      case ScalarOp::kLoad: return load(expr);
      case ScalarOp::kTemp: return expr.slot < temps.size() ? temps[expr.slot] : std::nullopt;
      case ScalarOp::kCast: {
        const auto a = is_float(dtype_of(expr.operands[0])) or is_float(expr.dtype) ? std::nullopt : (*this)(expr.operands[0]);
        if (a and a->is_constant()) return Dim(scalar_math::wrap(expr.dtype, a->value()));
        return holds_sizes(expr.dtype) ? a : std::nullopt;
      }
      case ScalarOp::kNeg:
      case ScalarOp::kNot: {
        const auto a = (*this)(expr.operands[0]);
        if (a and a->is_constant()) return Dim(scalar_math::integer_unary(expr.op, expr.dtype, a->value()));
        return a and expr.op == ScalarOp::kNeg and holds_sizes(expr.dtype) ? std::optional(Dim(0) - *a) : std::nullopt;
      }
      case ScalarOp::kSelect: {
        const auto condition = (*this)(expr.operands[0]);
        if (not condition or not condition->is_constant()) return std::nullopt;
        return (*this)(expr.operands[condition->value() != 0 ? 1 : 2]);
      }
      default: return binary(expr);
    }
  }

 private:
  std::optional<Dim> binary(const Expr& expr) const {
    const DType dtype = info(expr.op).operands == 2 ? dtype_of(expr.operands[0]) : DType::kF32;
    if (is_float(dtype)) return std::nullopt;
    const auto a = (*this)(expr.operands[0]), b = (*this)(expr.operands[1]);
    if (not a or not b) return std::nullopt;
    return computed(expr.op, dtype, *a, *b);
  }

  DType dtype_of(ExprId id) const { return kernel_.exprs[id].dtype; }

  std::optional<Dim> load(const Expr& expr) const {
    if (expr.guard.valid()) {
      const auto guard = (*this)(expr.guard);
      if (not guard or not guard->is_constant()) return std::nullopt;
      if (guard->value() == 0) return Dim(0);
    }
    const Value& value = graph_.value(node_.operands[expr.slot]);
    if (not value.known) return std::nullopt;
    std::int64_t at = 0;
    for (std::size_t i = 0; i < expr.index.size(); ++i) {
      const auto position = (*this)(expr.index[i]);
      if (not position or not position->is_constant()) return std::nullopt;
      at = at * value.type.shape[i].value() + position->value();
    }
    if (at < 0 or at >= static_cast<std::int64_t>(value.known->size())) return std::nullopt;
    return (*value.known)[static_cast<std::size_t>(at)];
  }

  const Graph& graph_;
  const Node& node_;
  const Kernel& kernel_;
};

}  // namespace

bool can_be_known(const Type& type) {
  if (is_float(type.dtype) or not is_constant(type.shape) or type.shape.size() > 4) return false;
  std::int64_t count = 1;
  for (const Dim& dim : type.shape)
    if (dim.value() < 0 or (count *= std::min<std::int64_t>(dim.value(), kMostElements + 1)) > kMostElements) return false;
  return true;
}

std::optional<std::vector<Dim>> known_contents(const Tensor& tensor) {
  if (is_float(tensor.dtype()) or tensor.element_count() > kMostElements) return std::nullopt;
  std::vector<Dim> contents;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) contents.emplace_back(tensor.int_at(i));
  return contents;
}

namespace {

/// Sets the axes' indices to those of point `i`, row-major.
void set_point(const Kernel& kernel, std::span<const std::uint32_t> axes, std::int64_t i, std::vector<std::int64_t>& index) {
  for (std::size_t k = axes.size(); k-- > 0; i /= kernel.axes[axes[k]].extent.value()) index[axes[k]] = i % kernel.axes[axes[k]].extent.value();
}

/// How many points the axes have; nothing if that is a symbol, or more than known operands hold.
std::optional<std::int64_t> points_of(const Kernel& kernel, std::span<const std::uint32_t> axes) {
  std::int64_t count = 1;
  for (const std::uint32_t axis : axes) {
    const Dim& extent = kernel.axes[axis].extent;
    if (not extent.is_constant() or (count *= std::min(extent.value(), kMostElements + 1)) > kMostElements) return std::nullopt;
  }
  return count;
}

/// As the sum, or what else is reduced to, of two.
std::optional<Dim> combined(ReduceKind kind, DType dtype, const Dim& a, const Dim& b) {
  switch (kind) {
    case ReduceKind::kSum: return computed(ScalarOp::kAdd, dtype, a, b);
    case ReduceKind::kProd: return computed(ScalarOp::kMul, dtype, a, b);
    case ReduceKind::kMax: return computed(ScalarOp::kMax, dtype, a, b);
    case ReduceKind::kMin: return computed(ScalarOp::kMin, dtype, a, b);
    case ReduceKind::kArgMax:
    case ReduceKind::kArgMin: break;
  }
  return std::nullopt;
}

/// What the phase's reductions give at the outer point where `evaluate` is. False: not known.
bool reduce_phase(const Kernel& kernel, const Phase& phase, DimEvaluator& evaluate) {
  const auto points = points_of(kernel, phase.inner);
  if (not points or not phase.stores.empty()) return false;
  for (const Reduction& reduction : phase.reductions) {
    if (reduction.kind == ReduceKind::kArgMax or reduction.kind == ReduceKind::kArgMin) return false;  // positions of sizes are not known
    std::optional<Dim> total;
    if (reduction.kind == ReduceKind::kSum) total = 0;
    if (reduction.kind == ReduceKind::kProd) total = 1;
    for (std::int64_t i = 0; i < *points; ++i) {
      set_point(kernel, phase.inner, i, evaluate.index);
      const auto value = evaluate(reduction.value);
      if (not value) return false;
      total = total ? combined(reduction.kind, kernel.exprs[reduction.value].dtype, *total, *value) : value;
      if (not total) return false;
    }
    if (not total) return false;  // the largest of nothing
    evaluate.temps.resize(std::max<std::size_t>(evaluate.temps.size(), reduction.temp + 1));
    evaluate.temps[reduction.temp] = *total;
  }
  return true;
}

/// Throws kTooLarge where sizes overflow.
std::optional<std::vector<Dim>> contents_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op->scalar == nullptr and node.op->compute == nullptr) return std::nullopt;
  const Value& result = graph.value(node.results[0]);
  if (result.known) return result.known;
  if (node.results.size() != 1 or not can_be_known(result.type)) return std::nullopt;
  for (const ValueId operand : node.operands)
    if (operand.valid() and not graph.value(operand).known) return std::nullopt;
  const Kernel kernel = kernel_of(graph, id);
  if (kernel.phases.empty()) return std::nullopt;
  const Phase& last = kernel.phases.back();
  if (not last.inner.empty() or not last.reductions.empty() or last.stores.size() != 1) return std::nullopt;
  std::vector<std::uint32_t> outer(kernel.outer_count);
  std::iota(outer.begin(), outer.end(), 0U);
  DimEvaluator evaluate(graph, node, kernel);
  evaluate.index.resize(kernel.axes.size());
  const std::int64_t count = element_count(result.type.shape).value();
  std::vector<Dim> contents;
  for (std::int64_t i = 0; i < count; ++i) {
    set_point(kernel, outer, i, evaluate.index);
    for (std::size_t phase = 0; phase + 1 < kernel.phases.size(); ++phase)
      if (not reduce_phase(kernel, kernel.phases[phase], evaluate)) return std::nullopt;
    const auto value = evaluate(last.stores[0].value);
    if (not value) return std::nullopt;
    contents.push_back(*value);
  }
  return contents;
}

}  // namespace

std::optional<std::vector<Dim>> fold_known(const Graph& graph, NodeId id) {
  try {
    return contents_of(graph, id);
  } catch (const Error&) { return std::nullopt; }  // integers that are no sizes may wrap around: a logarithm of 0 made an integer, with something added
}

}  // namespace hone
