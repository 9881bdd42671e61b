// Which activations lie channels last.
//
// Convolution and pooling run fastest, and without copies, on activations whose channels lie together. So a group of values whose axes correspond (all that
// elementwise ops, reductions, concatenations and transposes lie between) is stored with channels last if that moves fewer elements: at its borders, where
// something needs the axes as they were, than libraries move to repack the operands and results of each convolution and pooling, and the transposes in it,
// which go.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/ops/ops.h"
#include "ir/ops/window.h"
#include "passes/passes.h"
#include "passes/permuted.h"

namespace hone {

namespace {

/// An op with the attribute channels_last: which operands are activations, and whether its results are.
struct ActivationOp {
  const OpDef* op;
  FixedList<std::size_t, 2> operands;
  bool results;
};
constexpr ActivationOp kActivationOps[] = {
    {&op::conv, {0}, true},     {&op::conv_input_grad, {0}, true},  {&op::conv_weight_grad, {0, 1}, false},
    {&op::max_pool, {0}, true}, {&op::max_pool_grad, {0, 1}, true}, {&op::max_pool_pick, {0, 1}, true},
    {&op::avg_pool, {0}, true}, {&op::avg_pool_grad, {0}, true},
};

/// Null for other nodes, and for those whose layout is decided.
const ActivationOp* activation_op(const Node& node) {
  if (node.attrs[kChannelsLast]) return nullptr;
  for (const ActivationOp& row : kActivationOps)
    if (*row.op == *node.op) return &row;
  return nullptr;
}

std::vector<ValueId> activations_of(const Node& node, const ActivationOp& row) {
  std::vector<ValueId> values;
  for (const std::size_t i : row.operands) values.push_back(node.operands[i]);
  if (row.results) values.insert(values.end(), node.results.begin(), node.results.end());
  return values;
}

/// [N,C,s...] as [N,s...,C].
AxisOrder channels_last(std::size_t rank) {
  AxisOrder order = identity_order(rank);
  order.erase(order.begin() + 1);
  order.push_back(1);
  return order;
}

/// Elements of a tensor, for comparison: sizes that are not known count as 64.
double elements(const Shape& shape) { return static_cast<double>(element_count(shape).guess(64)); }

Shape with_leading_ones(Shape shape, std::size_t rank) {
  shape.insert(shape.begin(), rank - shape.size(), Dim(1));
  return shape;
}

/// An operand as a node wants it.
struct Wanted {
  ValueId value;
  AxisOrder order;  ///< of the value with leading axes of extent 1 up to the order's rank
  friend auto operator<=>(const Wanted& a, const Wanted& b) { return std::pair(a.value.index, a.order) <=> std::pair(b.value.index, b.order); }
};

/// How the values of a graph lie.
class Layouts {
 public:
  explicit Layouts(const Graph& graph) : graph_(graph), groups_(graph.value_count()) {
    for (const Node& node : graph.nodes()) join_axes(node);
    std::set<std::size_t> seen;
    for (const Node& node : graph.nodes())
      if (const ActivationOp* row = activation_op(node); row != nullptr and seen.insert(groups_.group(node.operands[row->operands[0]])).second)
        decide(node, *row);
  }

  bool changes_nothing() const { return chosen_.empty(); }
  const std::vector<std::string>& reasons() const { return reasons_; }

  /// Is the node one of convolution or pooling that becomes channels_last?
  bool is_channels_last(const Node& node) {
    const ActivationOp* row = activation_op(node);
    return row != nullptr and chosen_.contains(groups_.group(node.operands[row->operands[0]]));
  }
  bool is_turned(const Node& node) { return *node.op == op::transpose and is_chosen(node.results[0]); }
  /// Does the node work on permuted axes?
  bool is_permuted(const Node& node) { return may_be_permuted(node) and is_chosen(reference(node)); }
  AxisOrder work_order(const Node& node) { return chosen_order(reference(node)); }

  /// What the node wants of its operands, those that are absent left out.
  std::vector<Wanted> wants(const Node& node) {
    std::vector<Wanted> wanted;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (node.operands[i].valid()) wanted.push_back({node.operands[i], wanted_order(node, i)});
    return wanted;
  }
  AxisOrder wanted_order(const Node& node, std::size_t operand) {
    const std::size_t rank = rank_of(node.operands[operand]);
    if (is_channels_last(node)) {
      const auto& activations = activation_op(node)->operands;
      return std::find(activations.begin(), activations.end(), operand) != activations.end() ? channels_last(rank) : identity_order(rank);
    }
    if (is_turned(node)) return then(node.attrs[kPerm], chosen_order(node.results[0]));
    return is_permuted(node) ? work_order(node) : identity_order(rank);
  }

  /// How a value is stored: in which order the node that makes it gives it.
  AxisOrder stored(ValueId value) {
    const std::size_t rank = rank_of(value);
    if (not graph_.value(value).producer.valid()) return identity_order(rank);
    const Node& node = graph_.producer(value);
    if (is_channels_last(node)) return activation_op(node)->results ? channels_last(rank) : identity_order(rank);
    if (is_turned(node)) return chosen_order(value);
    return is_permuted(node) and reference(node) == value ? work_order(node) : identity_order(rank);
  }

 private:
  std::size_t rank_of(ValueId value) const { return graph_.type(value).shape.size(); }
  bool is_chosen(ValueId value) { return chosen_.contains(groups_.group(value)); }

  /// The value whose axes the node's work follows: the result, or the operand if the result lacks axes.
  ValueId reference(const Node& node) const { return rank_of(node.results[0]) < rank_of(node.operands[0]) ? node.operands[0] : node.results[0]; }

  AxisOrder chosen_order(ValueId value) { return then(inverse(groups_.axes(value, rank_of(value))), chosen_.at(groups_.group(value))); }

  void join_axes(const Node& node) {
    if (const ActivationOp* row = activation_op(node)) {
      const std::vector<ValueId> values = activations_of(node, *row);
      for (const ValueId value : values) groups_.join(values[0], value, identity_order(rank_of(value)));
    } else if (*node.op == op::transpose) {
      groups_.join(node.operands[0], node.results[0], node.attrs[kPerm]);
    } else if (may_be_permuted(node)) {
      const std::size_t rank = rank_of(node.results[0]);
      for (const ValueId operand : node.operands)
        if (operand.valid() and rank_of(operand) == rank) groups_.join(node.results[0], operand, identity_order(rank));
    }
  }

  /// Stores the group of a convolution or pooling channels last if that is cheaper.
  void decide(const Node& node, const ActivationOp& row) {
    const ValueId x = node.operands[row.operands[0]];
    const std::size_t rank = rank_of(x);
    const double before = moved_elements();
    chosen_[groups_.group(x)] = then(groups_.axes(x, rank), channels_last(rank));
    const double after = moved_elements();
    if (after >= before) chosen_.erase(groups_.group(x));
    reasons_.push_back(fmt::format("{} from {} on: {:.3g} elements would be moved, and {:.3g} with channels first (where sizes are not known, 64)",
                                   after < before ? "channels last" : "channels first", to_string(node.loc), after, before));
  }

  /// Elements that transposes and libraries move, each value once for each order.
  double moved_elements() {
    std::set<Wanted> moves;
    double repacked = 0;
    for (const Node& node : graph_.nodes()) {
      for (Wanted& wanted : wants(node)) moves.insert(std::move(wanted));
      if (*node.op == op::transpose and not is_turned(node) and moves_elements(graph_.type(node.operands[0]).shape, node.attrs[kPerm]))
        repacked += elements(graph_.type(node.operands[0]).shape);
      if (const ActivationOp* row = activation_op(node); row != nullptr and not is_channels_last(node))
        for (const ValueId value : activations_of(node, *row))
          if (moves_elements(graph_.type(value).shape, channels_last(rank_of(value)))) repacked += elements(graph_.type(value).shape);
    }
    for (const Output& output : graph_.outputs()) moves.insert({output.value, identity_order(rank_of(output.value))});
    for (const Alias& alias : graph_.aliases()) moves.insert({alias.value, identity_order(rank_of(alias.value))});
    for (const Wanted& wanted : moves)
      if (is_moved(wanted)) repacked += elements(graph_.type(wanted.value).shape);
    return repacked;
  }

  bool is_moved(const Wanted& wanted) {
    const Shape& shape = graph_.type(wanted.value).shape;
    if (shape.size() != wanted.order.size()) return moves_elements(with_leading_ones(shape, wanted.order.size()), wanted.order);
    const AxisOrder given = stored(wanted.value);
    return moves_elements(in_order(shape, given), then(inverse(given), wanted.order));
  }

  const Graph& graph_;
  AxisGroups groups_;
  std::map<std::size_t, AxisOrder> chosen_;  ///< by group: its axes as they lie in memory
  std::vector<std::string> reasons_;
};

/// Builds the graph anew with values that lie as decided. A value as it was is a transpose away, which is dropped where nobody reads it.
class Arranger {
 public:
  explicit Arranger(Layouts& layouts) : layouts_(layouts) {}

  bool visit(Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (layouts_.is_channels_last(node)) return make_channels_last(rewriter, node);
    if (layouts_.is_turned(node)) return give(rewriter, node.results[0], ordered(rewriter, node, 0), layouts_.stored(node.results[0])), true;
    if (layouts_.is_permuted(node)) return make_permuted(rewriter, node);
    return false;
  }

 private:
  std::vector<Val> ordered_operands(Rewriter& rewriter, const Node& node) {
    std::vector<Val> operands;
    for (std::size_t i = 0; i < node.operands.size(); ++i) operands.push_back(ordered(rewriter, node, i));
    return operands;
  }

  Val ordered(Rewriter& rewriter, const Node& node, std::size_t operand) {
    const ValueId value = node.operands[operand];
    if (not value.valid()) return {};
    const AxisOrder order = layouts_.wanted_order(node, operand);
    const Val plain = rewriter.mapped(value);
    if (plain.rank() == order.size() and is_identity(order)) return plain;
    const auto [found, is_new] = made_.try_emplace({value, order});
    if (is_new) found->second = transpose(plain.rank() == order.size() ? plain : reshape(plain, with_leading_ones(plain.shape(), order.size())), order);
    return found->second;
  }

  void give(Rewriter& rewriter, ValueId value, Val made, const AxisOrder& order) {
    made_.insert_or_assign({value, order}, made);
    rewriter.replace(value, transpose(made, inverse(order)));
  }

  bool make_channels_last(Rewriter& rewriter, const Node& node) {
    Attrs attrs = node.attrs;
    attrs.set(kChannelsLast = true);
    const std::vector<Val> results = node.op->build_all(ordered_operands(rewriter, node), std::move(attrs));
    for (std::size_t i = 0; i < results.size(); ++i) give(rewriter, node.results[i], results[i], layouts_.stored(node.results[i]));
    return true;
  }

  bool make_permuted(Rewriter& rewriter, const Node& node) {
    const AxisOrder order = layouts_.work_order(node);
    const Type& type = rewriter.old().type(node.results[0]);
    Attrs attrs = permuted_attributes(node, order);
    if (type.shape.size() < order.size()) {  // a reduction that drops axes: they are kept first
      attrs.set(kKeepDims = true);
      const Val kept = node.op->build(ordered_operands(rewriter, node), std::move(attrs));
      rewriter.replace(node.results[0], reshape(transpose(kept, inverse(order)), type.shape));
      return true;
    }
    give(rewriter, node.results[0], node.op->build(ordered_operands(rewriter, node), std::move(attrs)), order);
    return true;
  }

  Layouts& layouts_;
  std::map<Wanted, Val> made_;
};

}  // namespace

Changed choose_layout(Graph& graph) {
  const Changed inside = Rewriter::in_bodies(graph, choose_layout);
  Layouts layouts(graph);
  if (layouts.changes_nothing()) return inside;
  Arranger arranger(layouts);
  (void)Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) { return arranger.visit(rewriter, id); });
  (void)eliminate_dead_code(graph);
  return Changed::kYes;
}

std::vector<std::string> explain_layout(const Graph& graph) { return Layouts(graph).reasons(); }

}  // namespace hone
