// What a pass may ask of a target. Backends implement it; passes know no backend.
#pragma once

#include <cstdint>
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

/// How much of what a graph computes is enough to keep the whole device busy.
struct Parallelism {
  std::int64_t fewest_rows = 16;               ///< rows that are worked on as a whole, several times over: with fewer there is too little to share
  std::int64_t short_unknown_row = 0;          ///< but rows of an unknown extent that is expected to be at most this are not worth a second kernel
  std::int64_t neighbours = 16;                ///< results of sums that lie side by side and are one share: lanes of a vector, threads of a warp
  std::int64_t fewest_shares = 16;             ///< of a sum
  std::int64_t fewest_elements = 1 << 17;      ///< tensors of fewer are not worth a second kernel and the wait between the two
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
  /// Does a library product of narrow operands give the sum in f32, too? Then what is added to it, a bias or another sum, is added to that.
  virtual bool gives_wide_sums(const OpDef& product) const { return (void)product, true; }
  /// Of how many elements the rows of a library product's factors and of its result had better be a multiple. 1: any number is fine. 0: it is no product of a library that takes all transposes alike.
  virtual std::int64_t row_multiple(const Graph& graph, NodeId product) const { return (void)graph, (void)product, 0; }
  /// What is enough for it.
  virtual Parallelism parallelism() const { return {}; }
  /// Does it work in memory of its own, so that what host functions read and write must be copied?
  virtual bool has_own_memory() const { return false; }
};

}  // namespace hone
