// Rewriter: the only way to change a graph that is there. It walks the nodes in order and builds the graph anew: what the visitor does not replace is
// copied, so order, types, names and Loc hold by construction, and ids of the old graph stay valid while it works.
#pragma once

#include <functional>
#include <span>

#include "ir/builder.h"

namespace hone {

/// Whether a pass changed the graph. It tells the truth.
enum class [[nodiscard]] Changed : bool { kNo = false, kYes = true };
inline Changed operator|(Changed a, Changed b) { return a == Changed::kYes or b == Changed::kYes ? Changed::kYes : Changed::kNo; }
inline Changed& operator|=(Changed& a, Changed b) { return a = a | b; }

class Rewriter {
 public:
  /// For each node of the old graph, in order: true when the visitor gave every result that is still read a replacement (or dropped it).
  using Visitor = std::function<bool(Rewriter&, NodeId)>;

  /// Runs `visit` over `graph`. When it returned false for every node, the graph is left alone.
  static Changed rewrite(Graph& graph, const Visitor& visit);
  /// Runs `pass` on the bodies of the graph's region nodes.
  static Changed in_bodies(Graph& graph, const std::function<Changed(Graph&)>& pass);
  /// Rebuilds the graph from what its outputs, aliases and fed inputs need.
  static Changed drop_unused(Graph& graph);
  /// Makes `made` the graph with its nodes in `order`, in which operands come before their readers. Returns the new value of each old one.
  static std::vector<ValueId> reordered(const Graph& graph, std::span<const NodeId> order, Graph& made);

  const Graph& old() const { return old_; }
  const Node& node(NodeId id) const { return old_.node(id); }
  Builder& builder() { return builder_; }
  /// The new value of an old one; an absent operand stays absent.
  Val mapped(ValueId old_value);
  Val operand(const Node& node, std::size_t i) { return mapped(node.operands.at(i)); }
  /// From now on, `value` stands for the old value. Keeps the old name if `value` has none.
  void replace(ValueId old_value, Val value);
  /// Readers of the old value, outputs and aliases included.
  std::uint32_t uses(ValueId old_value) const { return uses_[old_value.index]; }

 private:
  explicit Rewriter(const Graph& old);
  void copy_input(const Input& input);
  void copy_node(const Node& node);
  void finish();

  const Graph& old_;
  Graph made_;
  Builder builder_;
  std::vector<ValueId> map_;
  std::vector<std::uint32_t> uses_;
};

}  // namespace hone
