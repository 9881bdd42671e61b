#include "frontend/onnx/export.h"

#include <fmt/format.h>

#include <set>

#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// Writes one graph's nodes; names are made up where values have none.
class Exporter {
 public:
  explicit Exporter(const Graph& graph, GraphProto& proto) : graph(graph), proto_(proto), names_(graph.value_count()) {
    for (std::size_t i = 0; i < graph.value_count(); ++i) claim(ValueId(i), graph.value(ValueId(i)).name);
    for (const Output& output : graph.outputs()) names_[output.value.index] = output.name;
  }

  const Graph& graph;

  const std::string& name(ValueId value) const { return names_[value.index]; }

  /// A node with these inputs and one new output name; attributes are added by the caller.
  NodeProto& node(std::string_view type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, const Node& from) {
    NodeProto& made = *proto_.add_node();
    made.set_op_type(std::string(type));
    const std::string& origin = from.loc.node.empty() ? outputs[0] : from.loc.node;
    std::string wanted = node_names_.contains(origin) ? fmt::format("{}/{}", origin, type) : origin;  // a layer of several nodes: "conv", "conv/Add"
    for (int i = 1; not node_names_.insert(wanted).second; ++i) wanted = fmt::format("{}/{}_{}", origin, type, i);
    made.set_name(wanted);
    for (const std::string& input : inputs) made.add_input(input);
    for (const std::string& output : outputs) made.add_output(output);
    return made;
  }

  /// An initializer holding small integers.
  std::string ints(const Ints& values, const std::string& hint) {
    TensorProto& tensor = *proto_.add_initializer();
    store_tensor(&tensor, Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, std::span<const std::int64_t>(values)));
    tensor.set_name(fresh(hint));
    return tensor.name();
  }

  std::string fresh(const std::string& hint) {
    std::string made = hint;
    for (int i = 0; not taken_.insert(made).second; ++i) made = fmt::format("{}_{}", hint, i);
    return made;
  }

 private:
  void claim(ValueId value, const std::string& wanted) { names_[value.index] = fresh(wanted.empty() ? fmt::format("v{}", value.index) : wanted); }

  GraphProto& proto_;
  std::vector<std::string> names_;
  std::set<std::string> taken_;
  std::set<std::string> node_names_;
};

void set(NodeProto& node, const std::string& name, std::int64_t value) {
  AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(AttributeProto::INT);
  attribute.set_i(value);
}
void set(NodeProto& node, const std::string& name, double value) {
  AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(AttributeProto::FLOAT);
  attribute.set_f(static_cast<float>(value));
}
void set(NodeProto& node, const std::string& name, const Ints& values) {
  AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(AttributeProto::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}

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
  if (symbols > 1) return false;
  e.node("Reshape", {e.name(node.operands[0]), e.ints(shape, e.name(node.results[0]) + "_shape")}, {e.name(node.results[0])}, node);
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

template <bool kAxesAreInput>
bool write_reduce(Exporter& e, const Node& node, std::string_view type) {
  std::vector<std::string> inputs = operands(e, node);
  if (kAxesAreInput) inputs.push_back(e.ints(node.attrs[kAxes], e.name(node.results[0]) + "_axes"));
  NodeProto& proto = e.node(type, inputs, {e.name(node.results[0])}, node);
  if (not kAxesAreInput) set(proto, "axes", node.attrs[kAxes]);
  set(proto, "keepdims", static_cast<std::int64_t>(node.attrs[kKeepDims]));
  return true;
}

bool with_axis(Exporter& e, const Node& node, std::string_view type) {
  set(plain(e, node, type), "axis", node.attrs[kAxis]);
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
    {&op::transpose, [](Exporter& e, const Node& node) { return set(plain(e, node, "Transpose"), "perm", node.attrs[kPerm]), true; }},
    {&op::concat, [](Exporter& e, const Node& node) { return with_axis(e, node, "Concat"); }},
    {&op::gather, [](Exporter& e, const Node& node) { return with_axis(e, node, "Gather"); }},
    {&op::softmax, [](Exporter& e, const Node& node) { return with_axis(e, node, "Softmax"); }},
    {&op::log_softmax, [](Exporter& e, const Node& node) { return with_axis(e, node, "LogSoftmax"); }},
    {&op::reduce_mean, [](Exporter& e, const Node& node) { return write_reduce<false>(e, node, "ReduceMean"); }},
    {&op::reduce_max, [](Exporter& e, const Node& node) { return write_reduce<false>(e, node, "ReduceMax"); }},
    {&op::reduce_sum, [](Exporter& e, const Node& node) { return write_reduce<true>(e, node, "ReduceSum"); }},
    {&op::cast,
     [](Exporter& e, const Node& node) { return set(plain(e, node, "Cast"), "to", static_cast<std::int64_t>(onnx_of_dtype(node.attrs[kTo]))), true; }},
    {&op::clip, [](Exporter& e, const Node& node) { return plain(e, node, "Clip"), true; }},
    {&op::pow, [](Exporter& e, const Node& node) { return plain(e, node, "Pow"), true; }},
    {&op::maximum, [](Exporter& e, const Node& node) { return plain(e, node, "Max"), true; }},
    {&op::minimum, [](Exporter& e, const Node& node) { return plain(e, node, "Min"), true; }},
};

bool write_node(Exporter& e, const Node& node) {
  for (const Row& row : kRows)
    if (*row.op == *node.op) return row.write(e, node);
  if (node.op->onnx.empty() or not node.op->attrs.empty()) return false;
  plain(e, node, node.op->onnx);
  return true;
}

void write_value_info(ValueInfoProto& info, const std::string& name, const Type& type) {
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx_of_dtype(type.dtype));
  auto& shape = *tensor.mutable_shape();
  for (const Dim& dim : type.shape) {
    auto& proto = *shape.add_dim();
    if (dim.is_constant()) proto.set_dim_value(dim.value());
    else proto.set_dim_param(dim.text());
  }
}

}  // namespace

ModelProto export_model(const Graph& graph) {
  ModelProto model;
  model.set_ir_version(8);
  model.set_producer_name("hone");
  auto& opset = *model.add_opset_import();
  opset.set_domain("");
  opset.set_version(17);
  GraphProto& proto = *model.mutable_graph();
  proto.set_name(graph.name.empty() ? "model" : graph.name);
  Exporter exporter(graph, proto);
  for (const Input& input : graph.inputs()) {
    if (input.data) {
      TensorProto& tensor = *proto.add_initializer();
      store_tensor(&tensor, *input.data);
      tensor.set_name(exporter.name(input.value));
    } else {
      write_value_info(*proto.add_input(), exporter.name(input.value), graph.type(input.value));
    }
  }
  Diags problems;
  for (const Node& node : graph.nodes())
    if (not write_node(exporter, node))
      problems.error(Code::kUnknownOp, fmt::format("{} {} cannot be written as ONNX", node.op->name, node.attrs.text()), node.loc);
  problems.throw_if_errors();
  for (const Output& output : graph.outputs()) write_value_info(*proto.add_output(), output.name, graph.type(output.value));
  return model;
}

void save(const Graph& graph, const std::string& path) { save_model(export_model(graph), path); }

}  // namespace hone::onnx
