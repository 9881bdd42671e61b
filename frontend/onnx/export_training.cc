#include "frontend/onnx/export_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "frontend/onnx/body.h"
#include "frontend/onnx/exporter.h"
#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"
#include "ir/print.h"

namespace hone::onnx {

namespace {

/// Gives values of graphs numbers: the same number for what is computed by the same nodes from inputs of the same names and equal constants.
class Numbers {
 public:
  std::vector<std::size_t> of(const Graph& graph) {
    std::vector<std::size_t> numbers(graph.value_count());
    for (const Input& input : graph.inputs()) numbers[input.value.index] = number(input_key(graph, input));
    for (const Node& node : graph.nodes()) {
      std::string key = fmt::format("{} {}", node.op->name, node.attrs.text());
      for (const ValueId operand : node.operands) key += operand.valid() ? fmt::format(" {}", numbers[operand.index]) : " -";
      for (const auto& body : node.bodies) key += print(*body);
      for (std::size_t i = 0; i < node.results.size(); ++i) numbers[node.results[i].index] = number(fmt::format("{} result {}", key, i));
    }
    return numbers;
  }

 private:
  static std::string input_key(const Graph& graph, const Input& input) {
    if (not input.name.empty()) return "input " + input.name;
    const auto bytes = input.data->bytes();
    return "constant " + to_string(graph.type(input.value)) + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::size_t number(std::string key) { return numbers_.try_emplace(std::move(key), numbers_.size()).first->second; }

  std::map<std::string, std::size_t> numbers_;
};

/// Every name in the model's graph: values that nodes can read, and names inside of bodies.
std::set<std::string> names_in(const GraphProto& graph) {
  std::set<std::string> names;
  std::vector<const GraphProto*> open = {&graph};
  while (not open.empty()) {
    const GraphProto& one = *open.back();
    open.pop_back();
    for (const ValueInfoProto& input : one.input()) names.insert(input.name());
    for (const TensorProto& tensor : one.initializer()) names.insert(tensor.name());
    for (const NodeProto& node : one.node()) {
      names.insert(node.output().begin(), node.output().end());
      for (const GraphProto* body : bodies_of(node)) open.push_back(body);
    }
  }
  return names;
}

std::set<std::string> readable_names(const GraphProto& graph) {
  std::set<std::string> names;
  for (const ValueInfoProto& input : graph.input()) names.insert(input.name());
  for (const TensorProto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const NodeProto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
  return names;
}

/// By value of `step`: what the model's graph calls it; "" for what it does not compute, or does not name.
std::vector<std::string> names_in_model(const GraphProto& model, const Graph& forward, const Graph& step) {
  const std::set<std::string> readable = readable_names(model);
  std::map<std::string, int> uses;
  for (std::size_t i = 0; i < forward.value_count(); ++i) ++uses[forward.value(ValueId(i)).name];
  Numbers numbers;
  const std::vector<std::size_t> of_forward = numbers.of(forward), of_step = numbers.of(step);
  std::map<std::size_t, std::string> names;
  for (std::size_t i = 0; i < forward.value_count(); ++i)
    if (const std::string& name = forward.value(ValueId(i)).name; readable.contains(name) and uses[name] == 1) names.emplace(of_forward[i], name);
  std::vector<std::string> result(step.value_count());
  for (std::size_t i = 0; i < result.size(); ++i)
    if (const auto found = names.find(of_step[i]); found != names.end()) result[i] = found->second;
  return result;
}

class TrainingExporter {
 public:
  TrainingExporter(const ModelProto& model, const Graph& forward, const Graph& step, std::int64_t opset, double learning_rate)
      : step_(step), learning_rate_(learning_rate), given_(names_in_model(model.graph(), forward, step)),
        exporter_(step, *info_.mutable_algorithm(), opset, Formulas::kRefused, names_in(model.graph()), given_) {}

  TrainingInfoProto run() {
    info_.mutable_algorithm()->set_name("training");
    const std::vector<bool> needed = find_needed();
    for (const Input& input : step_.inputs())
      if (needed[input.value.index] and given_[input.value.index].empty()) write_input(input);
    for (const Output& output : step_.outputs()) rename_output(output);
    Diags problems;
    for (const Node& node : step_.nodes()) {
      if (std::none_of(node.results.begin(), node.results.end(), [&](ValueId result) { return needed[result.index] and given_[result.index].empty(); })) continue;
      if (*node.op == op::gradient) write_gradient(node);
      else if (*node.op == op::stop_gradient and not leads_to_gradients(node.results[0])) exporter_.node("Identity", {exporter_.name(node.operands[0])}, {exporter_.name(node.results[0])}, node);
      else if (not exporter_.write(node)) problems.error(Code::kUnknownOp, fmt::format("{} {} cannot be written as ONNX", node.op->name, node.attrs.text()), node.loc);
    }
    problems.throw_if_errors();
    for (const Output& output : step_.outputs()) add_output(exporter_.name(output.value), output.value);
    for (const Alias& alias : step_.aliases()) bind(alias);
    return std::move(info_);
  }

 private:
  /// What outputs and updates need, as far as the model does not have it.
  std::vector<bool> find_needed() const {
    std::vector<bool> needed(step_.value_count());
    for (const Output& output : step_.outputs()) needed[output.value.index] = true;
    for (const Alias& alias : step_.aliases()) needed[alias.value.index] = needed[alias.state.index] = true;
    for (std::size_t i = step_.node_count(); i-- > 0;) {
      const Node& node = step_.node(NodeId(i));
      if (std::none_of(node.results.begin(), node.results.end(), [&](ValueId result) { return needed[result.index] and given_[result.index].empty(); })) continue;
      for (const ValueId operand : node.operands)
        if (operand.valid()) needed[operand.index] = true;
    }
    return needed;
  }

  /// Is what is differentiated computed from `value`?
  bool leads_to_gradients(ValueId value) const {
    std::vector<bool> depends(step_.value_count());
    depends[value.index] = true;
    for (const Node& node : step_.nodes()) {
      if (*node.op == op::gradient and depends[node.operands[0].index]) return true;
      const bool any = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return operand.valid() and depends[operand.index]; });
      for (const ValueId result : node.results) depends[result.index] = depends[result.index] or any;
    }
    return false;
  }

  void write_input(const Input& input) {
    const bool is_rate = input.role == Role::kInput and input.name.starts_with("learning_rate");
    if (input.role == Role::kInput and not is_rate) return write_value_info(*info_.mutable_algorithm()->add_input(), exporter_.name(input.value), step_.type(input.value));
    exporter_.initializer(input.value, is_rate ? Tensor::scalar(learning_rate_) : *input.data);
  }

  void rename_output(const Output& output) {
    if (given_[output.value.index].empty() and step_.input_of(output.value) == nullptr) exporter_.rename(output.value, exporter_.fresh(output.name));
  }

  void write_gradient(const Node& node) {
    const std::string y = exporter_.name(node.operands[0]);
    std::vector<std::string> xs, results;
    for (std::size_t i = 1; i < node.operands.size(); ++i) xs.push_back(exporter_.name(node.operands[i]));
    for (const ValueId result : node.results) results.push_back(exporter_.name(result));
    NodeProto& proto = exporter_.node("Gradient", xs, results, node);
    proto.set_domain(std::string(kTrainingDomain));
    AttributeProto& names = *proto.add_attribute();
    names.set_name("xs");
    names.set_type(AttributeProto::STRINGS);
    for (const std::string& x : xs) names.add_strings(x);
    AttributeProto& of = *proto.add_attribute();
    of.set_name("y");
    of.set_type(AttributeProto::STRING);
    of.set_s(y);
  }

  void add_output(const std::string& name, ValueId value) {
    if (outputs_.insert(name).second) write_value_info(*info_.mutable_algorithm()->add_output(), name, step_.type(value));
  }

  /// What the model's graph has under a name of its own gets one of the algorithm's.
  void bind(const Alias& alias) {
    std::string value = exporter_.name(alias.value);
    if (not given_[alias.value.index].empty() or step_.input_of(alias.value) != nullptr) {
      const std::string copy = exporter_.fresh(value + "_next");
      NodeProto& node = *info_.mutable_algorithm()->add_node();
      node.set_op_type("Identity");
      node.set_name(copy);
      node.add_input(value);
      node.add_output(copy);
      value = copy;
    }
    add_output(value, alias.value);
    StringStringEntryProto& binding = *info_.add_update_binding();
    binding.set_key(exporter_.name(alias.state));
    binding.set_value(value);
  }

  const Graph& step_;
  double learning_rate_;
  TrainingInfoProto info_;
  const std::vector<std::string> given_;
  Exporter exporter_;
  std::set<std::string> outputs_;
};

std::int64_t opset_of(const ModelProto& model) {
  std::int64_t opset = 0;
  for (const OperatorSetIdProto& import : model.opset_import())
    if (canonical_domain(import.domain()).empty()) opset = std::max(opset, import.version());
  return opset;
}

}  // namespace

void add_training_info(ModelProto& model, const Graph& forward, const Graph& step, double learning_rate) {
  constexpr std::int64_t kOldestOpset = 13, kTrainingIrVersion = 7;
  const std::int64_t opset = opset_of(model);
  if (opset < kOldestOpset)
    throw Error(Code::kOpset, fmt::format("the model has opset {}, and its training is written from opset {} on", opset, kOldestOpset), {}, {"convert the model with onnx.version_converter, and compile it again"});
  TrainingInfoProto info = TrainingExporter(model, forward, step, opset, learning_rate).run();
  model.clear_training_info();
  *model.add_training_info() = std::move(info);
  model.set_ir_version(std::max<std::int64_t>(model.ir_version(), kTrainingIrVersion));
  const auto& imports = model.opset_import();
  if (std::any_of(imports.begin(), imports.end(), [](const OperatorSetIdProto& import) { return import.domain() == kTrainingDomain; })) return;
  OperatorSetIdProto& training = *model.add_opset_import();
  training.set_domain(std::string(kTrainingDomain));
  training.set_version(1);
}

}  // namespace hone::onnx
