#include "backends/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "backends/cost_model.h"
#include "backends/readers.h"
#include "backends/split_reductions.h"
#include "ir/kernel/scalar_math.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"
#include "passes/passes.h"

namespace hone {

namespace {

class Recomputer {
 public:
  explicit Recomputer(const Fusion& fusion) : fusion_(fusion), graph_(fusion.graph), in_memory_(graph_.value_count()), chosen_(graph_.value_count()), wanted_(wanted_after_step(graph_)), readers_(readers_of(graph_)) {
    for (const Input& input : graph_.inputs()) in_memory_[input.value.index] = true;
    for (const Group& group : fusion.groups)
      for (const ValueId value : group.stored) in_memory_[value.index] = true;
    for (std::size_t i = 0; i < graph_.node_count(); ++i) {
      if (*graph_.node(NodeId(i)).op == op::reshape) in_memory_[graph_.node(NodeId(i)).results[0].index] = in_memory_[graph_.node(NodeId(i)).operands[0].index];
    }
  }

  /// The graph in which cheap values are worked out again, if there are any.
  std::optional<Graph> run() {
    bool any = false;
    for (const Group& group : fusion_.groups) {
      for (const ValueId value : group.stored) {
        const bool chosen = is_widened(value) or (is_late(group) ? is_kept_for_maps(value) and is_cheap(value) and has_few_loads(value) : is_kept_for_backward(value) and is_cheap(value));
        if (chosen) any = chosen_[value.index] = true;
      }
    }
    if (not any) return std::nullopt;
    Graph changed = graph_.clone();
    const Changed really = Rewriter::rewrite(changed, [this](Rewriter& rewriter, NodeId id) { return rebuild(rewriter, id); });
    (void)Rewriter::drop_unused(changed);
    return really == Changed::kYes ? std::optional(std::move(changed)) : std::nullopt;
  }

  /// What was chosen, for a person.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Node& node : graph_.nodes())
      if (std::ranges::any_of(node.results, [this](ValueId result) { return chosen_[result.index]; })) names.push_back(fmt::format("{:<18} {}", node.op->name, to_string(node.loc)));
    return names;
  }

 private:
  bool is_late(NodeId id) const { return graph_.node(id).part >= Part::kBackward; }
  bool is_late(const Group& group) const {
    return std::ranges::all_of(group.members, [this](NodeId member) { return is_late(member); });
  }
  const Group& group_of_maker(ValueId value) const { return fusion_.group(graph_.value(value).producer); }

  /// Is it what lies narrow in memory, widened? Whoever reads that can do it on the way.
  bool is_widened(ValueId value) const {
    const Node& maker = graph_.producer(value);
    if (*maker.op != op::cast or wanted_[value.index]) return false;
    const DType from = graph_.type(maker.operands[0]).dtype;
    const auto is_kernel = [this](NodeId reader) { return graph_.node(reader).op->scalar != nullptr or *graph_.node(reader).op == op::reduce_sum; };
    return is_storage_only(from) and graph_.type(value).dtype == arithmetic_type(from) and in_memory_[maker.operands[0].index] and std::ranges::all_of(readers_[value.index], is_kernel);
  }

  /// Do all readers outside of its own group run in the backward pass, as kernels?
  bool is_kept_for_backward(ValueId value) const {
    const NodeId maker = graph_.value(value).producer;
    if (wanted_[value.index]) return false;
    return std::ranges::all_of(readers_[value.index], [&](NodeId reader) {
      const bool inside = fusion_.group_of[reader.index] == fusion_.group_of[maker.index];
      return inside or (is_late(reader) and graph_.node(reader).op->scalar != nullptr);
    });
  }

  bool is_elementwise(const Group& group) const {
    return std::ranges::all_of(group.members, [this](NodeId member) { return graph_.node(member).op->scalar != nullptr; });
  }

  /// Do all readers outside of its own group run in elementwise kernels, which are others because they wait for that group's reductions?
  bool is_kept_for_maps(ValueId value) const {
    if (wanted_[value.index] or is_elementwise(group_of_maker(value))) return false;
    return std::ranges::all_of(readers_[value.index], [&](NodeId reader) {
      return &fusion_.group(reader) == &group_of_maker(value) or is_elementwise(fusion_.group(reader));
    });
  }

  /// To write a value moves as much memory as to read two.
  bool has_few_loads(ValueId value) const {
    std::set<ValueId> loads;
    add_loads(value, value, loads);
    return loads.size() <= 2;
  }
  void add_loads(ValueId value, ValueId wanted, std::set<ValueId>& loads) const {  // its depth is that of can_make
    if (value != wanted and is_small_beside(value, wanted)) return;
    if (value != wanted and is_kept(value)) return void(loads.insert(value));
    for (const ValueId operand : graph_.node(graph_.value(value).producer).operands) add_loads(operand, wanted, loads);
  }

  /// Is the value a few operations on what is in memory without it, or is as good as nothing to keep?
  bool is_cheap(ValueId value) const {
    int left = kMostRecomputation;
    return can_make(value, value, left);
  }

  /// Need it not be worked out to work out `wanted`? Not if it is in memory anyway, or as good as nothing to keep.
  bool is_at_hand(ValueId value, ValueId wanted) const { return value != wanted and (is_kept(value) or is_small_beside(value, wanted)); }
  bool is_kept(ValueId value) const { return in_memory_[value.index] and not chosen_[value.index]; }
  bool is_small_beside(ValueId value, ValueId wanted) const {
    return is_much_less(element_count(graph_.type(value).shape), element_count(graph_.type(wanted).shape));
  }

  bool can_make(ValueId value, ValueId wanted, int& left) const {  // its depth is bounded by the group's size
    if (value != wanted and chosen_[value.index]) return can_make(value, value, left);
    if (is_at_hand(value, wanted)) return true;
    const NodeId maker = graph_.value(value).producer;
    const bool same_kernel = maker.valid() and fusion_.group_of[maker.index] == fusion_.group_of[graph_.value(wanted).producer.index];
    if (not same_kernel or graph_.node(maker).op->scalar == nullptr) return false;
    const bool is_moved = is_late(maker) and not is_late(group_of_maker(wanted));  // what belongs to the backward pass is not done twice
    if (not is_moved) left -= cost_of(graph_, maker);
    if (left < 0) return false;
    return std::ranges::all_of(graph_.node(maker).operands, [&](ValueId operand) { return can_make(operand, wanted, left); });
  }

  bool rebuild(Rewriter& rewriter, NodeId id) {
    const Node& node = graph_.node(id);
    const auto is_made_again = [&](ValueId operand) { return operand.valid() and chosen_[operand.index] and makes_again(id, operand); };
    if (std::ranges::none_of(node.operands, is_made_again)) return false;
    std::vector<Val> operands;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      operands.push_back(is_made_again(node.operands[i]) ? again(rewriter, node.operands[i], {node.operands[i], for_group(id, node.operands[i])}) : rewriter.operand(node, i));
    const std::vector<Val> results = node.op->build_all(std::move(operands), node.attrs);
    for (std::size_t i = 0; i < results.size(); ++i) rewriter.replace(node.results[i], results[i]);
    return true;
  }

  bool makes_again(NodeId reader, ValueId chosen) const {
    return is_late(group_of_maker(chosen)) or is_widened(chosen) ? &fusion_.group(reader) != &group_of_maker(chosen) : is_late(reader);
  }

  /// Made again in each elementwise kernel, if that takes few loads: one copy for several kernels would have to be kept. Else once for the backward pass.
  std::uint32_t for_group(NodeId reader, ValueId chosen) const {
    return is_widened(chosen) or (is_elementwise(fusion_.group(reader)) and has_few_loads(chosen)) ? fusion_.group_of[reader.index] : kBackwardPass;
  }

  struct Wanted {
    ValueId value;
    std::uint32_t group;  ///< of the readers
  };

  /// The value made again.
  Val again(Rewriter& rewriter, ValueId value, Wanted wanted) {
    if (is_at_hand(value, wanted.value)) return rewriter.mapped(value);
    const std::pair key(value, wanted.group);
    if (const auto found = again_.find(key); found != again_.end()) return found->second;
    const Node& node = graph_.node(graph_.value(value).producer);
    std::vector<Val> operands;
    for (const ValueId operand : node.operands) operands.push_back(again(rewriter, operand, wanted));
    return again_[key] = node.op->build(std::move(operands), node.attrs);
  }

  static constexpr std::uint32_t kBackwardPass = UINT32_MAX;

  const Fusion& fusion_;
  const Graph& graph_;
  std::vector<bool> in_memory_;  // by value
  std::vector<bool> chosen_;     // by value: worked out again
  const std::vector<bool> wanted_;  // by value: after the step
  const std::vector<std::vector<NodeId>> readers_;
  std::map<std::pair<ValueId, std::uint32_t>, Val> again_;
};

}  // namespace

Fusion fuse_and_recompute(const Graph& graph, const PassChoice& passes, Exchange exchange, const Parallelism& parallelism) {
  Graph wanted = graph.clone();
  if (exchange == Exchange::kNone and drop_all_reduce(wanted) == Changed::kYes) {  // because an update can only be one kernel with the gradient if nothing stands between them
    if (passes.runs("simplify")) (void)simplify(wanted);                            // because a mean over one replica is what it has
    if (passes.runs("split")) (void)split_reductions(wanted, parallelism);          // because a sum of a sum became one sum
    if (passes.runs("dce")) (void)eliminate_dead_code(wanted);
  }
  if (not passes.runs("fuse")) return fuse(wanted, parallelism, FusionMode::kUnfused);
  Fusion fusion = fuse(wanted, parallelism);
  Recomputer recomputer(fusion);
  const std::optional<Graph> changed = recomputer.run();
  if (not changed) return fusion;
  Fusion again = fuse(*changed, parallelism);
  again.recomputed = recomputer.names();
  return again;
}

}  // namespace hone
