// Loops and branches: bodies become graphs that see the values around them.
#include "frontend/onnx/export_rows.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// What a body is given, in order.
std::vector<ValueId> given_values(const Graph& body) {
  std::vector<ValueId> given;
  for (const Input& input : body.inputs())
    if (input.role == Role::kInput) given.push_back(input.value);
  return given;
}

GraphProto& add_body(Exporter& e, NodeProto& node, const std::string& attribute_name, const Graph& graph) {
  AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(attribute_name);
  attribute.set_type(AttributeProto::GRAPH);
  attribute.mutable_g()->set_name(e.fresh(graph.name.empty() ? "body" : graph.name));
  return *attribute.mutable_g();
}

/// The body's constants and nodes.
bool write_nodes(Exporter& inside) {
  for (const Input& input : inside.graph.inputs())
    if (input.data) inside.initializer(input.value, *input.data);
  inside.name_outputs();
  for (const Node& each : inside.graph.nodes())
    if (not inside.write(each)) return false;
  return true;
}

/// 0, 1, ... as far as the loop runs.
std::string positions(Exporter& e, const Node& node, const std::string& hint) {
  const std::string trips = e.sizes(node.attrs[kTrips], hint, node);
  if (trips.empty()) return "";
  const auto number = [&](std::int64_t value) { return e.constant(Tensor::scalar(value), hint); };
  return e.value("Range", {number(0), e.value("Squeeze", {trips, e.ints({0}, hint)}, hint, node), number(1)}, hint, node);
}

/// A copy of what a body was given, which may not be one of its outputs itself.
std::string copied(Exporter& inside, ValueId value, const Node& node) { return inside.value("Identity", {inside.name(value)}, inside.name(value) + "_before", node); }

}  // namespace

bool write_scan(Exporter& e, const Node& node) {
  const auto states = static_cast<std::size_t>(node.attrs[kStates]), scanned = static_cast<std::size_t>(node.attrs[kScanned]);
  const Graph& graph = *node.bodies[0];
  const std::vector<std::uint32_t> uses = count_uses(e.graph), inner_uses = count_uses(graph);
  const std::vector<ValueId> given = given_values(graph);
  const bool counts = scanned == 0 or inner_uses[given[0].index] != 0;  // a Scan has at least one operand to read slice by slice
  std::vector<std::string> inputs, outputs;
  for (std::size_t i = 0; i < states + scanned; ++i) inputs.push_back(e.name(node.operands[i]));
  if (counts) inputs.push_back(positions(e, node, e.name(node.results[0]) + "_positions"));
  if (inputs.back().empty()) return false;
  const auto is_written = [&](std::size_t result) { return result < states or result >= 2 * states or uses[node.results[result].index] != 0; };
  for (std::size_t i = 0; i < node.results.size(); ++i)
    if (is_written(i)) outputs.push_back(e.name(node.results[i]));
  NodeProto& proto = e.node("Scan", inputs, outputs, node);
  set(proto, "num_scan_inputs", static_cast<std::int64_t>(inputs.size() - states));
  if (node.attrs[kReverse]) {
    set(proto, "scan_input_directions", Ints(inputs.size() - states, 1));
    set(proto, "scan_output_directions", Ints(outputs.size() - states, 1));
  }
  GraphProto& body = add_body(e, proto, "body", graph);
  Exporter inside(graph, body, e);
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    if (i < states + scanned) write_value_info(*body.add_input(), inside.name(given[1 + i]), graph.type(given[1 + i]));
    else inside.rename(given[1 + i], e.name(node.operands[i]));
  }
  if (counts) write_value_info(*body.add_input(), inside.name(given[0]), graph.type(given[0]));
  if (not write_nodes(inside)) return false;
  inside.write_outputs();
  std::vector<ValueInfoProto> made(body.output().begin(), body.output().end());
  body.clear_output();
  for (std::size_t i = 0; i < states; ++i) *body.add_output() = made[i];
  for (std::size_t i = 0; i < states; ++i)
    if (is_written(states + i)) write_value_info(*body.add_output(), copied(inside, given[1 + i], node), graph.type(given[1 + i]));
  for (std::size_t i = states; i < made.size(); ++i) *body.add_output() = made[i];
  return true;
}

/// A Loop that counts its iterations.
bool write_while(Exporter& e, const Node& node) {
  const auto states = static_cast<std::size_t>(node.attrs[kStates]);
  const Graph& graph = *node.bodies[0];
  const std::vector<ValueId> given = given_values(graph);
  const std::string hint = e.name(node.results[0]), trips = e.sizes(node.attrs[kTrips], hint + "_most", node);
  if (trips.empty()) return false;
  std::vector<std::string> inputs = {e.value("Squeeze", {trips, e.ints({0}, hint)}, hint, node)}, outputs;
  for (std::size_t i = 0; i <= states; ++i) inputs.push_back(e.name(node.operands[i]));
  inputs.push_back(e.constant(Tensor::scalar(std::int64_t{0}), hint));
  for (std::size_t i = 0; i < states; ++i) outputs.push_back(e.fresh(hint + "_state"));
  outputs.push_back(hint);
  NodeProto& proto = e.node("Loop", inputs, outputs, node);
  GraphProto& body = add_body(e, proto, "body", graph);
  Exporter inside(graph, body, e);
  const Type count{DType::kI64, {}};
  const std::string counted = e.fresh(hint + "_count"), condition = e.fresh(hint + "_goes_on");
  write_value_info(*body.add_input(), inside.name(given[0]), graph.type(given[0]));
  write_value_info(*body.add_input(), condition, {DType::kBool, {}});
  for (std::size_t i = 0; i < states; ++i) write_value_info(*body.add_input(), inside.name(given[1 + i]), graph.type(given[1 + i]));
  write_value_info(*body.add_input(), counted, count);
  for (std::size_t i = 1 + states; i < node.operands.size(); ++i) inside.rename(given[i], e.name(node.operands[i]));
  if (not write_nodes(inside)) return false;
  inside.write_outputs();
  write_value_info(*body.add_output(), inside.value("Add", {counted, inside.constant(Tensor::scalar(std::int64_t{1}), hint)}, counted, node), count);
  return true;
}

bool write_branch(Exporter& e, const Node& node) {
  std::vector<std::string> outputs;
  for (const ValueId result : node.results) outputs.push_back(e.name(result));
  NodeProto& proto = e.node("If", {e.name(node.operands[0])}, outputs, node);
  for (std::size_t b = 0; b < 2; ++b) {
    const Graph& graph = *node.bodies[b];
    Exporter inside(graph, add_body(e, proto, b == 0 ? "then_branch" : "else_branch", graph), e);
    const std::vector<ValueId> given = given_values(graph);
    for (std::size_t i = 0; i < given.size(); ++i) inside.rename(given[i], e.name(node.operands[1 + i]));
    if (not write_nodes(inside)) return false;
    inside.write_outputs();
  }
  return true;
}

}  // namespace hone::onnx
