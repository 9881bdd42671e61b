// Dropout that the recipe asks for, and dropout that is taken away.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/patterns.h"
#include "base/text.h"
#include "ir/ops/ops.h"
#include "ir/ops/random.h"
#include "passes/passes.h"

namespace hone {

namespace {

using Names = std::set<std::string, std::less<>>;

Names names_of(const Graph& graph) {
  Names names;
  for (const Node& node : graph.nodes()) names.insert(node.loc.node);
  return names;
}

/// Results of nodes of the file, which may have become several nodes of ours: floats that others read, or the first one if nobody does. What depends on nothing that
/// is fed (slices of weights, initial states) is not meant by a pattern such as "encoder*".
class NodeResults {
 public:
  /// `around`: names of nodes in the graphs around this one. Their bodies are their own affair: a recurrent layer's cell has the layer's name.
  NodeResults(const Graph& graph, Names around) : graph_(graph), around_(std::move(around)), by_own_(graph.value_count()), by_others_(graph.value_count()), fed_(graph.value_count()) {
    for (const Input& input : graph.inputs()) fed_[input.value.index] = input.role == Role::kInput;
    for (const Output& output : graph.outputs()) by_others_[output.value.index] = true;
    for (const Node& node : graph.nodes()) {
      bool fed = false;
      for (const ValueId operand : node.operands) {
        fed = fed or (operand.valid() and fed_[operand.index]);
        if (not operand.valid() or not graph.value(operand).producer.valid()) continue;
        (graph.producer(operand).loc.node == node.loc.node ? by_own_ : by_others_)[operand.index] = true;
      }
      for (const ValueId result : node.results) fed_[result.index] = fed;
    }
  }
  /// Is result `i` of the node one of the file's?
  bool has(const Node& node, std::size_t i) const {
    const ValueId value = node.results[i];
    if (node.loc.node.empty() or around_.contains(node.loc.node) or not fed_[value.index] or not is_float(graph_.type(value).dtype)) return false;
    return by_others_[value.index] or (i == 0 and not by_own_[value.index]);
  }
  bool has_any(const Node& node) const {
    for (std::size_t i = 0; i < node.results.size(); ++i)
      if (has(node, i)) return true;
    return false;
  }
  /// The names around the bodies of this graph's nodes.
  Names around_bodies() const {
    Names names = names_of(graph_);
    names.insert(around_.begin(), around_.end());
    return names;
  }

 private:
  const Graph& graph_;
  Names around_;
  std::vector<bool> by_own_, by_others_;  // by value: is it read by nodes of its producer's name, and by others?
  std::vector<bool> fed_;                 // by value: does it depend on what is fed?
};

/// Calls use(graph, node, results) for every node with a result of the file's, bodies included.
template <typename Use>
void for_each_node(const Graph& graph, const Names& around, const Use& use) {
  const NodeResults results(graph, around);
  for (const Node& node : graph.nodes()) {
    if (results.has_any(node)) use(graph, node, results);
    for (const auto& body : node.bodies) for_each_node(*body, results.around_bodies(), use);  // depth is limited by import and parser
  }
}

bool is_chosen(const Recipe& recipe, std::string_view name) { return matches_any(recipe.model.dropout_after, name); }

/// Throws Error kRecipeModel for a pattern that is no node's.
void check_patterns(const Recipe& recipe, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 20;
  for (const std::string& pattern : recipe.model.dropout_after) {
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return matches_name(pattern, name); })) continue;
    std::vector<std::string> notes;
    if (std::string hint = did_you_mean(pattern, names); not hint.empty()) notes.push_back(std::move(hint));
    const std::size_t more = names.size() - std::min(names.size(), kShown);
    notes.push_back(fmt::format("the nodes that make floats of what is fed: {}{}", quoted_list(std::span(names).first(names.size() - more)), more > 0 ? fmt::format(" and {} more", more) : ""));
    notes.emplace_back("a Dropout that was exported for inference does nothing and is no node any more: name the one before it");
    throw Error(Code::kRecipeModel, fmt::format("model.dropout.after: {} matches no node that makes floats of what is fed", quoted(pattern)), {}, std::move(notes));
  }
}

Changed insert_into(Graph& graph, const Names& around, const Recipe& recipe) {
  const NodeResults results(graph, around);
  Changed changed = Rewriter::in_bodies(graph, [&](Graph& body) { return insert_into(body, results.around_bodies(), recipe); });
  std::int64_t stream = next_stream(graph);
  return changed | Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (not results.has_any(node) or not is_chosen(recipe, node.loc.node)) return false;
    Builder& builder = rewriter.builder();
    std::vector<Val> operands;
    for (const ValueId operand : node.operands) operands.push_back(rewriter.mapped(operand));
    std::vector<std::unique_ptr<Graph>> bodies;
    for (const auto& body : node.bodies) bodies.push_back(std::make_unique<Graph>(body->clone()));
    std::vector<Val> made = builder.add(*node.op, operands, node.attrs, std::move(bodies));
    const Builder::Scope scope(builder, derived_from(node.loc, "dropout"), node.part);
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (results.has(node, i)) made[i] = op::dropout(made[i], builder.scalar(recipe.model.dropout_rate, made[i].dtype()), {kStream = stream++});
      rewriter.replace(node.results[i], made[i]);
    }
    return true;
  });
}

}  // namespace

std::vector<std::string> insert_dropout(Graph& graph, const Recipe& recipe) {
  if (recipe.model.dropout_after.empty()) return {};
  std::vector<std::string> names, chosen;
  for_each_node(graph, {}, [&](const Graph&, const Node& node, const NodeResults&) {
    if (std::find(names.begin(), names.end(), node.loc.node) == names.end()) names.push_back(node.loc.node);
  });
  check_patterns(recipe, names);
  if (recipe.model.dropout_rate == 0) return {};
  std::copy_if(names.begin(), names.end(), std::back_inserter(chosen), [&](const std::string& name) { return is_chosen(recipe, name); });
  (void)insert_into(graph, {}, recipe);
  return chosen;
}

std::vector<Diag> dropout_warnings(const Graph& graph, const Recipe& recipe) {
  std::vector<Diag> warnings;
  if (recipe.model.dropout_rate == 0) return warnings;
  for_each_node(graph, {}, [&](const Graph& within, const Node& node, const NodeResults& results) {
    if (not is_chosen(recipe, node.loc.node)) return;
    const Node* own = *node.op == op::dropout ? &node : nullptr;
    for (const Node& reader : within.nodes())
      if (*reader.op == op::dropout and within.value(reader.operands[0]).producer.valid() and &within.producer(reader.operands[0]) == &node and
          results.has(node, within.value(reader.operands[0]).result))
        own = &reader;
    if (own == nullptr) return;
    warnings.push_back({Code::kModelWarning,
                        fmt::format("model.dropout drops elements after {}, where the model has a Dropout of its own: training does both", quoted(node.loc.node)),
                        own->loc,
                        {"leave the node out of model.dropout.after, or say it with a smaller rate"},
                        Severity::kWarning});
  });
  return warnings;
}

Changed remove_dropout(Graph& graph) {
  const Changed inside = Rewriter::in_bodies(graph, remove_dropout);
  return inside | Rewriter::rewrite(graph, [](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (*node.op != op::dropout) return false;
    const Val x = rewriter.operand(node, 0);
    rewriter.replace(node.results[0], x);
    rewriter.replace(node.results[1], full(rewriter.builder(), 1, DType::kBool, x.shape()));
    return true;
  });
}

}  // namespace hone
