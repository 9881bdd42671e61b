// The values that are a weight matrix as it is stored, transposed, or of another float type: what exporters put between a weight and the product that reads it.
#pragma once

#include <optional>
#include <vector>

#include "ir/ops/ops.h"

namespace hone {

struct MatrixView {
  ValueId weight;           ///< an input of role weight, of rank 2
  bool transposed = false;
};

class MatrixViews {
 public:
  explicit MatrixViews(const Graph& graph) : views_(graph.value_count()) {
    for (const Input& input : graph.inputs())
      if (input.role == Role::kWeight and graph.type(input.value).shape.size() == 2) views_[input.value.index] = MatrixView{input.value};
    for (const Node& node : graph.nodes()) {
      const bool transposes = *node.op == op::transpose and node.attrs[kPerm] == Ints{1, 0};
      const bool casts = *node.op == op::cast and is_float(graph.type(node.results[0]).dtype);
      if (not transposes and not casts) continue;
      const auto of = find(node.operands[0]);
      if (of) views_[node.results[0].index] = MatrixView{of->weight, of->transposed != transposes};
    }
  }
  /// Nothing for any other value, and for an absent operand.
  std::optional<MatrixView> find(ValueId value) const { return value.valid() and value.index < views_.size() ? views_[value.index] : std::nullopt; }

 private:
  std::vector<std::optional<MatrixView>> views_;  // by value
};

/// Does the product `node` read the view that its operand `i` is as the weight's transpose?
inline bool is_transposed(const Node& node, std::size_t i, const MatrixView& view) { return view.transposed != static_cast<bool>(node.attrs[i == 0 ? kTransA : kTransB]); }

}  // namespace hone
