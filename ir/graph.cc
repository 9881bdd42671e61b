#include "ir/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/op.h"

namespace hone {

std::string to_string(const Type& type) { return fmt::format("{}[{}]", to_string(type.dtype), to_string(type.shape)); }

std::string_view to_string(Role role) {
  constexpr std::string_view kNames[] = {"input", "weight", "state", "constant"};
  return kNames[static_cast<int>(role)];
}

std::string_view to_string(Part part) {
  constexpr std::string_view kNames[] = {"forward", "loss", "backward", "all_reduce", "update"};
  return kNames[static_cast<int>(part)];
}

Graph Graph::clone() const {
  Graph copy;
  copy.name = name;
  for (const Node& node : nodes_) {
    Node& made = copy.nodes_.emplace_back();
    made.op = node.op;
    made.operands = node.operands;
    made.attrs = node.attrs;
    made.results = node.results;
    made.loc = node.loc;
    made.part = node.part;
    for (const auto& body : node.bodies) made.bodies.push_back(std::make_unique<Graph>(body->clone()));  // depth is limited by import and parser
  }
  copy.values_ = values_;
  copy.inputs_ = inputs_;
  copy.outputs_ = outputs_;
  copy.aliases_ = aliases_;
  copy.equations_ = equations_;
  copy.input_index_ = input_index_;
  return copy;
}

const Input* Graph::input_of(ValueId value) const {
  if (value.index >= input_index_.size() or input_index_[value.index] == 0) return nullptr;
  return &inputs_[input_index_[value.index] - 1];
}

const Input* Graph::find_input(std::string_view wanted) const {
  const auto found = std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& input) { return input.name == wanted; });
  return found == inputs_.end() ? nullptr : &*found;
}

const Output* Graph::find_output(std::string_view wanted) const {
  const auto found = std::find_if(outputs_.begin(), outputs_.end(), [&](const Output& output) { return output.name == wanted; });
  return found == outputs_.end() ? nullptr : &*found;
}

const Tensor* Graph::constant_of(ValueId value) const {
  const Input* input = input_of(value);
  return input != nullptr and input->role == Role::kConstant and input->data ? &*input->data : nullptr;
}

std::optional<double> Graph::scalar_constant(ValueId value) const {
  const Tensor* tensor = constant_of(value);
  if (tensor == nullptr or tensor->element_count() != 1) return std::nullopt;
  return tensor->at(0);
}

bool Graph::is_op(ValueId value, const OpDef& op) const {
  const NodeId node_id = this->value(value).producer;
  return node_id.valid() and *node(node_id).op == op;
}

std::vector<std::uint32_t> count_uses(const Graph& graph) {
  std::vector<std::uint32_t> uses(graph.value_count());
  for (const Node& node : graph.nodes())
    for (const ValueId operand : node.operands)
      if (operand.valid()) ++uses[operand.index];
  for (const Output& output : graph.outputs()) ++uses[output.value.index];
  for (const Alias& alias : graph.aliases()) ++uses[alias.value.index];
  return uses;
}

}  // namespace hone
