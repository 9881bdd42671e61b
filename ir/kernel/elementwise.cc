#include "ir/kernel/elementwise.h"

#include <fmt/format.h>

#include <map>

#include "ir/kernel/scalar_math.h"
#include "ir/op.h"

namespace hone {

namespace {

class ElementwiseBuilder {
 public:
  ElementwiseBuilder(const Graph& graph, const Shape& shape) : graph_(graph), shape_(shape) {
    Kernel& kernel = made_.kernel;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      kernel.axes.push_back({fmt::format("i{}", i), shape[i]});
      index_.emplace_back(kernel.exprs, kernel.exprs.add({.op = ScalarOp::kIndex, .dtype = DType::kI64, .slot = static_cast<std::uint32_t>(i)}));
    }
    kernel.outer_count = static_cast<std::uint32_t>(shape.size());
    kernel.phases.emplace_back();
  }

  void add(const Node& node) {
    std::vector<Scalar> operands;
    for (const ValueId operand : node.operands) operands.push_back(read(operand));
    const DType dtype = graph_.type(node.results[0]).dtype;
    values_[node.results[0]] = expr::cast(node.op->scalar({operands, node.attrs, dtype, made_.kernel.exprs}), dtype);
  }

  void store(ValueId value) {
    const std::uint32_t buffer = add_buffer(value, Access::kWrite);
    std::vector<ExprId> at;
    for (const Scalar& i : index_) at.push_back(i.id());
    const Scalar stored = expr::to_store(values_.at(value), graph_.type(value).dtype);
    made_.kernel.phases[0].stores.push_back({buffer, std::move(at), stored.id(), ExprId{}});
  }

  ElementwiseKernel take(std::string name) && {
    made_.kernel.name = std::move(name);
    return std::move(made_);
  }

 private:
  Scalar read(ValueId value) {
    if (const auto found = values_.find(value); found != values_.end()) return found->second;
    ExprPool& pool = made_.kernel.exprs;
    Scalar made = literal(graph_, value, pool);
    if (not made.valid()) {
      const Type& type = graph_.type(value);
      std::vector<ExprId> at;
      for (const Scalar& i : broadcast_index(type.shape, shape_, index_, pool)) at.push_back(i.id());
      const std::uint32_t buffer = add_buffer(value, Access::kRead);
      made = {pool, pool.add({.op = ScalarOp::kLoad, .dtype = arithmetic_type(type.dtype), .slot = buffer, .index = std::move(at)})};
    }
    return values_[value] = made;
  }

  std::uint32_t add_buffer(ValueId value, Access access) {
    const Type& type = graph_.type(value);
    made_.kernel.buffers.push_back({fmt::format("{}{}", access == Access::kRead ? "x" : "y", made_.buffers.size()), type.dtype, type.shape, access});
    made_.buffers.push_back(value);
    return static_cast<std::uint32_t>(made_.buffers.size() - 1);
  }

  const Graph& graph_;
  const Shape& shape_;
  ElementwiseKernel made_;
  Indices index_;
  std::map<ValueId, Scalar> values_;
};

}  // namespace

ElementwiseKernel elementwise_kernel(const Graph& graph, std::span<const NodeId> members, std::span<const ValueId> stored) {
  const Node& last = graph.node(members.back());
  ElementwiseBuilder builder(graph, graph.type(last.results[0]).shape);
  for (const NodeId member : members) builder.add(graph.node(member));
  for (const ValueId value : stored) builder.store(value);
  return std::move(builder).take(members.size() == 1 ? std::string(last.op->name) : fmt::format("{}_and_{}_more", last.op->name, members.size() - 1));
}

}  // namespace hone
