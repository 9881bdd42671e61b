// The ONNX forms of our ops.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "frontend/onnx/exporter.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// One op of ours as ONNX nodes; false if these attributes have no ONNX form.
using Write = bool (*)(Exporter&, const Node&);

std::vector<std::string> operands(const Exporter& e, const Node& node) {
  std::vector<std::string> names;
  for (const ValueId operand : node.operands) names.push_back(operand.valid() ? e.name(operand) : "");
  return names;
}

NodeProto& plain(Exporter& e, const Node& node, std::string_view type) { return e.node(type, operands(e, node), {e.name(node.results[0])}, node); }

bool write_matmul(Exporter& e, const Node& node) {
  std::vector<std::string> inputs = operands(e, node);
  for (std::size_t i = 0; i < 2; ++i) {
    if (not node.attrs[i == 0 ? kTransA : kTransB]) continue;
    Ints perm;
    for (std::size_t axis = 0; axis < e.graph.type(node.operands[i]).shape.size(); ++axis) perm.push_back(static_cast<std::int64_t>(axis));
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    const std::string transposed = e.fresh(inputs[i] + "_transposed");
    set(e.node("Transpose", {inputs[i]}, {transposed}, node), "perm", perm);
    inputs[i] = transposed;
  }
  e.node("MatMul", inputs, {e.name(node.results[0])}, node);
  return true;
}

bool write_reshape(Exporter& e, const Node& node) {
  Ints shape;
  int symbols = 0;
  for (const Dim& dim : node.attrs[kShape]) {
    shape.push_back(dim.is_constant() ? dim.value() : -1);
    symbols += not dim.is_constant();
  }
  const std::string hint = e.name(node.results[0]) + "_shape", sizes = symbols > 1 ? e.sizes(node.attrs[kShape], hint, node) : e.ints(shape, hint);
  if (sizes.empty()) return false;
  e.node("Reshape", {e.name(node.operands[0]), sizes}, {e.name(node.results[0])}, node);
  return true;
}

bool write_broadcast(Exporter& e, const Node& node) {
  const std::string shape = e.sizes(node.attrs[kShape], e.name(node.results[0]) + "_shape", node);
  if (not shape.empty()) e.node("Expand", {e.name(node.operands[0]), shape}, {e.name(node.results[0])}, node);
  return not shape.empty();
}

bool write_sizes(Exporter& e, const Node& node) {
  const std::string sizes = e.sizes(node.attrs[kSizes], e.name(node.results[0]) + "_sizes", node);
  if (not sizes.empty()) e.node("Identity", {sizes}, {e.name(node.results[0])}, node);
  return not sizes.empty();
}

/// index[..., none] == [0, 1, ...]: nothing where the index is out of range, other than OneHot.
bool write_one_hot(Exporter& e, const Node& node) {
  const Dim& depth = node.attrs[kShape].back();
  if (not depth.is_constant()) return false;
  Ints classes;
  for (std::int64_t i = 0; i < depth.value(); ++i) classes.push_back(i);
  const std::string y = e.name(node.results[0]);
  const std::string wide = e.fresh(y + "_index");
  set(e.node("Cast", {e.name(node.operands[0])}, {wide}, node), "to", static_cast<std::int64_t>(onnx_of_dtype(DType::kI64)));
  e.node("Equal", {e.value("Unsqueeze", {wide, e.ints({-1}, y + "_axes")}, y + "_column", node), e.ints(classes, y + "_classes")}, {y}, node);
  return true;
}

bool set_pads(NodeProto& proto, const Node& node) {
  Ints pads;
  for (const auto* side : {&node.attrs[kPadsBegin], &node.attrs[kPadsEnd]})
    for (const Dim& pad : *side) {
      if (not pad.is_constant()) return false;
      pads.push_back(pad.value());
    }
  set(proto, "pads", pads);
  set(proto, "strides", node.attrs[kStrides]);
  return true;
}

bool write_conv(Exporter& e, const Node& node) {
  NodeProto& proto = plain(e, node, "Conv");
  set(proto, "dilations", node.attrs[kDilations]);
  set(proto, "group", node.attrs[kGroups]);
  set(proto, "kernel_shape", constant_shape(Shape(e.graph.type(node.operands[1]).shape.begin() + 2, e.graph.type(node.operands[1]).shape.end())));
  return set_pads(proto, node);
}

bool write_pool(Exporter& e, const Node& node, std::string_view type) {
  const Shape& x = e.graph.type(node.operands[0]).shape;
  for (std::size_t i = 0; i < node.attrs[kKernel].size(); ++i) {
    const Dim window = (node.attrs[kKernel][i] - 1) * node.attrs[kDilations][i] + 1;
    if (floordiv(x[i + 2] + node.attrs[kPadsBegin][i] + node.attrs[kPadsEnd][i] - window, node.attrs[kStrides][i]) + 1 != node.attrs[kSpatial][i]) return false;
  }
  NodeProto& proto = plain(e, node, type);
  set(proto, "kernel_shape", node.attrs[kKernel]);
  if (node.attrs[kCountPads]) set(proto, "count_include_pad", std::int64_t{1});
  return set_pads(proto, node);
}

bool write_max_pool(Exporter& e, const Node& node) { return write_pool(e, node, "MaxPool"); }

bool write_avg_pool(Exporter& e, const Node& node) { return write_pool(e, node, "AveragePool"); }

bool write_batch_norm(Exporter& e, const Node& node) {
  NodeProto& proto = plain(e, node, "BatchNormalization");
  set(proto, "epsilon", node.attrs[kEpsilon]);
  set(proto, "momentum", node.attrs[kMomentum]);
  return true;
}

/// Where the axes are an attribute until opset `last_with_attribute`.
bool write_reduce(Exporter& e, const Node& node, std::string_view type, std::int64_t last_with_attribute) {
  const bool axes_are_input = e.opset > last_with_attribute;
  std::vector<std::string> inputs = operands(e, node);
  if (axes_are_input) inputs.push_back(e.ints(node.attrs[kAxes], e.name(node.results[0]) + "_axes"));
  NodeProto& proto = e.node(type, inputs, {e.name(node.results[0])}, node);
  if (not axes_are_input) set(proto, "axes", node.attrs[kAxes]);
  set(proto, "keepdims", static_cast<std::int64_t>(node.attrs[kKeepDims]));
  return true;
}

bool write_layer_norm(Exporter& e, const Node& node) {
  constexpr std::int64_t kFirstOpset = 17;
  if (e.opset < kFirstOpset or node.operands.size() < 2 or not node.operands[1].valid()) return false;  // ONNX's has a scale
  std::vector<std::string> inputs = operands(e, node);
  while (inputs.back().empty()) inputs.pop_back();
  NodeProto& proto = e.node("LayerNormalization", inputs, {e.name(node.results[0])}, node);
  set(proto, "axis", node.attrs[kAxis]);
  set(proto, "epsilon", node.attrs[kEpsilon]);
  return true;
}

/// In training mode; what is drawn is the importer's affair.
bool write_dropout(Exporter& e, const Node& node) {
  const std::string y = e.name(node.results[0]);
  e.node("Dropout", {e.name(node.operands[0]), e.name(node.operands[1]), e.constant(Tensor::scalar(true), y + "_training")}, {y, e.name(node.results[1])}, node);
  return true;
}

bool with_axis(Exporter& e, const Node& node, std::string_view type) {
  set(plain(e, node, type), "axis", node.attrs[kAxis]);
  return true;
}

/// Axes that are kept whole may have any extent.
bool write_slice(Exporter& e, const Node& node) {
  const Shape &extents = e.graph.type(node.operands[0]).shape, &starts = node.attrs[kStarts], &counts = node.attrs[kSizes];
  Ints from, to, axes, steps;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t step = node.attrs[kSteps][i];
    if (starts[i].is_constant(0) and step == 1 and counts[i] == extents[i]) continue;
    if (not starts[i].is_constant() or not counts[i].is_constant()) return false;
    const std::int64_t end = starts[i].value() + counts[i].value() * step;
    from.push_back(starts[i].value());
    to.push_back(end < 0 ? std::numeric_limits<std::int64_t>::min() : end);
    axes.push_back(static_cast<std::int64_t>(i));
    steps.push_back(step);
  }
  std::vector<std::string> inputs = {e.name(node.operands[0])};
  if (not axes.empty())
    for (const auto& [list, hint] : {std::pair(&from, "_starts"), std::pair(&to, "_ends"), std::pair(&axes, "_axes"), std::pair(&steps, "_steps")})
      inputs.push_back(e.ints(*list, e.name(node.results[0]) + hint));
  e.node(axes.empty() ? "Identity" : "Slice", inputs, {e.name(node.results[0])}, node);
  return true;
}

/// x (1 + erf(x / sqrt 2)) / 2: Gelu itself came with opset 20.
bool write_gelu(Exporter& e, const Node& node) {
  if (node.attrs[kTanhForm]) return false;
  const DType dtype = e.graph.type(node.results[0]).dtype;
  const std::string x = e.name(node.operands[0]), hint = e.name(node.results[0]);
  const auto number = [&](double value) { return e.constant(Tensor::scalar(value).cast(dtype), hint + "_constant"); };
  const auto of = [&](std::string_view type, const std::vector<std::string>& inputs) { return e.value(type, inputs, fmt::format("{}_{}", hint, type), node); };
  const std::string erf = of("Erf", {of("Mul", {x, number(std::sqrt(0.5))})});
  e.node("Mul", {of("Mul", {x, of("Add", {erf, number(1)})}), number(0.5)}, {hint}, node);
  return true;
}

/// A loop over slices. Its body must not ask for the position, and nothing may read the states between the steps: Scan has neither.
bool write_scan(Exporter& e, const Node& node) {
  const auto states = static_cast<std::size_t>(node.attrs[kStates]), scanned = static_cast<std::size_t>(node.attrs[kScanned]);
  const Graph& graph = *node.bodies[0];
  const std::vector<std::uint32_t> uses = count_uses(e.graph), inner_uses = count_uses(graph);
  for (std::size_t i = states; i < 2 * states; ++i)
    if (uses[node.results[i].index] != 0) return false;
  std::vector<ValueId> given;
  for (const Input& input : graph.inputs())
    if (input.role == Role::kInput) given.push_back(input.value);
  if (scanned == 0 or inner_uses[given[0].index] != 0) return false;
  std::vector<std::string> inputs, outputs;
  for (std::size_t i = 0; i < states + scanned; ++i) inputs.push_back(e.name(node.operands[i]));
  for (std::size_t i = 0; i < node.results.size(); ++i)
    if (i < states or i >= 2 * states) outputs.push_back(e.name(node.results[i]));
  NodeProto& proto = e.node("Scan", inputs, outputs, node);
  set(proto, "num_scan_inputs", static_cast<std::int64_t>(scanned));
  if (node.attrs[kReverse]) {
    set(proto, "scan_input_directions", Ints(scanned, 1));
    set(proto, "scan_output_directions", Ints(outputs.size() - states, 1));
  }
  AttributeProto& attribute = *proto.add_attribute();
  attribute.set_name("body");
  attribute.set_type(AttributeProto::GRAPH);
  GraphProto& body = *attribute.mutable_g();
  body.set_name(e.fresh(graph.name.empty() ? "body" : graph.name));
  Exporter inside(graph, body, e);
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    if (i < states + scanned) write_value_info(*body.add_input(), inside.name(given[1 + i]), graph.type(given[1 + i]));
    else inside.rename(given[1 + i], e.name(node.operands[i]));  // bodies see the values around them
  }
  for (const Input& input : graph.inputs())
    if (input.data) inside.initializer(input.value, *input.data);
  inside.name_outputs();
  for (const Node& each : graph.nodes())
    if (not inside.write(each)) return false;
  inside.write_outputs();
  return true;
}

struct Row {
  const OpDef* op;
  Write write;
};
constexpr Row kRows[] = {
    {&op::matmul, write_matmul},
    {&op::reshape, write_reshape},
    {&op::conv, write_conv},
    {&op::max_pool, write_max_pool},
    {&op::avg_pool, write_avg_pool},
    {&op::batch_norm, write_batch_norm},
    {&op::layer_norm, write_layer_norm},
    {&op::dropout, write_dropout},
    {&op::transpose, [](Exporter& e, const Node& node) { return set(plain(e, node, "Transpose"), "perm", node.attrs[kPerm]), true; }},
    {&op::concat, [](Exporter& e, const Node& node) { return with_axis(e, node, "Concat"); }},
    {&op::gather, [](Exporter& e, const Node& node) { return with_axis(e, node, "Gather"); }},
    {&op::softmax, [](Exporter& e, const Node& node) { return with_axis(e, node, "Softmax"); }},
    {&op::log_softmax, [](Exporter& e, const Node& node) { return with_axis(e, node, "LogSoftmax"); }},
    {&op::reduce_mean, [](Exporter& e, const Node& node) { return write_reduce(e, node, "ReduceMean", 17); }},
    {&op::reduce_max, [](Exporter& e, const Node& node) { return write_reduce(e, node, "ReduceMax", 17); }},
    {&op::reduce_sum, [](Exporter& e, const Node& node) { return write_reduce(e, node, "ReduceSum", 12); }},
    {&op::cast,
     [](Exporter& e, const Node& node) { return set(plain(e, node, "Cast"), "to", static_cast<std::int64_t>(onnx_of_dtype(node.attrs[kTo]))), true; }},
    {&op::argmax,
     [](Exporter& e, const Node& node) {
       NodeProto& proto = plain(e, node, "ArgMax");
       set(proto, "axis", node.attrs[kAxis]);
       set(proto, "keepdims", std::int64_t{0});
       return true;
     }},
    {&op::broadcast_to, write_broadcast},
    {&op::slice, write_slice},
    {&op::gelu, write_gelu},
    {&op::scan, write_scan},
    {&op::sizes, write_sizes},
    {&op::one_hot, write_one_hot},
    {&op::clip, [](Exporter& e, const Node& node) { return plain(e, node, "Clip"), true; }},
    {&op::pow, [](Exporter& e, const Node& node) { return plain(e, node, "Pow"), true; }},
    {&op::maximum, [](Exporter& e, const Node& node) { return plain(e, node, "Max"), true; }},
    {&op::minimum, [](Exporter& e, const Node& node) { return plain(e, node, "Min"), true; }},
};

}  // namespace

bool write_node(Exporter& e, const Node& node) {
  for (const Row& row : kRows)
    if (*row.op == *node.op) return row.write(e, node);
  if (node.op->onnx.empty() or not node.op->attrs.empty()) return false;
  plain(e, node, node.op->onnx);
  return true;
}

}  // namespace hone::onnx
