#include "ir/kernel/compute.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/kernel/scalar_math.h"
#include "ir/op.h"

namespace hone {

namespace {

std::vector<ExprId> ids_of(const Indices& index) {
  std::vector<ExprId> ids;
  for (const Scalar& scalar : index) ids.push_back(scalar.id());
  return ids;
}

constexpr std::string_view kOuterNames[] = {"n", "m", "i", "j", "p", "q"};
constexpr std::string_view kInnerNames[] = {"k", "l", "r", "s", "t", "u"};

}  // namespace

Scalar both(Scalar a, Scalar b) { return not a.valid() ? b : not b.valid() ? a : expr::logical_and(a, b); }

Indices broadcast_index(const Shape& operand, const Shape& result, const Indices& index, ExprPool& pool) {
  Indices at;
  const std::size_t extra = result.size() - operand.size();
  for (std::size_t i = 0; i < operand.size(); ++i) {
    const bool stretched = operand[i].is_constant(1) and not result[i + extra].is_constant(1);
    at.push_back(stretched ? expr::constant_int(pool, DType::kI64, 0) : index[i + extra]);
  }
  return at;
}

Scalar literal(const Graph& graph, ValueId value, ExprPool& pool) {
  const Tensor* tensor = graph.constant_of(value);
  if (tensor == nullptr or tensor->element_count() != 1) return {};
  if (is_float(tensor->dtype())) return expr::constant(pool, arithmetic_type(tensor->dtype()), tensor->at(0));
  return expr::constant_int(pool, tensor->dtype(), tensor->int_at(0));
}

Compute::Compute(const Graph& graph, NodeId id) : attrs(graph.node(id).attrs), graph_(graph), node_(graph.node(id)) {
  const auto add = [&](ValueId value, std::string name, Access access) {
    kernel_.buffers.push_back({std::move(name), graph.type(value).dtype, graph.type(value).shape, access});
  };
  const auto& inputs = node_.op->inputs;
  kernel_.name = std::string(node_.op->name);
  for (std::size_t i = 0; i < node_.operands.size(); ++i) {
    if (not node_.operands[i].valid()) {  // an absent operand keeps its place, so that operand numbers are buffer numbers
      kernel_.buffers.push_back({"absent", DType::kF32, {0}, Access::kRead});
      continue;
    }
    std::string name(i < inputs.size() and not inputs[i].ends_with("...") ? inputs[i] : "x" + std::to_string(i));
    std::erase(name, '?');
    add(node_.operands[i], std::move(name), Access::kRead);
  }
  for (std::size_t i = 0; i < node_.results.size(); ++i) add(node_.results[i], std::string(node_.op->results[std::min(i, node_.op->results.size() - 1)]), Access::kWrite);
}

Indices Compute::outer(const Shape& extents) {
  HONE_CHECK(kernel_.axes.empty(), "outer() comes first, once");
  Indices index;
  for (const Dim& extent : extents) {
    const std::size_t i = kernel_.axes.size();
    kernel_.axes.push_back({i < std::size(kOuterNames) ? std::string(kOuterNames[i]) : fmt::format("o{}", i), extent});
    index.emplace_back(kernel_.exprs, kernel_.exprs.add({.op = ScalarOp::kIndex, .dtype = DType::kI64, .slot = static_cast<std::uint32_t>(i)}));
  }
  kernel_.outer_count = static_cast<std::uint32_t>(extents.size());
  return index;
}

Indices Compute::inner(const Shape& extents) {
  Phase& made = start_phase();
  Indices index;
  for (const Dim& extent : extents) {
    const std::size_t axis = kernel_.axes.size(), i = axis - kernel_.outer_count;
    kernel_.axes.push_back({i < std::size(kInnerNames) ? std::string(kInnerNames[i]) : fmt::format("r{}", i), extent});
    made.inner.push_back(static_cast<std::uint32_t>(axis));
    index.emplace_back(kernel_.exprs, kernel_.exprs.add({.op = ScalarOp::kIndex, .dtype = DType::kI64, .slot = static_cast<std::uint32_t>(axis)}));
  }
  return index;
}

Indices Compute::scatter(const Shape& extents) {
  HONE_CHECK(kernel_.outer_count == 1, "a scatter kernel has one outer axis: the destination's first");
  Indices index = inner(extents);
  kernel_.phases.back().scatter = true;
  return index;
}

Phase& Compute::start_phase() {
  reduced_ = false;
  return kernel_.phases.emplace_back();
}

Phase& Compute::phase() { return kernel_.phases.empty() ? start_phase() : kernel_.phases.back(); }

Scalar Compute::load(std::size_t operand, Indices index) { return load_if({}, operand, std::move(index)); }

Scalar Compute::load_if(Scalar guard, std::size_t operand, Indices index) {
  const ValueId value = node_.operands.at(operand);
  const Type& type = graph_.type(value);
  HONE_CHECK(index.size() == type.shape.size(), fmt::format("{}: load with {} indices from {}", node_.op->name, index.size(), to_string(type)));
  if (const Scalar number = literal(graph_, value, pool()); number.valid() and not guard.valid()) return number;
  Expr load{.op = ScalarOp::kLoad, .dtype = arithmetic_type(type.dtype), .slot = static_cast<std::uint32_t>(operand), .index = ids_of(index)};
  if (guard.valid()) load.guard = guard.id();
  return {pool(), pool().add(std::move(load))};
}

Scalar Compute::reduce(ReduceKind kind, Scalar value) {
  std::uint32_t temp = 0;
  for (const Phase& other : kernel_.phases) temp += static_cast<std::uint32_t>(other.reductions.size());
  const DType dtype = kind == ReduceKind::kArgMax or kind == ReduceKind::kArgMin ? DType::kI64 : value.dtype();
  phase().reductions.push_back({kind, value.id(), temp, dtype});
  reduced_ = true;
  return {pool(), pool().add({.op = ScalarOp::kTemp, .dtype = dtype, .slot = temp})};
}

void Compute::store(std::size_t result, Indices index, Scalar value) {
  if (reduced_) start_phase();
  const auto buffer = static_cast<std::uint32_t>(node_.operands.size() + result);
  const DType dtype = kernel_.buffers[buffer].dtype;
  phase().stores.push_back({buffer, ids_of(index), expr::to_store(expr::cast(value, dtype), dtype).id(), ExprId{}});
}

void Compute::scatter_store(Combine combine, std::size_t result, Indices index, Scalar value, Scalar guard) {
  HONE_CHECK(phase().scatter, "scatter_store outside of a scatter phase");
  const auto buffer = static_cast<std::uint32_t>(node_.operands.size() + result);
  phase().stores.push_back({buffer, ids_of(index), value.id(), guard.valid() ? guard.id() : ExprId{}, combine});
}

Scalar Compute::size(Dim dim) { return expr::size(pool(), dim); }

Scalar Compute::index_constant(std::int64_t value) { return expr::constant_int(pool(), DType::kI64, value); }
Scalar Compute::number(DType dtype, double value) { return expr::constant(pool(), dtype, value); }

namespace {

/// An elementwise op: every operand read at the result's index, broadcast axes at 0.
void compute_scalar(Compute& c, const OpDef& op) {
  const Shape& shape = c.result_shape();
  const Indices index = c.outer(shape);
  std::vector<Scalar> operands;
  for (std::size_t i = 0; i < c.count(); ++i) operands.push_back(c.load(i, broadcast_index(c.shape(i), shape, index, c.pool())));
  c.store(0, index, op.scalar({operands, c.attrs, c.result_type().dtype, c.pool()}));
}

}  // namespace

Kernel Compute::take() && { return std::move(kernel_); }

Kernel kernel_of(const Graph& graph, NodeId id) {
  const OpDef& op = *graph.node(id).op;
  HONE_CHECK(op.scalar != nullptr or op.compute != nullptr, fmt::format("{} is no index formula: it has no kernel of its own", op.name));
  Compute compute(graph, id);
  if (op.scalar != nullptr) compute_scalar(compute, op);
  else op.compute(compute);
  return std::move(compute).take();
}

}  // namespace hone
