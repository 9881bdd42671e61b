// A graph run in double with all values kept, so that single nodes, and what depends on one input, can be run again.
#pragma once

#include <vector>

#include "ir/kernel/interpret.h"

namespace hone {

/// Numbers for inputs that have none.
enum class MadeUp { kAroundZero, kPositive };  // in (-1, 1), in (0.25, 1)

class ForwardRun {
 public:
  /// Feeds inputs without data with random numbers (integers within their bounds) and runs every node; each symbol of an input is `size`.
  ForwardRun(const Graph& graph, std::int64_t size, MadeUp inputs = MadeUp::kAroundZero);

  /// Holds until the next value_with().
  const Tensor& value(ValueId id) const { return values_[id.index]; }
  const DimBindings& sizes() const { return sizes_; }
  std::vector<Tensor> operands_of(const Node& node) const;
  /// The results of `node` for other operands.
  std::vector<Tensor> run(NodeId node, std::span<const Tensor> operands) { return interpreter_.run_node(node, operands, sizes_); }
  /// The scalar `result` if `input` were `data`; only the nodes that depend on it run.
  double value_with(ValueId result, ValueId input, Tensor data);

 private:
  const Graph& graph_;
  Interpreter interpreter_;
  DimBindings sizes_;
  std::vector<Tensor> values_;
};

/// Numbers in (-1, 1) that depend on `seed` only, as f64.
Tensor random_direction(const std::vector<std::int64_t>& shape, std::uint64_t seed);
/// x + step * direction; `x` is f64.
Tensor moved(const Tensor& x, const Tensor& direction, double step);

}  // namespace hone
