#include "backends/step_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "ir/print.h"
#include "ir/rewriter.h"
#include "runtime/plan/step_name.h"

namespace hone {

namespace {

std::uint64_t combine(std::uint64_t seed, std::uint64_t next) { return hash_of(std::as_bytes(std::span(&next, 1)), seed); }

std::uint64_t meaning_of(const Graph& graph, const Input& input) {
  const std::uint64_t named = hash_of(fmt::format("{} {} {}", to_string(input.role), input.name, to_string(graph.type(input.value))));
  return input.role == Role::kConstant and input.data ? hash_of(input.data->bytes(), hash_of(to_string(graph.type(input.value)))) : named;
}

/// By value, a number that is the same for values that are computed in the same way from the same inputs. An exchange is the identity, as it is for one replica.
std::vector<std::uint64_t> meanings(const Graph& graph) {
  std::vector<std::uint64_t> meaning(graph.value_count());
  for (const Input& input : graph.inputs()) meaning[input.value.index] = meaning_of(graph, input);
  for (const Node& node : graph.nodes()) {
    std::uint64_t hash = hash_of(node.op->name, hash_of(node.attrs.text()));
    for (const ValueId operand : node.operands) hash = combine(hash, operand.valid() ? meaning[operand.index] : 0);
    for (const auto& body : node.bodies) hash = hash_of(print(*body), hash);
    for (std::size_t k = 0; k < node.results.size(); ++k) meaning[node.results[k].index] = node.op->collective ? meaning[node.operands[k].index] : combine(hash, k);
  }
  return meaning;
}

std::string place_of(const Graph& graph, const Node& node) {
  return fmt::format("{} {} {} {}", node.op->name, to_string(node.part), to_string(node.loc), node.results.empty() ? "" : to_string(graph.type(node.results[0])));
}

/// What outputs and aliases of one name come from, and what that comes from: pairs of nodes that are of one op, as far up as that goes. Several nodes of one place, such as the last of each weight's
/// update, are told apart so.
class ByResults {
 public:
  ByResults(const Graph& graph, const Graph& scheduled, std::vector<NodeId>& same, std::vector<bool>& found) : graph_(graph), scheduled_(scheduled), same_(same), found_(found) {}

  void run() {
    for (const Output& output : scheduled_.outputs())
      if (const Output* other = graph_.find_output(output.name)) open_.emplace_back(other->value, output.value);
    for (const Alias& alias : scheduled_.aliases())
      for (const Alias& other : graph_.aliases())
        if (graph_.input_of(other.state)->name == scheduled_.input_of(alias.state)->name) open_.emplace_back(other.value, alias.value);
    while (not open_.empty()) {
      const auto [ours, theirs] = open_.back();
      open_.pop_back();
      match(ours, theirs);
    }
  }

 private:
  void match(ValueId ours, ValueId theirs) {
    if (not ours.valid() or not theirs.valid()) return;
    const NodeId our_node = graph_.value(ours).producer, their_node = scheduled_.value(theirs).producer;
    if (not our_node.valid() or not their_node.valid()) return;
    const Node &one = graph_.node(our_node), &other = scheduled_.node(their_node);
    if (one.op->collective) return open_.emplace_back(one.operands[graph_.value(ours).result], theirs), void();
    if (found_[our_node.index] or same_[their_node.index].valid() or *one.op != *other.op or one.operands.size() != other.operands.size()) return;
    same_[their_node.index] = our_node;
    found_[our_node.index] = true;
    for (std::size_t i = 0; i < one.operands.size(); ++i) open_.emplace_back(one.operands[i], other.operands[i]);
  }

  const Graph &graph_, &scheduled_;
  std::vector<NodeId>& same_;
  std::vector<bool>& found_;
  std::vector<std::pair<ValueId, ValueId>> open_;
};

/// By node of `scheduled`, the node of `graph` that it is.
std::vector<NodeId> correspondence(const Graph& graph, const Graph& scheduled) {
  const std::vector<std::uint64_t> theirs = meanings(graph), ours = meanings(scheduled);
  std::map<std::uint64_t, NodeId> by_meaning;
  std::map<std::string, std::vector<NodeId>> by_place;
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    if (node.results.empty() or node.op->collective) continue;
    by_meaning.try_emplace(theirs[node.results[0].index], NodeId(i));
  }
  std::vector<NodeId> same(scheduled.node_count());
  std::vector<bool> found(graph.node_count());
  for (std::size_t i = 0; i < scheduled.node_count(); ++i) {
    const Node& node = scheduled.node(NodeId(i));
    if (node.results.empty()) continue;
    const auto at = by_meaning.find(ours[node.results[0].index]);
    if (at != by_meaning.end()) found[(same[i] = at->second).index] = true;
  }
  ByResults(graph, scheduled, same, found).run();
  for (std::size_t i = graph.node_count(); i-- > 0;)
    if (not found[i]) by_place[place_of(graph, graph.node(NodeId(i)))].push_back(NodeId(i));
  for (std::size_t i = 0; i < scheduled.node_count(); ++i) {
    if (same[i].valid()) continue;
    const auto at = by_place.find(place_of(scheduled, scheduled.node(NodeId(i))));
    if (at == by_place.end() or at->second.empty()) continue;
    same[i] = at->second.back();
    at->second.pop_back();
  }
  return same;
}

/// A node that is not there any more, and whose readers all belong to one step, became a part of them: two sums that are one now.
void add_absorbed(const Graph& graph, StepNodes& steps) {
  constexpr std::int64_t kNone = -1, kSeveral = -2;
  std::vector<std::int64_t> step_of(graph.node_count(), kNone), readers(graph.node_count(), kNone);
  for (std::size_t step = 0; step < steps.size(); ++step)
    for (const NodeId node : steps[step]) step_of[node.index] = static_cast<std::int64_t>(step);
  for (std::size_t i = graph.node_count(); i-- > 0;) {
    const Node& node = graph.node(NodeId(i));
    if (step_of[i] == kNone and readers[i] >= 0 and *node.op != op::reshape and not node.op->collective) {
      step_of[i] = readers[i];
      steps[static_cast<std::size_t>(readers[i])].push_back(NodeId(i));
    }
    for (const ValueId operand : node.operands) {
      if (not operand.valid() or not graph.value(operand).producer.valid()) continue;
      std::int64_t& reader = readers[graph.value(operand).producer.index];
      reader = reader == kNone or reader == step_of[i] ? step_of[i] : kSeveral;
      if (step_of[i] == kNone) reader = kSeveral;
    }
  }
}

/// Nodes in an order of somebody's choice, each behind what it reads.
class Placing {
 public:
  explicit Placing(const Graph& graph) : graph_(graph), placed_(graph.node_count()) {}

  void place(NodeId id) {
    open_.push_back(id);
    while (not open_.empty()) {
      const NodeId next = open_.back();
      const std::size_t before = open_.size();
      if (not placed_[next.index])
        for (const ValueId operand : graph_.node(next).operands)
          if (operand.valid() and graph_.value(operand).producer.valid() and not placed_[graph_.value(operand).producer.index]) open_.push_back(graph_.value(operand).producer);
      if (open_.size() > before) continue;
      open_.pop_back();
      if (not placed_[next.index]) order.push_back(next);
      placed_[next.index] = true;
    }
  }

  std::vector<NodeId> order;

 private:
  const Graph& graph_;
  std::vector<bool> placed_;
  std::vector<NodeId> open_;
};

}  // namespace

std::string fused_text(const Graph& graph, const StepNodes& nodes, std::span<const plan::Step> steps) {
  Placing placing(graph);
  NodeComments comments;
  for (std::size_t step = 0; step < nodes.size(); ++step) {
    const std::size_t begin = placing.order.size();
    for (const NodeId node : nodes[step]) placing.place(node);
    comments.emplace(begin, name_of(steps[step]) + (placing.order.size() > begin or nodes[step].empty() ? "" : ", of nodes that stand above"));
  }
  if (const std::size_t begin = placing.order.size(); begin < graph.node_count()) {
    for (std::size_t i = 0; i < graph.node_count(); ++i) placing.place(NodeId(i));
    comments.emplace(begin, "read in place");
  }
  Graph ordered;
  (void)Rewriter::reordered(graph, placing.order, ordered);
  return print(ordered, comments);
}

StepNodes same_nodes(const Graph& graph, const Graph& scheduled, const StepNodes& nodes) {
  const std::vector<NodeId> same = correspondence(graph, scheduled);
  StepNodes result(nodes.size());
  for (std::size_t step = 0; step < nodes.size(); ++step)
    for (const NodeId node : nodes[step])
      if (same[node.index].valid()) result[step].push_back(same[node.index]);
  add_absorbed(graph, result);
  for (std::vector<NodeId>& list : result) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return result;
}

StepNodes nodes_again(const StepNodes& nodes, std::span<const std::optional<std::uint32_t>> step_before) {
  StepNodes result;
  for (const std::optional<std::uint32_t>& step : step_before) result.push_back(step ? nodes.at(*step) : std::vector<NodeId>{});
  return result;
}

constexpr std::string_view kAgain = ", again ";
std::string name_of_equal(std::string_view held, std::size_t before) { return before == 0 ? std::string(held) : fmt::format("{}{}{}", held, kAgain, before); }
std::string_view held_as(std::string_view name) { return name.substr(0, name.rfind(kAgain)); }

std::string stage_for(std::string_view stage, std::string_view target) { return fmt::format("{}@{}", stage, target); }

std::string step_nodes_stage(std::string_view entry) { return std::string(entry) + ".nodes"; }

std::string to_text(const StepNodes& nodes) {
  std::string text = "[";
  for (const std::vector<NodeId>& step : nodes) {
    text += text.size() == 1 ? "[" : ",\n [";
    for (std::size_t i = 0; i < step.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ",", step[i].index);
    text += "]";
  }
  return text + "]\n";
}

}  // namespace hone
