// Compute: how a `compute` entry writes its index formula, and Args: what a `scalar` entry sees.
#pragma once

#include <span>
#include <vector>

#include "ir/attributes.h"
#include "ir/graph.h"
#include "ir/kernel/kernel.h"

namespace hone {

/// The operands of a `scalar` entry at one index, with the node's attributes.
struct Args {
  std::span<const Scalar> operands;
  const Attrs& attrs;
  DType result;  ///< the result's element type
  ExprPool& pool;
  Scalar operator[](std::size_t i) const { return operands[i]; }
  std::size_t size() const { return operands.size(); }
};

using Indices = std::vector<Scalar>;

/// Builds the kernel of one node. Order of calls: outer(); then any number of [inner(), reductions, stores].
class Compute {
 public:
  Compute(const Graph& graph, NodeId node);

  const Attrs& attrs;
  std::size_t count() const { return node_.operands.size(); }
  bool has(std::size_t i) const { return i < node_.operands.size() and node_.operands[i].valid(); }
  const Type& type(std::size_t i) const { return graph_.type(node_.operands[i]); }
  const Shape& shape(std::size_t i) const { return type(i).shape; }
  const Type& result_type(std::size_t i = 0) const { return graph_.type(node_.results[i]); }
  const Shape& result_shape(std::size_t i = 0) const { return result_type(i).shape; }

  /// Declares the outer (parallel) axes; once, first. Returns their indices.
  Indices outer(const Shape& extents);
  /// Starts a phase with these inner axes (none: a phase of one point). Without a call, stores form one phase of one point.
  Indices inner(const Shape& extents);
  /// Starts the scatter phase (kernel.h): the outer space must be one axis, the destination's first.
  Indices scatter(const Shape& extents);

  Scalar load(std::size_t operand, Indices index);
  /// 0 where `guard` is false; nothing is read there.
  Scalar load_if(Scalar guard, std::size_t operand, Indices index);
  /// Reduces `value` over the phase's inner axes; the result may be used in later phases (a new phase starts by itself).
  Scalar reduce(ReduceKind kind, Scalar value);
  Scalar sum(Scalar value) { return reduce(ReduceKind::kSum, value); }
  void store(std::size_t result, Indices index, Scalar value);
  /// Only in a scatter phase: where `guard` holds, combines `value` with the element that is there.
  void scatter_store(Combine combine, std::size_t result, Indices index, Scalar value, Scalar guard = {});

  Scalar size(Dim dim);          ///< a size as an i64
  Scalar index_constant(std::int64_t value);
  Scalar number(DType dtype, double value);
  ExprPool& pool() { return kernel_.exprs; }

  Kernel take() &&;

 private:
  Phase& phase();
  Phase& start_phase();
  const Graph& graph_;
  const Node& node_;
  Kernel kernel_;
  bool reduced_ = false;  ///< the current phase has a reduction: what comes next starts another
};

/// a and b; the other one where one is invalid (no condition). Conditions that grow from nothing start with an invalid one.
Scalar both(Scalar a, Scalar b);

/// Where an operand of shape `operand` is read for the result's `index`, broadcasting as numpy does.
Indices broadcast_index(const Shape& operand, const Shape& result, const Indices& index, ExprPool& pool);

/// A one-element constant as a literal of its arithmetic type; invalid for any other value.
Scalar literal(const Graph& graph, ValueId value, ExprPool& pool);

/// The kernel of an op of meaning `scalar` or `compute`; its buffers are the node's operands, then its results. One-element constants become literals.
Kernel kernel_of(const Graph& graph, NodeId node);

}  // namespace hone
