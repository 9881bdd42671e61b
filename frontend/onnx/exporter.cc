#include "frontend/onnx/exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

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
  NodeProto& proto = plain(e, node, "LayerNormalization");
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
    {&op::sizes, write_sizes},
    {&op::one_hot, write_one_hot},
    {&op::clip, [](Exporter& e, const Node& node) { return plain(e, node, "Clip"), true; }},
    {&op::pow, [](Exporter& e, const Node& node) { return plain(e, node, "Pow"), true; }},
    {&op::maximum, [](Exporter& e, const Node& node) { return plain(e, node, "Max"), true; }},
    {&op::minimum, [](Exporter& e, const Node& node) { return plain(e, node, "Min"), true; }},
};

}  // namespace

Exporter::Exporter(const Graph& graph, GraphProto& proto, std::int64_t opset, std::set<std::string> taken, const std::vector<std::string>& given)
    : graph(graph), opset(opset), proto_(proto), names_(graph.value_count()), taken_(std::move(taken)) {
  for (std::size_t i = 0; i < graph.value_count(); ++i) {
    const std::string& own = graph.value(ValueId(i)).name;
    names_[i] = i < given.size() and not given[i].empty() ? given[i] : fresh(own.empty() ? fmt::format("v{}", i) : own);
  }
}

bool Exporter::write(const Node& node) {
  for (const Row& row : kRows)
    if (*row.op == *node.op) return row.write(*this, node);
  if (node.op->onnx.empty() or not node.op->attrs.empty()) return false;
  plain(*this, node, node.op->onnx);
  return true;
}

NodeProto& Exporter::node(std::string_view type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, const Node& from) {
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

std::string Exporter::value(std::string_view type, const std::vector<std::string>& inputs, const std::string& hint, const Node& from) {
  const std::string name = fresh(hint);
  node(type, inputs, {name}, from);
  return name;
}

std::string Exporter::constant(const Tensor& tensor, const std::string& hint) {
  TensorProto& proto = *proto_.add_initializer();
  store_tensor(&proto, tensor);
  proto.set_name(fresh(hint));
  return proto.name();
}

std::string Exporter::ints(const Ints& values, const std::string& hint) {
  return constant(Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, std::span<const std::int64_t>(values)), hint);
}

std::string Exporter::fresh(const std::string& hint) {
  std::string made = hint;
  for (int i = 0; not taken_.insert(made).second; ++i) made = fmt::format("{}_{}", hint, i);
  return made;
}

std::string Exporter::sizes(const Shape& dims, const std::string& hint, const Node& from) {
  if (is_constant(dims)) return ints(constant_shape(dims), hint);
  std::vector<std::string> parts;
  for (const Dim& dim : dims) {
    parts.push_back(dim.is_constant() ? ints({dim.value()}, hint) : size(dim, hint, from));
    if (parts.back().empty()) return "";
  }
  if (parts.size() == 1) return parts[0];
  const std::string joined = fresh(hint);
  set(node("Concat", parts, {joined}, from), "axis", std::int64_t{0});
  return joined;
}

namespace {

/// d of max(1, d), as divisors are guarded; nothing for other sizes.
std::optional<Dim> guarded(const Dim& dim) {
  constexpr std::string_view kBefore = "max(1, ";
  const std::string text = dim.text();
  if (not text.starts_with(kBefore) or not text.ends_with(')')) return std::nullopt;
  const Dim inner = Dim::parse(std::string_view(text).substr(kBefore.size(), text.size() - kBefore.size() - 1));
  return max(1, inner) == dim ? std::optional(inner) : std::nullopt;
}

}  // namespace

std::string Exporter::size(const Dim& dim, const std::string& hint, const Node& from) {
  if (const auto inner = guarded(dim)) {
    const std::string unguarded = size(*inner, hint, from);
    return unguarded.empty() ? "" : value("Max", {unguarded, ints({1}, hint)}, hint, from);
  }
  DimBindings zeros, ones;
  Dim product = 1;
  for (const std::string& symbol : dim.symbols()) zeros[symbol] = 0, ones[symbol] = 1, product *= Dim::symbol(symbol);
  const std::int64_t rest = dim.evaluate(zeros), factor = dim.evaluate(ones) - rest;
  if (product * factor + rest != dim) return "";
  std::string result;
  for (const std::string& symbol : dim.symbols()) {
    std::string one;
    for (const Input& input : graph.inputs()) {
      const Shape& shape = graph.type(input.value).shape;
      const auto axis = std::find(shape.begin(), shape.end(), Dim::symbol(symbol));
      if (input.role != Role::kInput or axis == shape.end()) continue;
      one = value("Gather", {value("Shape", {name(input.value)}, hint, from), ints({axis - shape.begin()}, hint)}, hint, from);
      break;
    }
    if (one.empty()) return "";
    result = result.empty() ? one : value("Mul", {result, one}, hint, from);
  }
  if (factor != 1) result = value("Mul", {result, ints({factor}, hint)}, hint, from);
  return rest == 0 ? result : value("Add", {result, ints({rest}, hint)}, hint, from);
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

}  // namespace hone::onnx
