#include "frontend/onnx/exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/ops/ops.h"

namespace hone::onnx {

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

Exporter::Exporter(const Graph& graph, GraphProto& proto, std::int64_t opset, std::set<std::string> taken, const std::vector<std::string>& given)
    : graph(graph), opset(opset), proto_(proto), taken_(std::make_shared<Taken>(Taken{std::move(taken), {}})), names_(graph.value_count()) {
  name_values(given);
}

Exporter::Exporter(const Graph& body, GraphProto& proto, const Exporter& outer)
    : graph(body), opset(outer.opset), proto_(proto), outer_(&outer), taken_(outer.taken_), names_(body.value_count()) {
  name_values({});
}

void Exporter::name_values(const std::vector<std::string>& given) {
  for (std::size_t i = 0; i < graph.value_count(); ++i) {
    const std::string& own = graph.value(ValueId(i)).name;
    names_[i] = i < given.size() and not given[i].empty() ? given[i] : fresh(own.empty() ? fmt::format("v{}", i) : own);
  }
}

bool Exporter::write(const Node& node) { return write_node(*this, node); }

void Exporter::name_outputs() {
  std::set<ValueId> named;
  for (const Output& output : graph.outputs()) {
    output_names_.push_back(outer_ == nullptr ? output.name : fresh(output.name));
    if (graph.input_of(output.value) == nullptr and named.insert(output.value).second) rename(output.value, output_names_.back());
  }
}

void Exporter::write_outputs() {
  for (std::size_t i = 0; i < output_names_.size(); ++i) {
    const Output& output = graph.outputs()[i];
    if (name(output.value) != output_names_[i]) {
      NodeProto& copy = *proto_.add_node();
      copy.set_op_type("Identity");
      copy.add_input(name(output.value));
      copy.add_output(output_names_[i]);
    }
    write_value_info(*proto_.add_output(), output_names_[i], graph.type(output.value));
  }
}

NodeProto& Exporter::node(std::string_view type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, const Node& from) {
  NodeProto& made = *proto_.add_node();
  made.set_op_type(std::string(type));
  const std::string& origin = from.loc.node.empty() ? outputs[0] : from.loc.node;
  std::string wanted = taken_->nodes.contains(origin) ? fmt::format("{}/{}", origin, type) : origin;  // a layer of several nodes: "conv", "conv/Add"
  for (int i = 1; not taken_->nodes.insert(wanted).second; ++i) wanted = fmt::format("{}/{}_{}", origin, type, i);
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

void Exporter::initializer(ValueId value, const Tensor& tensor) {
  TensorProto& proto = *proto_.add_initializer();
  store_tensor(&proto, tensor);
  proto.set_name(name(value));
}

std::string Exporter::ints(const Ints& values, const std::string& hint) {
  return constant(Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, std::span<const std::int64_t>(values)), hint);
}

std::string Exporter::fresh(const std::string& hint) {
  std::string made = hint;
  for (int i = 0; not taken_->values.insert(made).second; ++i) made = fmt::format("{}_{}", hint, i);
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
  const Exporter* outermost = this;
  while (outermost->outer_ != nullptr) outermost = outermost->outer_;
  const Exporter& model = *outermost;
  DimBindings zeros, ones;
  Dim product = 1;
  for (const std::string& symbol : dim.symbols()) zeros[symbol] = 0, ones[symbol] = 1, product *= Dim::symbol(symbol);
  const std::int64_t rest = dim.evaluate(zeros), factor = dim.evaluate(ones) - rest;
  if (product * factor + rest != dim) return "";
  std::string result;
  for (const std::string& symbol : dim.symbols()) {
    std::string one;
    for (const Input& input : model.graph.inputs()) {
      const Shape& shape = model.graph.type(input.value).shape;
      const auto axis = std::find(shape.begin(), shape.end(), Dim::symbol(symbol));
      if (input.role != Role::kInput or axis == shape.end()) continue;
      one = value("Gather", {value("Shape", {model.name(input.value)}, hint, from), ints({axis - shape.begin()}, hint)}, hint, from);
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
