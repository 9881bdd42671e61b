#include "backends/fuse.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "backends/cost_model.h"
#include "backends/readers.h"
#include "backends/early_order.h"
#include "ir/kernel/fused.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace hone {

namespace {

/// Groups of nodes in an order in which they can run. D. Pearce, P. Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006, for
/// joining two groups rather than for adding an edge: only what stands between them is looked at and moved.
class OrderedGroups {
 public:
  explicit OrderedGroups(const Graph& graph)
      : graph_(graph), readers_(readers_of(graph)), group_of_(graph.node_count()), at_(graph.node_count()), behind_(graph.node_count()), transparent_(graph.node_count()), next_exchange_(graph.node_count()) {
    std::iota(group_of_.begin(), group_of_.end(), 0U);
    std::iota(at_.begin(), at_.end(), 0U);
    position_ = at_;
    std::uint32_t segment = 0;
    NodeId last_exchange;
    for (std::size_t i = 0; i < graph.node_count(); ++i) {
      const Node& node = graph.node(NodeId(i));
      members_.push_back({NodeId(i)});
      if (node.op->collective) {
        if (last_exchange.valid()) next_exchange_[last_exchange.index] = NodeId(i);
        last_exchange = NodeId(i);
      }
      segment_.push_back(segment);
      segment += node.op->binds;
    }
  }

  std::uint32_t group_of(NodeId node) const { return group_of_[node.index]; }
  const std::vector<NodeId>& members(std::uint32_t group) const { return members_[group]; }
  const std::vector<NodeId>& readers(ValueId value) const { return readers_[value.index]; }

  /// Can the two run at once? Not if something between them reads from one and is read by the other, or binds sizes. Marks what join() then moves behind them.
  bool can_join(std::uint32_t a, std::uint32_t b) {
    if (position_[a] > position_[b]) std::swap(a, b);
    return segment_[members_[a].front().index] == segment_[members_[b].front().index] and find_behind(a, b);
  }

  /// Makes one group of the two for which can_join() was just true: that of the smaller number.
  void join(std::uint32_t a, std::uint32_t b) {
    if (position_[a] > position_[b]) std::swap(a, b);
    HONE_CHECK(searched_ == std::pair(a, b), "groups are joined between which nobody has looked");
    const std::uint32_t first = position_[a], last = position_[b], joined = std::min(a, b);
    std::vector<std::uint32_t> order;
    const auto keep = [&](bool behind) {
      for (std::uint32_t p = first; p <= last; ++p)
        if (at_[p] != kNone and at_[p] != a and at_[p] != b and is_behind(at_[p]) == behind) order.push_back(at_[p]);
    };
    keep(false);
    order.push_back(joined);
    keep(true);
    order.resize(last - first + 1, kNone);
    for (std::uint32_t p = first; p <= last; ++p) {
      at_[p] = order[p - first];
      if (at_[p] != kNone) position_[at_[p]] = p;
    }
    const std::uint32_t other = joined == a ? b : a;
    std::vector<NodeId> both;
    std::ranges::merge(members_[a], members_[b], std::back_inserter(both));
    for (const NodeId node : members_[other]) group_of_[node.index] = joined;
    members_[other].clear();
    members_[joined] = std::move(both);
  }

  /// The groups in their order.
  std::vector<std::uint32_t> in_order() const {
    std::vector<std::uint32_t> groups;
    std::ranges::copy_if(at_, std::back_inserter(groups), [](std::uint32_t group) { return group != kNone; });
    return groups;
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  bool is_behind(std::uint32_t group) const { return behind_[group] == search_; }

  /// Marks what stands between a and b and needs a as behind; false if b needs one of those. A reshape of a's result is no step: b sees through it.
  bool find_behind(std::uint32_t a, std::uint32_t b) {
    ++search_;
    searched_ = {a, b};
    transparent_[a] = search_;
    std::vector<std::uint32_t> open = {a};
    while (not open.empty()) {
      const std::uint32_t group = open.back();
      open.pop_back();
      const auto needs_it = [&](NodeId reader) {
        const std::uint32_t next = group_of_[reader.index];
        if (next == b and transparent_[group] != search_) return true;
        if (next == a or position_[next] >= position_[b] or is_behind(next)) return false;
        behind_[next] = search_;
        if (transparent_[group] == search_ and *graph_.node(reader).op == op::reshape) transparent_[next] = search_;
        open.push_back(next);
        return false;
      };
      for (const NodeId node : members_[group]) {
        for (const ValueId result : graph_.node(node).results)
          if (std::ranges::any_of(readers_[result.index], needs_it)) return false;
        if (const NodeId exchange = next_exchange_[node.index]; exchange.valid() and needs_it(exchange)) return false;
      }
    }
    return true;
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;  // by value
  std::vector<std::uint32_t> group_of_;       // by node
  std::vector<std::uint32_t> at_, position_;  // group by position, position by group
  std::vector<std::vector<NodeId>> members_;  // by group
  std::vector<std::uint32_t> segment_;        // by node: how many nodes before it bind sizes
  std::vector<std::uint32_t> behind_, transparent_;  // by group: the number of the search that marked it
  std::vector<NodeId> next_exchange_;                // by node: all replicas exchange in one order, so each waits for the one before it
  std::uint32_t search_ = 0;
  std::pair<std::uint32_t, std::uint32_t> searched_;  // the groups of the last search
};

/// What one node alone would have to be worked out for again and again may be a row of the group that its reader has joined meanwhile.
constexpr int kRounds = 2;

class Grouper {
 public:
  Grouper(const Graph& graph, const Parallelism& parallelism) : graph_(graph), parallelism_(parallelism), kernels_(graph), groups_(graph), kept_(wanted_after_step(graph)), updating_(graph.node_count()) {
    const auto is_weight = [&](const Alias& alias) { return graph.input_of(alias.state)->role == Role::kWeight; };
    if (exchanges(graph) and std::ranges::any_of(graph.aliases(), is_weight)) find_updates();  // a step that only adds gradients up is never shared
  }

  Fusion run(FusionMode mode) {
    if (mode == FusionMode::kFused) {
      for (round_ = 0; round_ < kRounds; ++round_) {
        decisions_.clear();
        for (std::size_t i = 0; i < graph_.node_count(); ++i) join_with_producers(NodeId(i));
        for (std::size_t i = 0; i < graph_.node_count(); ++i) join_with_siblings(NodeId(i));
        for (std::size_t i = 0; i < graph_.node_count(); ++i) join_with_numbers(NodeId(i));
      }
    }
    return finish();
  }

 private:
  /// A reshape is no work: members see through it.
  bool can_fuse(NodeId id) {
    const Node& node = graph_.node(id);
    return *node.op != op::reshape and node.attrs[kRow].empty() and kernels_.of(id).kind != NodeKernel::Kind::kOther;
  }

  /// Does it give a single element?
  bool is_one(NodeId id) const { return element_count(graph_.type(graph_.node(id).results[0]).shape).is_constant(1); }

  /// What makes the value, seen through reshapes; invalid for an input.
  NodeId maker_of(ValueId value) const {
    if (not value.valid()) return {};
    return graph_.value(through_reshapes(graph_, value)).producer;
  }

  void join_with_producers(NodeId id) {
    if (not can_fuse(id)) return;
    std::vector<NodeId> makers;
    for (const ValueId operand : graph_.node(id).operands)
      if (const NodeId maker = maker_of(operand); maker.valid() and can_fuse(maker)) makers.push_back(maker);
    std::ranges::sort(makers, std::greater<>());
    for (const NodeId maker : makers) try_join(id, maker);
  }

  /// Reductions over the same rows of the same tensor, whatever is worked out of its elements before they are summed.
  void join_with_siblings(NodeId id) {
    if (not is_reduction(id)) return;
    const Dim count = element_count(graph_.type(graph_.node(id).operands[0]).shape);
    const std::vector<NodeId> members = groups_.members(groups_.group_of(id));
    std::vector<bool> asked(graph_.node_count());  // by group: since the last that was joined, whose verdicts others may have changed
    for (const NodeId member : members) {
      for (const ValueId operand : graph_.node(member).operands) {
        if (not operand.valid() or is_much_less(element_count(graph_.type(operand).shape), count)) continue;
        for (const NodeId reader : groups_.readers(operand)) {
          const std::uint32_t group = groups_.group_of(reader);
          if (asked[group]) continue;
          asked[group] = true;
          const NodeId reduction = reduction_of(group);
          if (reduction.valid() and try_join(id, reduction)) asked.assign(asked.size(), false);
        }
      }
    }
  }

  /// A number is worked out with other numbers that all of its readers wait for anyway: a call takes longer than it does.
  void join_with_numbers(NodeId id) {
    const std::uint32_t group = groups_.group_of(id);
    if (not is_of_numbers(group)) return;
    const std::set<std::uint32_t> readers = reader_groups(group);
    if (readers.empty()) return;
    const std::vector<NodeId> waiting = groups_.members(*readers.begin());
    for (const NodeId member : waiting) {
      for (const ValueId operand : graph_.node(member).operands) {
        const NodeId other = maker_of(operand);
        if (not other.valid() or groups_.group_of(other) == group or not is_of_numbers(groups_.group_of(other))) continue;
        if (std::ranges::includes(reader_groups(groups_.group_of(other)), readers) and try_join(id, other)) return;
      }
    }
  }

  /// Is it elementwise work on single elements alone?
  bool is_of_numbers(std::uint32_t group) {
    return std::ranges::all_of(groups_.members(group), [this](NodeId member) { return graph_.node(member).op->scalar != nullptr and is_one(member) and can_fuse(member); });
  }

  /// Those that read what it makes, reshaped or not.
  std::set<std::uint32_t> reader_groups(std::uint32_t group) const {
    std::set<std::uint32_t> found;
    std::vector<NodeId> open = groups_.members(group);
    while (not open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      for (const ValueId result : graph_.node(node).results) {
        for (const NodeId reader : groups_.readers(result)) {
          if (*graph_.node(reader).op == op::reshape) open.push_back(reader);
          else if (groups_.group_of(reader) != group) found.insert(groups_.group_of(reader));
        }
      }
    }
    return found;
  }

  bool is_reduction(NodeId id) { return can_fuse(id) and kernels_.of(id).kind == NodeKernel::Kind::kReduction and not is_product(kernels_, id); }

  /// The group's first, if there is one.
  NodeId reduction_of(std::uint32_t group) {
    const std::vector<NodeId>& members = groups_.members(group);
    const auto found = std::ranges::find_if(members, [this](NodeId member) { return is_reduction(member); });
    return found == members.end() ? NodeId() : *found;
  }

  /// True if they are of one group now, and were not before.
  bool try_join(NodeId id, NodeId maker) {
    const std::uint32_t a = groups_.group_of(id), b = groups_.group_of(maker);
    if (a == b) return false;
    std::string why_not = runs_too_early(id, maker)        ? "it belongs to the backward pass, and what it reads of the forward pass is in memory anyway, or small"
                          : is_left_to_readers(id, maker) ? "the product is in memory anyway, and who reads this can work it out from that"
                                                          : why_not_join(a, b);
    const bool joins = why_not.empty();
    if (joins) groups_.join(a, b);
    decisions_.push_back({id, maker, std::move(why_not)});
    return joins;
  }

  /// A node of the backward pass that reads what the forward pass writes down anyway, or what is as good as nothing to keep: with the forward kernel its own
  /// result would have to be kept.
  bool runs_too_early(NodeId id, NodeId maker) const {
    const std::vector<NodeId>& early = groups_.members(groups_.group_of(maker));
    const auto is_late = [this](NodeId node) { return graph_.node(node).part >= Part::kBackward; };
    if (not is_late(id) or std::ranges::any_of(early, is_late)) return false;
    const std::vector<NodeId>& late = groups_.members(groups_.group_of(id));
    const Dim count = element_count(graph_.type(graph_.node(id).results[0]).shape);
    return std::ranges::all_of(graph_.node(maker).results, [&](ValueId result) {
      return is_much_less(element_count(graph_.type(result).shape), count) or is_wanted_by_others(result, early, late);
    });
  }

  /// Is a result of `early` wanted by more than these two?
  bool is_wanted_by_others(ValueId result, std::span<const NodeId> early, std::span<const NodeId> late) const {
    return kept_[result.index] or std::ranges::any_of(groups_.readers(result), [&](NodeId reader) {
             return not std::ranges::binary_search(early, reader) and not std::ranges::binary_search(late, reader);
           });
  }

  /// An elementwise function of a product that is stored anyway: in the product's kernel it would be stored, too, so those who read it come first.
  bool is_left_to_readers(NodeId id, NodeId maker) {
    const Node& node = graph_.node(id);
    const std::vector<NodeId>& early = groups_.members(groups_.group_of(maker));
    if (round_ > 0 or node.op->scalar == nullptr or std::ranges::none_of(early, [this](NodeId member) { return is_product(kernels_, member); })) return false;
    if (not std::ranges::all_of(graph_.node(maker).results, [&](ValueId result) { return is_wanted_by_others(result, early, {&id, 1}); })) return false;
    const std::vector<NodeId>& readers = groups_.readers(node.results[0]);
    return not kept_[node.results[0].index] and not readers.empty() and
           std::ranges::all_of(readers, [this](NodeId reader) { return can_fuse(reader) and not is_product(kernels_, reader); });
  }

  std::string why_not_join(std::uint32_t a, std::uint32_t b) {
    if (not groups_.can_join(a, b)) return "something between them needs one and is needed by the other";
    std::vector<NodeId> both;
    std::ranges::merge(groups_.members(a), groups_.members(b), std::back_inserter(both));
    const auto [judged, is_new] = judged_.try_emplace(std::move(both));
    if (is_new) judged->second = why_not_one_kernel(judged->first);
    return judged->second;
  }

  std::string why_not_one_kernel(const std::vector<NodeId>& members) {
    const std::vector<ValueId> stored = wanted_results(members);
    if (stored.empty()) return "nobody reads their results";
    if (is_shared_update(members, stored)) return "replicas may share an update out among them, element by element";
    const FusedKernel fused = fused_kernel(kernels_, members, stored);
    return fused.why_not.empty() ? why_not_worth_fusing(kernels_, members, fused, parallelism_) : fused.why_not;
  }

  /// Marks what is done to each element of a weight or a state alone, and serves nothing else than its update.
  void find_updates() {
    shares_updates_ = true;
    for (std::size_t i = graph_.node_count(); i-- > 0;) {
      const Node& node = graph_.node(NodeId(i));
      const bool sees_through = *node.op == op::reshape;
      if (node.part != Part::kUpdate or (node.op->scalar == nullptr and not sees_through) or is_one(NodeId(i))) continue;
      const std::vector<NodeId>& readers = groups_.readers(node.results[0]);
      updating_[i] = (kept_[node.results[0].index] or not readers.empty()) and std::ranges::all_of(readers, [this](NodeId reader) { return updating_[reader.index]; });
    }
  }

  /// Would it be an update of which one replica could not do a part, because there is more in it than what happens to each element (backends/own_parts.h)?
  bool is_shared_update(const std::vector<NodeId>& members, const std::vector<ValueId>& stored) const {
    const auto is_updating = [this](NodeId member) { return updating_[member.index]; };
    const auto is_elementwise = [this](NodeId member) { return graph_.node(member).op->scalar != nullptr; };
    const bool all_elementwise = std::ranges::all_of(members, is_elementwise);
    if (not all_elementwise and std::ranges::any_of(members, [this](NodeId member) { return is_number_for_updates(member); })) return true;
    const auto updating = std::ranges::find_if(members, is_updating);
    if (updating == members.end()) return false;
    const Dim count = element_count(graph_.type(graph_.node(*updating).results[0]).shape);
    return not all_elementwise or std::ranges::any_of(stored, [&](ValueId value) { return not is_updating(graph_.value(value).producer) or element_count(graph_.type(value).shape) != count; });
  }

  /// One number that updates of many elements read: in a kernel that sums gradients up, a norm's, say, it would need all of them.
  bool is_number_for_updates(NodeId id) const {
    const Node& node = graph_.node(id);
    return shares_updates_ and node.part == Part::kUpdate and node.op->scalar != nullptr and is_one(id) and
           not std::ranges::all_of(groups_.readers(node.results[0]), [this](NodeId reader) { return is_one(reader); });
  }

  bool is_wanted(ValueId value, const std::vector<NodeId>& members) const {
    if (kept_[value.index]) return true;
    return std::ranges::any_of(groups_.readers(value), [&](NodeId reader) {
      if (std::ranges::binary_search(members, reader)) return false;
      const Node& node = graph_.node(reader);
      return *node.op != op::reshape or is_wanted(node.results[0], members);
    });
  }

  std::vector<ValueId> wanted_results(const std::vector<NodeId>& members) const {
    std::vector<ValueId> wanted;
    for (const NodeId member : members)
      for (const ValueId result : graph_.node(member).results)
        if (is_wanted(result, members)) wanted.push_back(result);
    return wanted;
  }

  /// A reshape stands directly behind what it shows, so that members that see through it come later.
  void append(NodeId id, std::vector<NodeId>& order, std::vector<bool>& placed) const {
    if (placed[id.index]) return;
    for (const ValueId operand : graph_.node(id).operands)
      if (operand.valid() and graph_.is_op(operand, op::reshape)) append(graph_.value(operand).producer, order, placed);
    placed[id.index] = true;
    order.push_back(id);
  }

  Fusion finish() {
    std::vector<std::vector<NodeId>> groups;
    for (const std::uint32_t group : groups_.in_order()) groups.push_back(groups_.members(group));
    groups = with_early_steps(graph_, std::move(groups));
    std::vector<NodeId> order;
    std::vector<bool> placed(graph_.node_count());
    for (const std::vector<NodeId>& group : groups)
      for (const NodeId member : group) append(member, order, placed);
    Fusion fusion;
    fusion.parallelism = parallelism_;
    const std::vector<ValueId> values = Rewriter::reordered(graph_, order, fusion.graph);
    std::vector<NodeId> nodes(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) nodes[order[i].index] = NodeId(i);
    fusion.group_of.resize(order.size());
    for (const std::vector<NodeId>& group : groups) {
      Group& made = fusion.groups.emplace_back();
      for (const ValueId value : wanted_results(group)) made.stored.push_back(values[value.index]);
      for (const NodeId member : group) {
        made.members.push_back(nodes[member.index]);
        fusion.group_of[nodes[member.index].index] = static_cast<std::uint32_t>(fusion.groups.size() - 1);
      }
      std::ranges::sort(made.members);
    }
    for (FusionDecision& decision : decisions_)
      fusion.decisions.push_back({nodes[decision.node.index], nodes[decision.producer.index], std::move(decision.why_not)});
    return fusion;
  }

  const Graph& graph_;
  const Parallelism parallelism_;
  NodeKernels kernels_;
  OrderedGroups groups_;
  std::vector<bool> kept_;      // by value: an output, or what a state becomes
  bool shares_updates_ = false;
  std::vector<bool> updating_;  // by node: serves the update of single elements, where replicas update weights
  std::map<std::vector<NodeId>, std::string> judged_;  // by members: why they are not one kernel
  std::vector<FusionDecision> decisions_;
  int round_ = 0;
};

}  // namespace

Fusion fuse(const Graph& graph, const Parallelism& parallelism, FusionMode mode) { return Grouper(graph, parallelism).run(mode); }

}  // namespace hone
