#include "passes/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/patterns.h"
#include "base/text.h"
#include "ir/ops/ops.h"
#include "ir/ops/products.h"

namespace hone {

namespace {

// ---- The table: what runs in which type, and why.

/// Products whose factors are rounded: their cost is that of their factors' width, and an error of 2^-9 (f16: 2^-12) in each of many terms averages out. Sums are f32.
struct NarrowOp {
  const OpDef* op;
  std::string_view why;
  std::size_t factors = 2;         ///< so many operands, from the first, are rounded
  bool may_be_wide = true;         ///< can it give its sums in f32?
  bool only_within = false;        ///< its tensors stay f32, and its factors are rounded to TF32: who makes the node says so (passes/fuse_recurrences.h)
};
constexpr NarrowOp kNarrowOps[] = {
    {&op::matmul, "its terms' errors average out, and its sum is taken in f32"},
    {&op::conv, "its terms' errors average out, and its sum is taken in f32"},
    {&op::conv_input_grad, "its terms' errors average out, and its sum is taken in f32"},
    {&op::conv_weight_grad, "its terms' errors average out, and its sum is taken in f32"},
    {&op::fused_attention, "its products' errors average out; its softmax is f32", 3, false},
    {&op::fused_attention_grad, "its products' errors average out; its weights are f32 until they are multiplied", 5, false},
    {&op::recurrent, "its products' errors average out; its states, to which each step adds, are f32", 0, false, true},
    {&op::recurrent_grad, "its products' errors average out; its sums over steps are f32", 0, false, true},
};

/// Why the rest is not: the first row that fits.
struct WideKind {
  bool (*fits)(const Node&);
  std::string_view why;
};
bool is_one_of(const Node& node, std::initializer_list<const OpDef*> ops) {
  return std::ranges::any_of(ops, [&](const OpDef* op) { return *op == *node.op; });
}
constexpr WideKind kWideKinds[] = {
    {[](const Node& node) { return node.part == Part::kUpdate; }, "updates are smaller than a narrow weight's last place"},
    {[](const Node& node) { return node.part == Part::kLoss; }, "the loss is a sum over the batch of small differences"},
    {[](const Node& node) { return is_one_of(node, {&op::reduce_sum, &op::reduce_prod, &op::reduce_max, &op::reduce_min}); },
     "norms, softmax and statistics add up many terms of one operand"},
    {[](const Node& node) { return node.op->scalar != nullptr; }, "one operation an element costs its memory, not its arithmetic: it reads what is narrow and rounds where a product reads it"},
    {[](const Node&) { return true; }, "it has the type of what it moves, or no narrow form"},
};

/// Nodes that move elements: rounding before and after is the same. Rounded before, copies are half as large.
constexpr const OpDef* kMoves[] = {&op::reshape, &op::transpose, &op::broadcast_to, &op::concat};
/// The same, but they leave elements out: what is rounded for them alone is better rounded behind them.
constexpr const OpDef* kPartMoves[] = {&op::slice};

bool is_among(const OpDef& op, std::span<const OpDef* const> ops) {
  return std::ranges::any_of(ops, [&](const OpDef* one) { return *one == op; });
}

const NarrowOp* narrow_op(const OpDef& op) {
  const auto* const found = std::ranges::find_if(kNarrowOps, [&](const NarrowOp& row) { return *row.op == op; });
  return found == std::end(kNarrowOps) ? nullptr : found;
}

/// TF32 is no type of tensors: factors are rounded within the product, by devices that can.
bool rounds_within(const Recipe& recipe) { return recipe.train.precision == "tf32"; }
DType narrow_type(const Recipe& recipe) { return *dtype_from_name(recipe.train.precision); }
bool is_narrow(const Recipe& recipe) { return recipe.train.precision != "f32"; }

/// Why a product of this graph keeps its type; "" if it becomes narrow.
std::string why_kept(const Graph& graph, const Node& node, const Recipe& recipe) {
  const DType dtype = graph.type(node.operands[0]).dtype;
  if (dtype != DType::kF32) return fmt::format("its operands are {}: mixed precision is for f32", to_string(dtype));
  if (node.part == Part::kUpdate) return "it belongs to the optimizer, which runs in its weights' type";
  if (matches_any(recipe.train.keep_f32, node.loc.node)) return "train.keep_f32 names it";
  return "";
}

// ---- The pass.

/// What of a graph becomes narrow, before anything is built.
class Plan {
 public:
  Plan(const Graph& graph, const Recipe& recipe, const Target* target) : graph_(graph), target_(target), uses_(count_uses(graph)), chosen_(graph.node_count()), read_narrow_(graph.value_count()), wide_(graph.value_count()), compared_(graph.value_count()) {
    for (std::size_t i = 0; i < graph.node_count(); ++i) {
      const Node& node = graph.node(NodeId(i));
      const NarrowOp* const row = narrow_op(*node.op);
      chosen_[i] = row != nullptr and not row->only_within and why_kept(graph, node, recipe).empty();
      any_ = any_ or chosen_[i];
    }
    for (const Output& output : graph.outputs()) wide_[output.value.index] = true;
    for (const Alias& alias : graph.aliases()) wide_[alias.value.index] = true;
    for (std::size_t i = graph.node_count(); i-- > 0;) look_at_readers_of(graph.node(NodeId(i)), chosen_[i]);
  }

  bool any() const { return any_; }
  bool is_chosen(NodeId node) const { return chosen_[node.index]; }
  /// Is the product better stored as f32? Where it is added up with others, or leaves the step.
  bool is_wide(ValueId product) const { return wide_[product.index]; }
  /// Can its sums be f32? Where they cannot, those that are added up with others are rounded before, as PyTorch's autocast rounds all of them.
  bool gives_wide(const Node& product) const { return narrow_op(*product.op)->may_be_wide and (target_ == nullptr or target_->gives_wide_sums(*product.op)); }
  /// Is it a product and its bias? They are rounded as one, as PyTorch's autocast has them: rounded before, an activation's argument may change its sign where the two nearly cancel, and the gradient with it.
  bool is_rounded_sum(const Node& node) const { return product_of_biased(node).valid() and not wide_[node.results[0].index]; }
  /// Does the backward pass read what is kept for a product? Then once: as that product does. Equality is asked of what the forward pass saw, also behind moves: rounded, no element may be equal to the largest of them, and a gradient shared among none is NaN.
  bool reads_kept(const Node& node, ValueId operand) const {
    if (compares(node)) return false;
    if (node.part != Part::kBackward or not operand.valid() or not read_narrow_[operand.index] or not graph_.value(operand).producer.valid()) return false;
    return graph_.producer(operand).part == Part::kForward;
  }

 private:
  /// Nodes come last to first, so what is said of results is known.
  void look_at_readers_of(const Node& node, bool chosen) {
    const bool leaves = node.op->collective or node.part == Part::kLoss or node.part == Part::kAllReduce or node.part == Part::kUpdate;
    const bool moves = is_among(*node.op, kMoves);
    const bool adds = moves or is_among(*node.op, kPartMoves) or is_one_of(node, {&op::add, &op::reduce_sum, &op::cast});
    const bool wide = leaves or (adds and std::ranges::any_of(node.results, [this](ValueId result) { return wide_[result.index]; }));
    const bool compared = compares(node);
    const std::size_t factors = chosen ? narrow_op(*node.op)->factors : 0;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId operand = node.operands[i];
      if (not operand.valid()) continue;
      if (wide) wide_[operand.index] = true;
      if (compared) compared_[operand.index] = true;
      if (i < factors or (moves and read_narrow_[node.results[0].index])) read_narrow_[operand.index] = true;
    }
    if (const ValueId product = product_of_biased(node); product.valid()) wide_[product.index] = true;
  }

  /// Is it an equality, or does it move what one asks about?
  bool compares(const Node& node) const { return *node.op == op::equal or (is_among(*node.op, kMoves) and compared_[node.results[0].index]); }

  /// The product to which the node adds a bias, where nobody else reads it.
  ValueId product_of_biased(const Node& node) const {
    if (*node.op != op::add) return {};
    for (const std::size_t i : {0, 1}) {
      const ValueId product = node.operands[i];
      const NodeId maker = graph_.value(product).producer;
      if (not maker.valid() or not chosen_[maker.index] or uses_[product.index] != 1 or graph_.type(product) != graph_.type(node.results[0])) continue;
      if (gives_wide(graph_.node(maker)) and is_bias(node.operands[1 - i], graph_.type(product))) return product;
    }
    return {};
  }

  /// A weight, perhaps moved, that is broadcast. (A mask is none: its smallest number, rounded, would be infinite.)
  bool is_bias(ValueId value, const Type& sum) const {
    if (graph_.type(value) == sum) return false;
    for (NodeId maker = graph_.value(value).producer; maker.valid(); maker = graph_.value(value).producer) {
      if (not is_among(*graph_.node(maker).op, kMoves) or graph_.node(maker).operands.size() != 1) return false;
      value = graph_.node(maker).operands[0];
    }
    return std::ranges::any_of(graph_.inputs(), [&](const Input& input) { return input.value == value and input.role == Role::kWeight; });
  }

  const Graph& graph_;
  const Target* target_;             // or null
  std::vector<std::uint32_t> uses_;  // by value
  std::vector<bool> chosen_;         // by node: its operands are rounded
  std::vector<bool> read_narrow_;    // by value: a product reads it, perhaps moved
  std::vector<bool> wide_;           // by value: it is added up, or leaves the step
  std::vector<bool> compared_;       // by value: an equality asks about it, perhaps moved
  bool any_ = false;                 // is any node chosen?
};

class Lowering {
 public:
  Lowering(const Plan& plan, DType narrow) : plan_(plan), narrow_(narrow) {}

  bool visit(Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (plan_.is_chosen(id)) return build_product(rewriter, node), true;
    if (moves_widened(node)) return give(rewriter, node.results[0], moved(node)), true;
    if (plan_.is_rounded_sum(node)) return give(rewriter, node.results[0], cast(op::add(rewriter.mapped(node.operands[0]), rewriter.mapped(node.operands[1])), narrow_)), true;
    if (std::ranges::none_of(node.operands, [&](ValueId operand) { return plan_.reads_kept(node, operand); }) or node.op->region != Region::kNone) return false;
    std::vector<Val> operands;
    for (const ValueId operand : node.operands)
      operands.push_back(plan_.reads_kept(node, operand) and is_f32(rewriter, operand) ? cast(rounded(rewriter, operand), DType::kF32) : rewriter.mapped(operand));
    const std::vector<Val> results = node.op->build_all(std::move(operands), node.attrs);
    for (std::size_t i = 0; i < results.size(); ++i) rewriter.replace(node.results[i], results[i]);
    return true;
  }

 private:
  static bool is_f32(Rewriter& rewriter, ValueId value) { return rewriter.old().type(value).dtype == DType::kF32; }

  void build_product(Rewriter& rewriter, const Node& node) {
    const NarrowOp& row = *narrow_op(*node.op);
    std::vector<Val> operands;
    for (std::size_t i = 0; i < node.operands.size(); ++i) operands.push_back(i < row.factors ? rounded(rewriter, node.operands[i]) : rewriter.mapped(node.operands[i]));
    Attrs attrs = node.attrs;
    attrs.set(kTo = plan_.gives_wide(node) and plan_.is_wide(node.results[0]) ? DType::kF32 : narrow_);
    const std::vector<Val> made = node.op->build_all(std::move(operands), std::move(attrs));
    for (std::size_t i = 0; i < made.size(); ++i)
      if (made[i].dtype() == narrow_) give(rewriter, node.results[i], made[i]);
      else rewriter.replace(node.results[i], made[i]);
  }

  /// `narrow` is what the result is: who reads that as f32 widens it.
  void give(Rewriter& rewriter, ValueId result, Val narrow) {
    rounded_[result] = narrow;
    widened_.insert(result);
    rewriter.replace(result, cast(narrow, DType::kF32));
  }

  /// Does the node move nothing but what lies narrow in memory?
  bool moves_widened(const Node& node) const {
    if (not is_among(*node.op, kMoves) and not is_among(*node.op, kPartMoves)) return false;
    return std::ranges::all_of(node.operands, [this](ValueId operand) { return widened_.contains(operand); });
  }

  /// The value in the narrow type; made once, as if by who made the value, so that it is one kernel with it.
  Val rounded(Rewriter& rewriter, ValueId value) {
    std::vector<ValueId> wanted = {value};  // the last one first, and before that what it is a move of
    while (not wanted.empty()) {
      const ValueId next = wanted.back();
      const NodeId maker = rewriter.old().value(next).producer;
      const bool is_moved = maker.valid() and is_among(*rewriter.node(maker).op, kMoves);
      const std::size_t before = wanted.size();
      if (is_moved and not rounded_.contains(next))
        std::ranges::copy_if(rewriter.node(maker).operands, std::back_inserter(wanted), [this](ValueId operand) { return not rounded_.contains(operand); });
      if (wanted.size() > before) continue;
      wanted.pop_back();
      if (rounded_.contains(next)) continue;
      const Builder::Scope scope(rewriter.builder(), maker.valid() ? rewriter.node(maker).loc : rewriter.builder().loc(), maker.valid() ? rewriter.node(maker).part : Part::kForward);
      rounded_[next] = is_moved ? moved(rewriter.node(maker)) : cast(rewriter.mapped(next), narrow_);
    }
    return rounded_.at(value);
  }

  /// The move, of what is narrow.
  Val moved(const Node& node) const {
    std::vector<Val> operands;
    for (const ValueId operand : node.operands) operands.push_back(rounded_.at(operand));
    return node.op->build(std::move(operands), node.attrs);
  }

  const Plan& plan_;
  const DType narrow_;
  std::map<ValueId, Val> rounded_;  ///< by value of the old graph
  std::set<ValueId> widened_;       ///< those that are nothing but their narrow one, widened
};

std::vector<std::string> node_names(const Graph& graph) {
  std::set<std::string> names;
  std::vector<const Graph*> left = {&graph};
  while (not left.empty()) {
    const Graph& one = *left.back();
    left.pop_back();
    for (const Node& node : one.nodes()) {
      if (not node.loc.node.empty()) names.insert(node.loc.node);
      for (const auto& body : node.bodies) left.push_back(body.get());
    }
  }
  return {names.begin(), names.end()};
}

/// Calls see(graph, node) for every product, bodies included.
template <typename See>
void for_each_product(const Graph& graph, const See& see) {
  std::vector<const Graph*> left = {&graph};
  while (not left.empty()) {
    const Graph& one = *left.back();
    left.pop_back();
    for (const Node& node : one.nodes()) {
      if (narrow_op(*node.op) != nullptr) see(one, node);
      for (const auto& body : node.bodies) left.push_back(body.get());
    }
  }
}

bool runs_narrow(const Graph& graph, const Node& node, const Recipe& recipe) {
  return rounds_within(recipe) or narrow_op(*node.op)->only_within ? node.attrs[kTf32] : graph.type(node.operands[0]).dtype == narrow_type(recipe) and node.attrs.has(kTo);
}

/// Marks the products whose factors devices may round.
Changed allow_tf32(Graph& graph, const Recipe& recipe) {
  return Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    const NarrowOp* const row = narrow_op(*node.op);
    if (row == nullptr or row->only_within or node.attrs[kTf32] or not why_kept(rewriter.old(), node, recipe).empty()) return false;
    Attrs attrs = node.attrs;
    attrs.set(kTf32 = true);
    rewriter.replace(node.results[0], node.op->build({rewriter.mapped(node.operands[0]), rewriter.mapped(node.operands[1])}, std::move(attrs)));
    return true;
  });
}

}  // namespace

Changed lower_precision(Graph& graph, const Recipe& recipe, const Target* target) {
  if (not is_narrow(recipe)) return Changed::kNo;
  const Changed inside = Rewriter::in_bodies(graph, [&](Graph& body) { return lower_precision(body, recipe, target); });
  if (rounds_within(recipe)) return inside | allow_tf32(graph, recipe);
  const Plan plan(graph, recipe, target);
  if (not plan.any()) return inside;
  Lowering lowering(plan, narrow_type(recipe));
  return inside | Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) { return lowering.visit(rewriter, id); });
}

void check_keep_f32(const Graph& imported, const Recipe& recipe) {
  if (recipe.train.keep_f32.empty()) return;
  const std::vector<std::string> names = node_names(imported);
  for (const std::string& pattern : recipe.train.keep_f32)
    if (std::ranges::none_of(names, [&](const std::string& name) { return matches_name(pattern, name); }))
      refuse_pattern("train.keep_f32", pattern, "node of the model", "nodes", names);
}

void require_narrow(const Graph& lowered, const Recipe& recipe) {
  if (not is_narrow(recipe)) return;
  bool any = false;
  std::vector<std::string> reasons;
  for_each_product(lowered, [&](const Graph& graph, const Node& node) {
    any = any or runs_narrow(graph, node, recipe);
    reasons.push_back(fmt::format("{} {}: {}", node.op->name, to_string(node.loc), why_kept(graph, node, recipe)));
  });
  if (any) return;
  constexpr std::size_t kShown = 5;
  if (reasons.size() > kShown) reasons.resize(kShown);
  if (reasons.empty()) reasons.emplace_back("it has no matrix product and no convolution");
  reasons.emplace_back("leave train.precision out, which means \"f32\": every node then runs in the model's own types");
  throw Error(Code::kRecipeModel, fmt::format("train.precision = {}: nothing of the model can run in {}", quoted(recipe.train.precision), recipe.train.precision), {}, std::move(reasons));
}

std::vector<std::string> narrow_nodes(const Graph& lowered, const Recipe& recipe) {
  std::vector<std::string> names;
  for_each_product(lowered, [&](const Graph& graph, const Node& node) {
    if (runs_narrow(graph, node, recipe) and not node.loc.node.empty() and std::ranges::find(names, node.loc.node) == names.end()) names.push_back(node.loc.node);
  });
  return names;
}

std::vector<std::string> explain_precision(const Graph& lowered, const Recipe& recipe) {
  std::vector<std::string> lines;
  if (not is_narrow(recipe)) return lines;
  for_each_product(lowered, [&](const Graph& graph, const Node& node) {
    const std::string_view result = to_string(graph.type(node.results[0]).dtype);
    const NarrowOp& row = *narrow_op(*node.op);
    const bool within = rounds_within(recipe) or row.only_within;
    const std::string what = runs_narrow(graph, node, recipe) ? fmt::format("{} operands{}, {} result: {}", within ? "tf32" : recipe.train.precision, within ? " where the device multiplies those faster" : "", result, row.why)
                                                              : fmt::format("{}: {}", result, why_kept(graph, node, recipe));
    lines.push_back(fmt::format("{:<18} {} {}", node.op->name, what, to_string(node.loc)));
  });
  std::map<std::string_view, std::size_t> others;
  for (const Node& node : lowered.nodes())
    if (narrow_op(*node.op) == nullptr) ++others[std::ranges::find_if(kWideKinds, [&](const WideKind& kind) { return kind.fits(node); })->why];
  for (const auto& [why, count] : others) lines.push_back(fmt::format("{} other nodes compute in their own type: {}", count, why));
  return lines;
}

}  // namespace hone
