#include "ir/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/limits.h"
#include "base/text.h"
#include "ir/op.h"
#include "ir/print.h"

namespace hone {

namespace {


class GraphVerifier {
 public:
  GraphVerifier(const Graph& graph, int depth) : graph_(graph), depth_(depth) {}

  void run() {
    require(depth_ <= limits::kBodyDepth, "V11", fmt::format("bodies nested more than {} deep", limits::kBodyDepth));
    require(graph_.node_count() <= limits::kNodes, "V12", fmt::format("more than {} nodes", limits::kNodes));
    defined_.resize(graph_.value_count());
    for (const Input& input : graph_.inputs()) check_input(input);
    for (std::size_t i = 0; i < graph_.node_count(); ++i) check_node(NodeId(i));
    here_ = {};
    for (std::size_t i = 0; i < graph_.value_count(); ++i)
      require(defined_[i], "V1", fmt::format("value {} ({}) is neither an input nor a result", i, quoted(graph_.value(ValueId(i)).name)));
    check_types();
    here_ = {};
    check_outputs();
    check_aliases();
  }

 private:
  void require(bool holds, const char* invariant, std::string_view what) const {
    if (holds) return;
    const Loc loc = here_.valid() ? graph_.node(here_).loc : Loc{};
    std::vector<std::string> notes;
    if (here_.valid()) notes.push_back("the graph there:\n" + print_around(graph_, here_));
    throw Error(Code::kInvalidGraph, fmt::format("graph {}: {}: {}", quoted(graph_.name), invariant, what), loc, std::move(notes));
  }
  bool exists(ValueId id) const { return id.index < graph_.value_count(); }

  void check_value(ValueId id) const {
    const Value& value = graph_.value(id);
    require(value.type.shape.size() <= limits::kRank, "V12", fmt::format("{} axes", value.type.shape.size()));
    if (not value.known) return;
    require(not is_float(value.type.dtype), "V10", fmt::format("known contents of {}", to_string(value.type)));
    const Dim count = element_count(value.type.shape);
    require(count.is_constant() and count.value() == static_cast<std::int64_t>(value.known->size()), "V10",
            fmt::format("{} known contents of {}", value.known->size(), to_string(value.type)));
  }

  void check_input(const Input& input) {
    const bool once = exists(input.value) and not defined_[input.value.index];
    require(once, "V1", fmt::format("input {} is no value, or one that is defined twice", quoted(input.name)));
    defined_[input.value.index] = true;
    const Value& value = graph_.value(input.value);
    require(not value.producer.valid() and graph_.input_of(input.value) == &input, "V1", fmt::format("input {} is a result as well", quoted(input.name)));
    check_value(input.value);
    const std::string shown = quoted(input.name);
    if (input.data) {
      const Type type{input.data->dtype(), shape_of(input.data->shape())};
      require(type == value.type, "V6", fmt::format("input {} of type {} has data of type {}", shown, to_string(value.type), to_string(type)));
    }
    require(not input.bounds or is_integer(value.type.dtype), "V6", fmt::format("bounds of input {}, which is {}", shown, to_string(value.type)));
    require(input.role != Role::kInput or not input.name.empty(), "V7", "an input that is fed has no name");
    require(input.name.empty() or names_.insert(input.name).second, "V7", fmt::format("two inputs are named {}", shown));
  }

  void check_node(NodeId id) {
    here_ = id;
    const Node& node = graph_.node(id);
    require(node.op != nullptr, "V3", "a node without an op");
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId operand = node.operands[i];
      if (not operand.valid()) continue;
      require(exists(operand), "V1", fmt::format("operand {} of {} is no value of the graph", i, node.op->name));
      require(defined_[operand.index], "V2", fmt::format("operand {} of {} is defined after it", i, node.op->name));
      const NodeId producer = graph_.value(operand).producer;
      require(not producer.valid() or graph_.node(producer).part <= node.part, "V9",
              fmt::format("{}, of part {}, reads operand {} from a later part", node.op->name, to_string(node.part), i));
    }
    if (const auto problem = operands_problem(*node.op, node.operands)) require(false, "V3", *problem);
    if (const auto problem = attributes_problem(*node.op, node.attrs)) require(false, "V4", *problem);
    for (std::size_t i = 0; i < node.results.size(); ++i) check_result(id, i);
    require(node.bodies.empty() or node.op->region != Region::kNone, "V11", fmt::format("{} has body graphs, but is no region", node.op->name));
    for (const auto& body : node.bodies) GraphVerifier(*body, depth_ + 1).run();
  }

  void check_result(NodeId id, std::size_t i) {
    const Node& node = graph_.node(id);
    const ValueId result = node.results[i];
    require(exists(result) and not defined_[result.index], "V1", fmt::format("result {} of {} is no value, or one that is defined twice", i, node.op->name));
    const Value& value = graph_.value(result);
    require(value.producer == id and value.result == i, "V1", fmt::format("result {} of {} names another producer", i, node.op->name));
    defined_[result.index] = true;
    check_value(result);
  }

  /// infer again, on a copy: it notes equations.
  void check_types() {
    Graph copy = graph_.clone();
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      here_ = NodeId(n);
      const Node& node = graph_.node(here_);
      const std::vector<Type> types = inferred(copy, node);
      require(types.size() == node.results.size(), "V5", fmt::format("{} has {} results, infer gives {}", node.op->name, node.results.size(), types.size()));
      for (std::size_t i = 0; i < types.size(); ++i)
        require(types[i] == graph_.type(node.results[i]), "V5",
                fmt::format("result {} of {} is {}, infer gives {}", i, node.op->name, to_string(graph_.type(node.results[i])), to_string(types[i])));
    }
  }

  std::vector<Type> inferred(Graph& copy, const Node& node) const {
    Infer infer(copy, *node.op, node.operands, node.attrs, node.loc, node.bodies);
    try {
      return node.op->infer(infer);
    } catch (const Error& error) {
      require(false, "V5", error.diags()[0].message);
      throw;
    }
  }

  void check_outputs() const {
    std::set<std::string> names;
    for (const Output& output : graph_.outputs()) {
      require(exists(output.value), "V1", fmt::format("output {} is no value of the graph", quoted(output.name)));
      require(names.insert(output.name).second, "V7", fmt::format("two outputs are named {}", quoted(output.name)));
    }
  }

  void check_aliases() const {
    std::set<ValueId> states;
    for (const Alias& alias : graph_.aliases()) {
      require(exists(alias.state) and exists(alias.value), "V1", "an alias of or by what is no value of the graph");
      const Input* input = graph_.input_of(alias.state);
      require(input != nullptr and (input->role == Role::kWeight or input->role == Role::kState), "V8", "an alias of what is neither a weight nor a state");
      const Type &state = graph_.type(alias.state), &value = graph_.type(alias.value);
      require(state == value, "V8", fmt::format("{} of type {} is replaced by {}", quoted(input->name), to_string(state), to_string(value)));
      require(states.insert(alias.state).second, "V8", fmt::format("{} is replaced twice", quoted(input->name)));
    }
  }

  const Graph& graph_;
  int depth_;
  NodeId here_;                // the node being checked
  std::vector<bool> defined_;  // by value
  std::set<std::string> names_;
};

}  // namespace

void verify(const Graph& graph) { GraphVerifier(graph, 1).run(); }

std::optional<std::string> operands_problem(const OpDef& op, std::span<const ValueId> operands) {
  if (operands.size() > op.inputs.size() and not op.is_variadic())
    return fmt::format("{} takes {} operands, found {}", op.name, op.inputs.size(), operands.size());
  for (std::size_t i = 0; i < std::max(op.inputs.size(), operands.size()); ++i) {
    const std::string_view name = op.inputs[std::min(i, op.inputs.size() - 1)];
    const bool there = i < operands.size() and operands[i].valid();  // of "x..." at least one must be
    const bool may_be_empty = op.region != Region::kNone and name.ends_with("...");  // a body may read nothing
    if (not there and not name.ends_with("?") and not may_be_empty) return fmt::format("{}: operand {} ({}) is missing", op.name, i, name);
  }
  return std::nullopt;
}

const AttrSpec* find_attribute(const OpDef& op, std::string_view name) {
  for (const AttrRef& attr : op.attrs)
    if (attr.spec->name == name) return attr.spec;
  return name == kRow.name ? &kRow : nullptr;  // a target's choice, not the op's
}

std::optional<std::string> attributes_problem(const OpDef& op, const Attrs& attrs) {
  for (const auto& [name, attr] : attrs) {
    const AttrSpec* spec = find_attribute(op, name);
    if (spec == nullptr) return fmt::format("{} has no attribute {}", op.name, quoted(name));
    if (attr.value.index() != static_cast<std::size_t>(spec->kind)) return fmt::format("attribute {} of {} is of another kind", name, op.name);
  }
  return std::nullopt;
}

}  // namespace hone
