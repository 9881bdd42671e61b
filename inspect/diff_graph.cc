// Two graphs, node by node.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "base/text.h"
#include "inspect/diff.h"
#include "ir/op.h"
#include "ir/print.h"

namespace hone {

namespace {

using Change = Difference::Change;

/// As the user knows it: by the model's name, or, in a .hir, by its first result.
std::string name_of(const Graph& graph, const Node& node) {
  if (not node.loc.node.empty()) return node.loc.node;
  return node.results.empty() ? "" : graph.value(node.results[0]).name;
}

std::uint64_t combine(std::uint64_t seed, std::uint64_t next) { return hash_of(std::as_bytes(std::span(&next, 1)), seed); }

std::string bodies_text(const Node& node) {
  std::string text;
  for (const auto& body : node.bodies) text += print(*body);
  return text;
}

std::string what_it_is(const Node& node) { return std::string(node.op->name) + node.attrs.text(); }

std::string constant_text(const Graph& graph, const Input& input) {
  if (input.data and input.data->element_count() == 1) return element_text(*input.data, 0);
  return fmt::format("{} {:016x}", to_string(graph.type(input.value)), input.data ? hash_of(input.data->bytes()) : 0);
}

/// An input is its name; a constant, which nobody named, what it holds.
std::string input_key(const Graph& graph, const Input& input) { return input.role == Role::kConstant ? constant_text(graph, input) : input.name; }

/// By node: the same for what computes the same from inputs of the same names.
std::vector<std::uint64_t> meanings(const Graph& graph) {
  std::vector<std::uint64_t> of_value(graph.value_count()), of_node(graph.node_count());
  for (const Input& input : graph.inputs()) of_value[input.value.index] = hash_of(input_key(graph, input));
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    std::uint64_t hash = hash_of(bodies_text(node), hash_of(what_it_is(node)));
    for (const ValueId operand : node.operands) hash = combine(hash, operand.valid() ? of_value[operand.index] : 0);
    of_node[i] = hash;
    for (std::size_t k = 0; k < node.results.size(); ++k) of_value[node.results[k].index] = combine(hash, k);
  }
  return of_node;
}

/// Which nodes of two graphs are the same one. Each is matched once: first by name and op, then what is left of a name, then by what it computes.
class Matching {
 public:
  Matching(const Graph& a, const Graph& b) : a_(a), b_(b), in_b_(a.node_count()), in_a_(b.node_count()) {
    match([](const Graph& graph, std::size_t i) { return fmt::format("{}\n{}", graph.node(NodeId(i)).op->name, name_of(graph, graph.node(NodeId(i)))); });
    match([](const Graph& graph, std::size_t i) { return name_of(graph, graph.node(NodeId(i))); });
    const std::vector<std::uint64_t> meaning_a = meanings(a), meaning_b = meanings(b);
    match([&](const Graph& graph, std::size_t i) { return std::to_string((&graph == &a_ ? meaning_a : meaning_b)[i]); });
  }
  NodeId in_b(std::size_t node_of_a) const { return in_b_[node_of_a]; }
  NodeId in_a(std::size_t node_of_b) const { return in_a_[node_of_b]; }

 private:
  /// The k-th free one with a key is the k-th with that key. An empty key is none.
  template <typename Key>
  void match(const Key& key) {
    std::map<std::string, std::vector<std::uint32_t>> free;
    for (std::size_t i = b_.node_count(); i-- > 0;)
      if (not in_a_[i].valid()) free[key(b_, i)].push_back(static_cast<std::uint32_t>(i));
    for (std::size_t i = 0; i < a_.node_count(); ++i) {
      if (in_b_[i].valid()) continue;
      const std::string wanted = key(a_, i);
      const auto found = wanted.empty() ? free.end() : free.find(wanted);
      if (found == free.end() or found->second.empty()) continue;
      in_b_[i] = NodeId(found->second.back());
      in_a_[found->second.back()] = NodeId(i);
      found->second.pop_back();
    }
  }

  const Graph &a_, &b_;
  std::vector<NodeId> in_b_, in_a_;
};

class GraphDifference {
 public:
  GraphDifference(const Graph& a, const Graph& b, std::vector<Difference>& out) : a_(a), b_(b), matching_(a, b), out_(out) {}

  void run() {
    compare_interface();
    compare_outputs();
    compare_states();
    for (std::size_t i = 0; i < a_.node_count(); ++i) {
      const Node& before = a_.node(NodeId(i));
      if (matching_.in_b(i).valid()) compare_nodes(before, b_.node(matching_.in_b(i)));
      else out_.push_back({.kind = "node", .change = Change::kRemoved, .name = name_of(a_, before), .before = what_it_is(before), .after = ""});
    }
    for (std::size_t i = 0; i < b_.node_count(); ++i)
      if (not matching_.in_a(i).valid()) out_.push_back({.kind = "node", .change = Change::kAdded, .name = name_of(b_, b_.node(NodeId(i))), .before = "", .after = what_it_is(b_.node(NodeId(i)))});
  }

 private:
  void compare_interface() {
    const auto inputs = [](const Graph& graph) {
      std::map<std::string, std::string> texts;
      for (const Input& input : graph.inputs())
        if (input.role == Role::kInput) texts[input.name] = to_string(graph.type(input.value));
      return texts;
    };
    const auto outputs = [](const Graph& graph) {
      std::map<std::string, std::string> texts;
      for (const Output& output : graph.outputs()) texts[output.name] = "";
      return texts;
    };
    compare_names("input", inputs(a_), inputs(b_));
    compare_names("output", outputs(a_), outputs(b_));
  }

  /// Outputs of one name that are not the same value.
  void compare_outputs() {
    for (const Output& before : a_.outputs())
      if (const Output* after = b_.find_output(before.name); after != nullptr) compare_values("output", before.name, before.value, after->value);
  }

  /// What states and weights become.
  void compare_states() {
    const auto becomes = [](const Graph& graph) {
      std::map<std::string, ValueId> values;
      for (const Alias& alias : graph.aliases()) values[graph.input_of(alias.state)->name] = alias.value;
      return values;
    };
    const std::map<std::string, ValueId> before = becomes(a_), after = becomes(b_);
    for (const auto& [name, value] : before) {
      const auto found = after.find(name);
      compare_values("update", name, value, found == after.end() ? ValueId() : found->second);
    }
    for (const auto& [name, value] : after)
      if (not before.contains(name)) compare_values("update", name, ValueId(), value);
  }

  void compare_values(const char* kind, const std::string& name, ValueId before, ValueId after) {
    if (not is_same_value(before, after)) out_.push_back({.kind = kind, .name = name, .before = value_text(a_, before), .after = value_text(b_, after)});
  }

  void compare_names(const char* kind, const std::map<std::string, std::string>& before, const std::map<std::string, std::string>& after) {
    for (const auto& [name, type] : before) {
      const auto found = after.find(name);
      if (found == after.end()) out_.push_back({.kind = kind, .change = Change::kRemoved, .name = name, .before = type, .after = ""});
      else if (found->second != type) out_.push_back({.kind = kind, .name = name, .before = type, .after = found->second});
    }
    for (const auto& [name, type] : after)
      if (not before.contains(name)) out_.push_back({.kind = kind, .change = Change::kAdded, .name = name, .before = "", .after = type});
  }

  /// Operands are the same when their makers are; their types may differ, which is then those makers' difference.
  void compare_nodes(const Node& before, const Node& after) {
    const std::string what_before = what_it_is(before), what_after = what_it_is(after);
    std::string detail;
    const auto note = [&](const std::string& text) { detail += (detail.empty() ? "" : "; ") + text; };
    for (std::size_t i = 0; i < std::max(before.operands.size(), after.operands.size()); ++i) {
      const ValueId from = i < before.operands.size() ? before.operands[i] : ValueId(), to = i < after.operands.size() ? after.operands[i] : ValueId();
      if (not is_same_value(from, to)) note(fmt::format("operand {} was {}, and is {}", i, value_text(a_, from), value_text(b_, to)));
    }
    if (bodies_text(before) != bodies_text(after)) note("its body differs");
    if (what_before == what_after and detail.empty()) return;
    const bool is_op_changed = what_before != what_after;
    out_.push_back({.kind = "node", .name = name_of(a_, before), .before = is_op_changed ? what_before : "", .after = is_op_changed ? what_after : "", .detail = detail});
  }

  bool is_same_value(ValueId from, ValueId to) const {
    if (from.valid() != to.valid()) return false;
    if (not from.valid()) return true;
    const Input *input_a = a_.input_of(from), *input_b = b_.input_of(to);
    if ((input_a == nullptr) != (input_b == nullptr)) return false;
    if (input_a != nullptr) return input_key(a_, *input_a) == input_key(b_, *input_b);
    return a_.value(from).result == b_.value(to).result and matching_.in_b(a_.value(from).producer.index) == b_.value(to).producer;
  }

  static std::string value_text(const Graph& graph, ValueId value) {
    if (not value.valid()) return "absent";
    if (const Input* input = graph.input_of(value)) return input->role == Role::kConstant ? "the constant " + constant_text(graph, *input) : quoted(input->name);
    return "a result of " + quoted(name_of(graph, graph.producer(value)));
  }

  const Graph &a_, &b_;
  const Matching matching_;
  std::vector<Difference>& out_;
};

}  // namespace

void compare_graphs(const Graph& a, const Graph& b, std::vector<Difference>& out) { GraphDifference(a, b, out).run(); }

}  // namespace hone
