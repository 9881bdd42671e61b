// What a pass may ask of a target. Backends implement it; passes know no backend.
#pragma once

#include <string>
#include <string_view>

#include "base/recurrent_cell.h"
#include "ir/graph.h"

namespace hone {

/// The library row that does what a node means, or the reason why there is none.
struct RowChoice {
  std::string row;     ///< "" none: the node becomes a generated kernel
  std::string reason;  ///< why not, for --why
};

/// What a row for attention is to take. Shapes are [batch, heads, positions, features].
struct AttentionTypes {
  DType dtype = DType::kF32;  ///< of what is multiplied
  Shape query, key, value;
  bool has_bias = false;
};

/// What a row for a recurrent layer, in one direction and in f32, is to take.
struct RecurrentTypes {
  RecurrentCell cell = RecurrentCell::kTanh;
  Dim steps, samples, features, hidden;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual std::string_view name() const = 0;
  /// Why it has no row for attention and its gradient; "" if it has: choose_row() then takes the nodes of fused_attention and of fused_attention_grad. Asked before anything is differentiated, because what the forward
  /// pass keeps depends on it.
  virtual std::string why_no_attention(const AttentionTypes&) const { return "the target has no library for it"; }
  /// The same of recurrent layers, and the nodes recurrent and recurrent_grad.
  virtual std::string why_no_recurrence(const RecurrentTypes&) const { return "the target has no library for it"; }
  /// Depends on the graph alone, so that nodes that must agree (pooling and its gradient) do.
  virtual RowChoice choose_row(const Graph& graph, NodeId node) const = 0;
  /// In how many parts, over the samples, the node had better be summed; 1: not in parts, or it is no convolution's weight gradient.
  virtual std::int64_t parts_of_weight_gradient(const Graph& graph, NodeId node) const { return (void)graph, (void)node, 1; }
  /// Does a library product of narrow operands give the sum in f32, too? Then a bias is added to that.
  virtual bool gives_wide_sums(const OpDef& product) const { return (void)product, true; }
  /// Does it work in memory of its own, so that what host functions read and write must be copied?
  virtual bool has_own_memory() const { return false; }
};

}  // namespace hone
