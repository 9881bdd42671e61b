#include "ir/rewriter.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/op.h"

namespace hone {

Rewriter::Rewriter(const Graph& old) : old_(old), builder_(made_), map_(old.value_count()), uses_(count_uses(old)) { made_.name = old.name; }

Val Rewriter::mapped(ValueId old_value) {
  if (not old_value.valid()) return {};
  const ValueId value = map_.at(old_value.index);
  HONE_CHECK(value.valid(), fmt::format("value {} ({}) is read after it was dropped", old_value.index, old_.value(old_value).name));
  return builder_.val(value);
}

void Rewriter::replace(ValueId old_value, Val value) {
  HONE_CHECK(value.type() == old_.type(old_value), fmt::format("a value of type {} cannot stand for one of {}", to_string(value.type()), to_string(old_.type(old_value))));
  map_.at(old_value.index) = value.id();
  Value& made = made_.values_[value.id().index];
  if (made.name.empty()) made.name = old_.value(old_value).name;
  if (not made.known) made.known = old_.value(old_value).known;
}

void Rewriter::copy_input(const Input& input) {
  const Val made = builder_.input(input.role, input.name, old_.type(input.value), input.data);
  made_.inputs_.back().bounds = input.bounds;
  made_.values_[made.id().index].known = old_.value(input.value).known;
  map_[input.value.index] = made.id();
  builder_.remember_scalar(made.id());
}

void Rewriter::copy_node(const Node& node) {
  const NodeId id(made_.nodes_.size());
  Node copy;
  copy.op = node.op;
  copy.attrs = node.attrs;
  copy.loc = node.loc;
  copy.part = node.part;
  for (const ValueId operand : node.operands) {
    copy.operands.push_back(mapped(operand).id());
    if (operand.valid() and made_.input_of(copy.operands.back()) == nullptr) copy.part = std::max(copy.part, made_.producer(copy.operands.back()).part);
  }
  for (const auto& body : node.bodies) copy.bodies.push_back(std::make_unique<Graph>(body->clone()));
  for (const ValueId result : node.results) {
    const ValueId made(made_.values_.size());
    made_.values_.push_back(old_.value(result));
    made_.values_.back().producer = id;
    copy.results.push_back(made);
    map_[result.index] = made;
  }
  made_.nodes_.push_back(std::move(copy));
}

void Rewriter::finish() {
  for (const Output& output : old_.outputs()) made_.outputs_.push_back({mapped(output.value).id(), output.name});
  for (const Alias& alias : old_.aliases()) made_.aliases_.push_back({mapped(alias.state).id(), mapped(alias.value).id()});
  for (const auto& equation : old_.equations())
    if (std::find(made_.equations_.begin(), made_.equations_.end(), equation) == made_.equations_.end()) made_.equations_.push_back(equation);
}

Changed Rewriter::rewrite(Graph& graph, const Visitor& visit) {
  Rewriter rewriter(graph);
  for (const Input& input : graph.inputs()) rewriter.copy_input(input);
  Changed changed = Changed::kNo;
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    const Builder::Scope scope(rewriter.builder_, node.loc, node.part);
    if (visit(rewriter, NodeId(i))) changed = Changed::kYes;
    else rewriter.copy_node(node);
  }
  if (changed == Changed::kNo) return changed;
  rewriter.finish();
  graph = std::move(rewriter.made_);
  return changed;
}

Changed Rewriter::in_bodies(Graph& graph, const std::function<Changed(Graph&)>& pass) {
  Changed changed = Changed::kNo;
  for (Node& node : graph.nodes_)
    for (const auto& body : node.bodies) changed |= pass(*body);  // depth is limited by import and parser
  return changed;
}

namespace {

/// The symbols that kept nodes use: what defines them (read_sizes) is kept for them alone.
class LiveSymbols {
 public:
  explicit LiveSymbols(const Graph& graph)
      : any_(std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) { return node.op->binds; })) {}
  /// Equations are checked when a step runs, with all that they are of.
  void use_equations(const Graph& graph) {
    for (const auto& [a, b] : graph.equations()) use({a, b});
  }
  bool has_any() const { return not names_.empty(); }
  /// All symbols in the node's types and attributes, its bodies' included.
  void use(const Graph& graph, const Node& node) {
    if (not any_) return;
    for (const ValueId result : node.results) use(graph.type(result).shape);
    for (const auto& [name, attr] : node.attrs)
      if (const auto* dims = std::get_if<Shape>(&attr.value)) use(*dims);
    for (const auto& body : node.bodies)
      for (const Node& inner : body->nodes()) use(*body, inner);  // depth is limited by import and parser
  }
  bool defines_one(const Node& node) const {
    return node.op->binds and std::any_of(node.attrs[kSizes].begin(), node.attrs[kSizes].end(), [this](const Dim& dim) { return names_.contains(dim.text()); });
  }

 private:
  void use(const Shape& shape) {
    if (not any_) return;
    for (const Dim& dim : shape)
      for (std::string& name : dim.symbols()) names_.insert(std::move(name));
  }
  bool any_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace

namespace {

struct Used {
  std::vector<bool> live;  ///< by value
  std::vector<bool> keep;  ///< by node
};

Used find_used(const Graph& graph, LiveSymbols& symbols) {
  Used used{std::vector<bool>(graph.value_count()), std::vector<bool>(graph.node_count())};
  for (const Output& output : graph.outputs()) used.live[output.value.index] = true;
  for (const Alias& alias : graph.aliases()) used.live[alias.value.index] = used.live[alias.state.index] = true;
  for (std::size_t i = graph.node_count(); i-- > 0;) {
    const Node& node = graph.node(NodeId(i));
    used.keep[i] = symbols.defines_one(node);
    for (const ValueId result : node.results) used.keep[i] = used.keep[i] or used.live[result.index];
    if (not used.keep[i]) continue;
    symbols.use(graph, node);
    for (const ValueId operand : node.operands)
      if (operand.valid()) used.live[operand.index] = true;
  }
  return used;
}

}  // namespace

Changed Rewriter::drop_unused(Graph& graph) {
  const Changed inside = in_bodies(graph, drop_unused);
  LiveSymbols symbols(graph);
  Used used = find_used(graph, symbols);
  // A graph of which nothing has such a size, a step without samples, has nothing to check either: sizes are not read out of tensors for that alone.
  if (symbols.has_any()) {
    symbols.use_equations(graph);
    used = find_used(graph, symbols);
  }
  const auto& [live, keep] = used;
  bool all = true;
  for (const bool kept : keep) all = all and kept;
  for (const Input& input : graph.inputs()) all = all and (live[input.value.index] or input.role == Role::kInput);
  if (all) return inside;
  Rewriter rewriter(graph);
  for (const Input& input : graph.inputs())
    if (live[input.value.index] or input.role == Role::kInput) rewriter.copy_input(input);
  for (std::size_t i = 0; i < graph.node_count(); ++i)
    if (keep[i]) rewriter.copy_node(graph.node(NodeId(i)));
  rewriter.finish();
  graph = std::move(rewriter.made_);
  return Changed::kYes;
}

std::vector<ValueId> Rewriter::reordered(const Graph& graph, std::span<const NodeId> order, Graph& made) {
  HONE_CHECK(order.size() == graph.node_count(), "an order that is not of all nodes");
  Rewriter rewriter(graph);
  for (const Input& input : graph.inputs()) rewriter.copy_input(input);
  for (const NodeId id : order) rewriter.copy_node(graph.node(id));
  rewriter.finish();
  made = std::move(rewriter.made_);
  return std::move(rewriter.map_);
}

}  // namespace hone
