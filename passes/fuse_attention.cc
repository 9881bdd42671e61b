#include "passes/fuse_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/patterns.h"
#include "ir/ops/formulas.h"
#include "ir/ops/ops.h"
#include "passes/causal_mask.h"

namespace hone {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// From here on down a score weighs nothing beside any other, and its own exponential's argument does not overflow.
constexpr double kNoWeight = -1e9, kLeastBias = -1e30;

/// What is done to scores that are not to be seen.
struct Mask {
  enum class Kind : std::uint8_t { kNone, kAdded, kLowWhereHolds, kLowElsewhere };
  Kind kind = Kind::kNone;
  ValueId value = {};  ///< what is added, or the condition
  double low = 0;      ///< what the condition chooses
};

/// Attention, from its operands to the one result that others read.
struct Attention {
  NodeId last;             ///< gives y
  std::set<NodeId> parts;  ///< it and the nodes that nobody else reads
  ValueId query, key, value;
  bool query_is_transposed = false, key_is_transposed = false, value_is_transposed = false;  ///< the last two axes, against [.., positions, features]
  double scale = 1;
  Mask mask;
  bool is_causal = false;
  bool nothing_gives_zeros = false;  ///< a query that sees nothing; else NaN
};

class Finder {
 public:
  Finder(const Graph& graph, const Recipe& recipe, const Target& target) : graph_(graph), recipe_(recipe), target_(target), uses_(count_uses(graph)) {}

  void run() {
    for (std::size_t i = 0; i < graph_.node_count(); ++i) {
      const Node& node = graph_.node(NodeId(i));
      if ((*node.op == op::softmax or *node.op == op::safe_softmax) and graph_.type(node.results[0]).shape.size() >= 3) why_not_[NodeId(i)] = "something else than a product with values reads the weights";
      else if (*node.op == op::attention) consider(NodeId(i), NodeId(i), whole_attention(NodeId(i)));
      else if (*node.op == op::matmul) look_at_product(NodeId(i));
    }
    for (const auto& [node, why] : why_not_)
      lines_.push_back(fmt::format("{} {}", to_string(graph_.node(node).loc), why.empty() ? "is one node, and so is its gradient" : "stays in parts: " + why));
  }

  const std::vector<Attention>& found() const { return found_; }
  std::vector<std::string> take_lines() { return std::move(lines_); }

 private:
  /// Throws the reason.
  struct Refused {
    std::string why;
  };

  void look_at_product(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.attrs[kTransA]) return;
    const std::optional<NodeId> softmax = softmax_behind(node.operands[0]);
    if (not softmax) return;
    try {
      Attention attention{.last = id, .parts = {id, *softmax}, .query = {}, .key = {}, .value = node.operands[1], .value_is_transposed = node.attrs[kTransB], .mask = {}, .nothing_gives_zeros = *graph_.node(*softmax).op == op::safe_softmax};
      read_scores(graph_.node(*softmax).operands[0], attention);
      consider(*softmax, id, std::move(attention));
    } catch (const Refused& refused) { why_not_[*softmax] = refused.why; }
  }

  /// What makes the weights.
  std::optional<NodeId> softmax_behind(ValueId weights) const {
    if ((not graph_.is_op(weights, op::softmax) and not graph_.is_op(weights, op::safe_softmax)) or uses_[weights.index] != 1) return std::nullopt;
    const std::size_t rank = graph_.type(weights).shape.size();
    return graph_.producer(weights).attrs[kAxis] + 1 == static_cast<std::int64_t>(rank) and rank >= 3 ? std::optional(graph_.value(weights).producer) : std::nullopt;
  }

  /// From what the softmax is taken of to the product of query and key.
  void read_scores(ValueId scores, Attention& attention) const {
    while (not graph_.is_op(scores, op::matmul)) {
      const NodeId id = graph_.value(scores).producer;
      if (not id.valid() or uses_[scores.index] != 1) throw Refused{"its scores are no product of query and key, or something else reads them"};
      const Node& node = graph_.node(id);
      attention.parts.insert(id);
      if (const auto next = behind_scale(node, attention)) scores = *next;
      else if (const auto masked = behind_mask(node, attention)) scores = *masked;
      else throw Refused{fmt::format("{} stands between the product and the softmax", node.op->name)};
    }
    if (uses_[scores.index] != 1) throw Refused{"something else reads the scores"};
    const NodeId product = graph_.value(scores).producer;
    const Node& node = graph_.node(product);
    attention.parts.insert(product);
    attention.query = node.operands[0], attention.query_is_transposed = node.attrs[kTransA];
    attention.key = node.operands[1], attention.key_is_transposed = not node.attrs[kTransB];
  }

  /// Is the node a product with a number? Then what is multiplied.
  std::optional<ValueId> behind_scale(const Node& node, Attention& attention) const {
    if (*node.op != op::mul and *node.op != op::div) return std::nullopt;
    for (const std::size_t i : {0, 1}) {
      const auto number = graph_.scalar_constant(node.operands[1 - i]);
      if (not number or (*node.op == op::div and i == 1)) continue;
      attention.scale *= *node.op == op::mul ? *number : 1 / *number;
      return node.operands[i];
    }
    return std::nullopt;
  }

  std::optional<ValueId> behind_mask(const Node& node, Attention& attention) const {
    if (*node.op != op::add and *node.op != op::where) return std::nullopt;
    if (attention.mask.kind != Mask::Kind::kNone) throw Refused{"it has more than one mask"};
    if (attention.scale != 1) throw Refused{"its mask is scaled"};
    if (*node.op == op::where) {
      for (const std::size_t low : {1, 2}) {
        const auto number = graph_.scalar_constant(node.operands[low]);
        if (not number or not(*number <= kNoWeight)) continue;
        attention.mask = {low == 1 ? Mask::Kind::kLowWhereHolds : Mask::Kind::kLowElsewhere, node.operands[0], *number};
        return node.operands[3 - low];
      }
      return std::nullopt;
    }
    for (const std::size_t i : {0, 1}) {
      if (not leads_to_product(node.operands[i])) continue;
      attention.mask = {Mask::Kind::kAdded, node.operands[1 - i], 0};
      return node.operands[i];
    }
    return std::nullopt;
  }

  bool leads_to_product(ValueId value) const {
    for (int steps = 0; steps < 4 and uses_[value.index] == 1 and graph_.value(value).producer.valid(); ++steps) {
      if (graph_.is_op(value, op::matmul)) return true;
      if (not graph_.is_op(value, op::mul) and not graph_.is_op(value, op::div)) return false;
      const Node& node = graph_.producer(value);
      value = node.operands[graph_.scalar_constant(node.operands[0]) ? 1 : 0];
    }
    return false;
  }

  /// The model's own; what cannot be one node says so in consider().
  Attention whole_attention(NodeId id) const {
    const Node& node = graph_.node(id);
    Attention attention{.last = id, .parts = {id}, .query = node.operands[0], .key = node.operands[1], .value = node.operands[2], .scale = node.attrs[kScale], .mask = {}, .nothing_gives_zeros = true};
    if (node.operands.size() > 3) attention.mask = {Mask::Kind::kAdded, node.operands[3], 0};
    return attention;
  }

  void consider(NodeId told, NodeId last, Attention attention) {
    why_not_[told] = why_not(graph_.node(last), attention);
    if (not why_not_[told].empty()) return;
    attention.is_causal = is_causal(attention.mask);
    found_.push_back(std::move(attention));
  }

  std::string why_not(const Node& last, const Attention& attention) const {
    if (*last.op == op::attention and (last.attrs[kSoftcap] != 0 or uses_[last.results[1].index] + uses_[last.results[2].index] > 0 or (last.attrs.has(kSoftmaxType) and last.attrs[kSoftmaxType] != DType::kF32)))
      return "its scores are capped, or read, or of another type than f32";
    for (const NodeId part : attention.parts)
      if (matches_any(recipe_.train.keep_f32, graph_.node(part).loc.node)) return "train.keep_f32 names " + graph_.node(part).loc.node;
    for (const ValueId operand : {attention.query, attention.key, attention.value})
      if (graph_.type(operand).dtype != DType::kF32) return fmt::format("its operands are {}, and mixed precision is for f32", to_string(graph_.type(operand).dtype));
    if (attention.mask.kind == Mask::Kind::kAdded and is_trained(attention.mask.value)) return "its mask has a gradient";
    const AttentionTypes types = types_of(attention);
    if (types.query.size() != 4 or types.key.size() != 4 or types.value.size() != 4) return "its operands have not three or four axes";
    for (const std::size_t axis : {0, 1})
      if (types.query[axis] != types.key[axis] or types.query[axis] != types.value[axis]) return "query, key and value have not the same batches and heads";
    return target_.why_no_attention(types);
  }

  AttentionTypes types_of(const Attention& attention) const {
    const auto shape = [&](ValueId value, bool is_transposed) {
      Shape of = graph_.type(value).shape;
      if (is_transposed and of.size() >= 2) std::swap(of[of.size() - 1], of[of.size() - 2]);
      if (of.size() == 3) of.insert(of.begin() + 1, Dim(1));
      return of;
    };
    return {.dtype = *dtype_from_name(recipe_.train.precision),
            .query = shape(attention.query, attention.query_is_transposed),
            .key = shape(attention.key, attention.key_is_transposed),
            .value = shape(attention.value, attention.value_is_transposed),
            .has_bias = attention.mask.kind != Mask::Kind::kNone and not is_causal(attention.mask)};
  }

  bool is_causal(const Mask& mask) const {
    if (mask.kind == Mask::Kind::kNone) return false;
    const std::optional<Triangles> triangles = triangles_of(graph_, mask.value);
    if (not triangles) return false;
    if (mask.kind == Mask::Kind::kAdded) return triangles->lower == 0 and triangles->upper <= kNoWeight;
    const bool low_where_holds = mask.kind == Mask::Kind::kLowWhereHolds;
    return (triangles->lower != 0) != low_where_holds and (triangles->upper != 0) == low_where_holds;
  }

  /// Do floats lead from a weight to it?
  bool is_trained(ValueId value) const {
    std::vector<ValueId> left = {value};
    std::set<ValueId> seen;
    while (not left.empty()) {
      const ValueId next = left.back();
      left.pop_back();
      if (not is_float(graph_.type(next).dtype) or not seen.insert(next).second) continue;
      if (const Input* input = graph_.input_of(next); input != nullptr and input->role == Role::kWeight) return true;
      if (not graph_.value(next).producer.valid() or graph_.is_op(next, op::stop_gradient)) continue;
      for (const ValueId operand : graph_.producer(next).operands)
        if (operand.valid()) left.push_back(operand);
    }
    return false;
  }

  const Graph& graph_;
  const Recipe& recipe_;
  const Target& target_;
  const std::vector<std::uint32_t> uses_;
  std::map<NodeId, std::string> why_not_;  ///< of each attention: "" it is one node
  std::vector<Attention> found_;
  std::vector<std::string> lines_;
};

/// Of three axes as of four: one head.
Val with_heads(Val x) {
  if (x.rank() != 3) return x;
  return reshape(x, {x.shape()[0], 1, x.shape()[1], x.shape()[2]});
}

class Fusing {
 public:
  explicit Fusing(const std::vector<Attention>& found) {
    for (const Attention& attention : found) {
      by_last_[attention.last] = &attention;
      parts_.insert(attention.parts.begin(), attention.parts.end());
    }
  }

  bool visit(Rewriter& rewriter, NodeId id) const {
    const auto found = by_last_.find(id);
    if (found == by_last_.end()) return parts_.contains(id);
    rewriter.replace(rewriter.node(id).results[0], build(rewriter, *found->second));
    return true;
  }

 private:
  static Val build(Rewriter& rewriter, const Attention& attention) {
    const auto operand = [&](ValueId value, bool is_transposed) { return with_heads(is_transposed ? transpose_last(rewriter.mapped(value)) : rewriter.mapped(value)); };
    const Val query = operand(attention.query, attention.query_is_transposed), key = operand(attention.key, attention.key_is_transposed), value = operand(attention.value, attention.value_is_transposed);
    const Val bias = attention.is_causal ? Val() : bias_of(rewriter, attention.mask, rewriter.old().type(attention.query).shape.size());
    const Val least = bias.valid() ? op::maximum(bias, rewriter.builder().scalar(kLeastBias, bias.dtype())) : Val();
    Val y = op::fused_attention.build({query, key, value, least}, {kScale = attention.scale, kCausal = attention.is_causal});
    if (bias.valid()) y = without_nothing(bias, value, y, attention.nothing_gives_zeros);
    return reshape(y, rewriter.old().type(rewriter.node(attention.last).results[0]).shape);
  }

  /// Of four axes, which broadcast to the scores' as the mask's do to those of `axes` axes.
  static Val bias_of(Rewriter& rewriter, const Mask& mask, std::size_t axes) {
    if (mask.kind == Mask::Kind::kNone) return {};
    Val bias = rewriter.mapped(mask.value);
    if (mask.kind != Mask::Kind::kAdded) {
      const Val low = rewriter.builder().scalar(mask.low), zero = rewriter.builder().scalar(0);
      bias = mask.kind == Mask::Kind::kLowWhereHolds ? op::where(bias, low, zero) : op::where(bias, zero, low);
    }
    Shape shape = bias.shape();
    shape.insert(shape.begin(), axes - std::min(axes, shape.size()), 1);
    return with_heads(reshape(bias, std::move(shape)));
  }

  /// Queries that see nothing, as the model has them: the mean of all values, or what -inf leaves. Their statistics have lost the number of keys beside the bias, so they are kept out of the node's gradient.
  static Val without_nothing(Val bias, Val value, Val y, bool zeros) {
    Builder& builder = y.builder();
    const Val most = op::reduce_max(bias, {kAxes = Ints{3}, kKeepDims = true});
    const Val of_infinite = builder.scalar(zeros ? 0 : std::numeric_limits<double>::quiet_NaN(), y.dtype());
    const Val nothing = op::where(op::equal(most, builder.scalar(-kInfinity, bias.dtype())), of_infinite, mean_over(value, {2}));
    return op::where(op::less_equal(most, builder.scalar(kNoWeight, bias.dtype())), nothing, y);
  }

  std::map<NodeId, const Attention*> by_last_;
  std::set<NodeId> parts_;
};

bool multiplies_narrow(const Recipe& recipe) { return recipe.train.precision == "bf16" or recipe.train.precision == "f16"; }

}  // namespace

std::vector<std::string> fuse_attention(Graph& graph, const Recipe& recipe, const Target& target) {
  if (not multiplies_narrow(recipe) or std::ranges::any_of(graph.nodes(), [](const Node& node) { return *node.op == op::gradient; })) return {};
  Finder finder(graph, recipe, target);
  finder.run();
  const Fusing fusing(finder.found());
  (void)Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) { return fusing.visit(rewriter, id); });
  return finder.take_lines();
}

}  // namespace hone
