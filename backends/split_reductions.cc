#include "backends/split_reductions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "backends/cost_model.h"
#include "ir/op.h"
#include "ir/ops/ops.h"

namespace hone {

namespace {

/// The axes of the first reduction and of the second one.
struct Split {
  Ints parts, of_parts;
};

std::optional<Split> split_of(const Graph& graph, const Node& node, const Parallelism& parallelism) {
  if (*node.op != op::reduce_sum and *node.op != op::reduce_max and *node.op != op::reduce_min) return std::nullopt;
  const Ints& axes = node.attrs[kAxes];
  const Type& type = graph.type(node.operands[0]);
  if (is_storage_only(type.dtype)) return std::nullopt;  // parts would be rounded
  const std::size_t left = axes_worth_leaving(type.shape, axes, parallelism);
  if (left == 0) return std::nullopt;
  const auto middle = axes.begin() + static_cast<std::ptrdiff_t>(left);
  return Split{Ints(middle, axes.end()), Ints(axes.begin(), middle)};
}

class Splitter {
 public:
  Splitter(const Parallelism& parallelism, PassLog* log) : parallelism_(parallelism), log_(log) {}
  bool visit(Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    const std::optional<Split> split = split_of(rewriter.old(), node, parallelism_);
    if (not split) return false;
    const std::optional<Deviation> deviation = *node.op == op::reduce_sum ? deviation_of(rewriter.old(), node) : std::nullopt;
    const Val parts = deviation ? squares_by_part(rewriter, *deviation, *split) : rewriter.mapped(node.operands[0]);
    const Val first = deviation ? parts : node.op->build({parts}, {kAxes = split->parts, kKeepDims = true});
    parts_[id] = first;
    const Val all = node.op->build({first}, {kAxes = split->of_parts, kKeepDims = true});
    rewriter.replace(node.results[0], reshape(all, rewriter.old().type(node.results[0]).shape));
    if (log_ != nullptr) tell(rewriter.old(), node, *split);
    return true;
  }

 private:
  /// x - mean, where the mean is a quotient of x's sum over the same axes.
  struct Deviation {
    ValueId x, mean;
    NodeId sum;
  };

  /// Of which the node sums the squares.
  std::optional<Deviation> deviation_of(const Graph& graph, const Node& node) const {
    const ValueId squares = node.operands[0];
    if (not is_float(graph.type(squares).dtype)) return std::nullopt;  // a quotient of integers is no mean
    if (not graph.is_op(squares, op::mul) or graph.producer(squares).operands[0] != graph.producer(squares).operands[1]) return std::nullopt;
    const ValueId difference = graph.producer(squares).operands[0];
    if (not graph.is_op(difference, op::sub)) return std::nullopt;
    const ValueId x = graph.producer(difference).operands[0], mean = graph.producer(difference).operands[1];
    if (not graph.is_op(mean, op::div) or not graph.is_op(graph.producer(mean).operands[0], op::reduce_sum)) return std::nullopt;
    const NodeId sum = graph.value(graph.producer(mean).operands[0]).producer;
    const bool of_x = graph.node(sum).operands[0] == x and graph.node(sum).attrs[kAxes] == node.attrs[kAxes] and graph.node(sum).attrs[kKeepDims];
    const bool by_result = graph.type(mean).shape == graph.type(graph.node(sum).results[0]).shape;
    return of_x and by_result and graph.type(squares).shape == graph.type(x).shape ? std::optional(Deviation{x, mean, sum}) : std::nullopt;
  }

  /// With p for the mean of a part of n elements, the sum over the part of (x - m)^2 is that of (x - p)^2, plus n (p - m)^2.
  Val squares_by_part(Rewriter& rewriter, const Deviation& deviation, const Split& split) {
    const Val x = rewriter.mapped(deviation.x);
    Dim count = 1;
    for (const std::int64_t axis : split.parts) count *= x.shape()[static_cast<std::size_t>(axis)];
    const Val n = size_value(rewriter.builder(), count, x.dtype()), mean = parts_.at(deviation.sum) / n;
    const Val around_own = op::reduce_sum(square(x - mean), {kAxes = split.parts, kKeepDims = true});
    return around_own + square(mean - rewriter.mapped(deviation.mean)) * n;
  }

  void tell(const Graph& graph, const Node& node, const Split& split) {
    log_->tell(fmt::format("{:<18} reduces {} to few results: part by part over axes [{}], which threads share, then over the parts, axes [{}]; {}", node.op->name, to_string(graph.type(node.operands[0])),
                           fmt::join(split.parts, ","), fmt::join(split.of_parts, ","), to_string(node.loc)));
  }

  const Parallelism parallelism_;
  PassLog* log_;
  std::map<NodeId, Val> parts_;  ///< by reduction: what the first of the two gives
};

}  // namespace

Changed split_reductions(Graph& graph, const Parallelism& parallelism, PassLog* log) {
  const Changed inside = Rewriter::in_bodies(graph, [&](Graph& body) { return split_reductions(body, parallelism, log); });
  Splitter splitter(parallelism, log);
  return inside | Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) { return splitter.visit(rewriter, id); });
}

}  // namespace hone
