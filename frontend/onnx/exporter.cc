#include "frontend/onnx/exporter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/dim_parts.h"
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

void set(NodeProto& node, const std::string& name, const std::string& value) {
  AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(AttributeProto::STRING);
  attribute.set_s(value);
}

Exporter::Exporter(const Graph& graph, GraphProto& proto, std::int64_t opset, Formulas formulas, std::set<std::string> taken, const std::vector<std::string>& given)
    : graph(graph), opset(opset), formulas(formulas), proto_(&proto), taken_(std::make_shared<Taken>(Taken{std::move(taken), {}})), names_(graph.value_count()) {
  name_values(given);
}

Exporter::Exporter(const Graph& body, GraphProto& proto, Exporter& outer)
    : graph(body), opset(outer.opset), formulas(outer.formulas), proto_(&proto), outer_(&outer), taken_(outer.taken_), names_(body.value_count()) {
  name_values({});
}

Exporter::Exporter(const Graph& graph, FunctionProto& proto, std::int64_t opset)
    : graph(graph), opset(opset), formulas(Formulas::kWritten), function_(&proto), taken_(std::make_shared<Taken>()), names_(graph.value_count()) {}

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
      NodeProto& copy = add_node();
      copy.set_op_type("Identity");
      copy.add_input(name(output.value));
      copy.add_output(output_names_[i]);
    }
    write_value_info(*proto_->add_output(), output_names_[i], graph.type(output.value));
  }
}

NodeProto& Exporter::add_node() { return function_ != nullptr ? *function_->add_node() : *proto_->add_node(); }

NodeProto& Exporter::node(std::string_view type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, const Node& from) {
  NodeProto& made = add_node();
  made.set_op_type(std::string(type));
  for (const std::string& input : inputs) made.add_input(input);
  for (const std::string& output : outputs) made.add_output(output);
  if (function_ != nullptr) return made;
  const std::string& origin = from.loc.node.empty() ? outputs[0] : from.loc.node;
  std::string wanted = taken_->nodes.contains(origin) ? fmt::format("{}/{}", origin, type) : origin;  // a layer of several nodes: "conv", "conv/Add"
  for (int i = 1; not taken_->nodes.insert(wanted).second; ++i) wanted = fmt::format("{}/{}_{}", origin, type, i);
  made.set_name(wanted);
  return made;
}

std::string Exporter::value(std::string_view type, const std::vector<std::string>& inputs, const std::string& hint, const Node& from) {
  const std::string name = fresh(hint);
  node(type, inputs, {name}, from);
  return name;
}

void Exporter::finish(const std::string& made, ValueId value, const Node& from) {
  auto& nodes = function_ != nullptr ? *function_->mutable_node() : *proto_->mutable_node();
  NodeProto* last = nodes.empty() ? nullptr : &nodes[nodes.size() - 1];
  const bool is_shared = last != nullptr and (last->op_type() == "Constant" or std::any_of(symbols_.begin(), symbols_.end(), [&](const auto& symbol) { return symbol.second == made; }));
  if (last != nullptr and not is_shared and last->output_size() == 1 and last->output(0) == made) last->set_output(0, name(value));
  else node("Identity", {made}, {name(value)}, from);
}

std::string Exporter::constant(const Tensor& tensor, const std::string& hint) {
  TensorProto proto;
  store_tensor(&proto, tensor);
  if (function_ == nullptr) {
    proto.set_name(fresh(hint));
    return (*proto_->add_initializer() = std::move(proto)).name();
  }
  std::string& name = constants_[proto.SerializeAsString()];
  if (not name.empty()) return name;
  name = fresh(hint);
  NodeProto& made = add_node();
  made.set_op_type("Constant");
  made.add_output(name);
  AttributeProto& attribute = *made.add_attribute();
  attribute.set_name("value");
  attribute.set_type(AttributeProto::TENSOR);
  *attribute.mutable_t() = std::move(proto);
  return name;
}

void Exporter::initializer(ValueId value, const Tensor& tensor) {
  TensorProto& proto = *proto_->add_initializer();
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

std::string Exporter::cast(const std::string& value, DType to, const std::string& hint, const Node& from) {
  const std::string made = fresh(hint);
  set(node("Cast", {value}, {made}, from), "to", static_cast<std::int64_t>(onnx_of_dtype(to)));
  return made;
}

std::string Exporter::size(const Dim& dim, const std::string& hint, const Node& from) {
  using Kind = DimParts::Kind;
  const DimParts parts = parts_of(dim);
  const auto of = [&](std::string_view type, const std::string& a, const std::string& b) { return a.empty() or b.empty() ? "" : value(type, {a, b}, hint, from); };
  const auto both = [&](std::string_view type) { return of(type, size(parts.a, hint, from), size(parts.b, hint, from)); };
  switch (parts.kind) {
    case Kind::kNumber: return ints({parts.number}, hint);
    case Kind::kSymbol: return symbol(parts.symbol, from);
    case Kind::kMax: return both("Max");
    case Kind::kMin: return both("Min");
    case Kind::kMod: return both("Mod");
    case Kind::kFloorDiv: {  // Div rounds towards zero
      const std::string a = size(parts.a, hint, from), b = size(parts.b, hint, from), rest = of("Mod", a, b);
      return of("Div", of("Sub", a, rest), b);
    }
    case Kind::kSum: break;
  }
  std::string sum;
  for (const DimParts::Term& term : parts.terms) {
    std::string product;
    for (const Dim& atom : term.atoms) {
      const std::string factor = size(atom, hint, from);
      if (factor.empty()) return "";
      product = product.empty() ? factor : of("Mul", product, factor);
    }
    if (term.factor != 1) product = of("Mul", product, ints({term.factor}, hint));
    sum = sum.empty() ? product : of("Add", sum, product);
  }
  return parts.number == 0 ? sum : of("Add", sum, ints({parts.number}, hint));
}

std::string Exporter::symbol(const std::string& symbol, const Node& from) {
  for (const Exporter* each = this; each != nullptr; each = each->outer_)
    if (const auto found = each->symbols_.find(symbol); found != each->symbols_.end()) return found->second;
  if (function_ != nullptr) return symbols_[symbol] = fresh("size_of_" + symbol);
  const std::string made = find_symbol(symbol, from);
  if (not made.empty()) symbols_[symbol] = made;
  return made;
}

std::string Exporter::find_symbol(const std::string& symbol, const Node& from) {
  Exporter* model = this;
  while (model->outer_ != nullptr) model = model->outer_;
  const Dim wanted = Dim::parse(symbol);
  for (const Input& input : model->graph.inputs()) {
    const Shape& shape = model->graph.type(input.value).shape;
    const auto axis = std::find(shape.begin(), shape.end(), wanted);
    if (input.role != Role::kInput or axis == shape.end()) continue;
    return value("Gather", {value("Shape", {model->name(input.value)}, symbol, from), ints({axis - shape.begin()}, symbol)}, symbol, from);
  }
  for (const Node& node : model->graph.nodes()) {
    const Shape& symbols = node.attrs[kSizes];
    const auto element = std::find(symbols.begin(), symbols.end(), wanted);
    if (not node.op->binds or element == symbols.end()) continue;
    const std::string flat = value("Reshape", {model->name(node.operands[0]), ints({-1}, symbol)}, symbol, from);
    const std::string one = value("Gather", {flat, ints({element - symbols.begin()}, symbol)}, symbol, from);
    return model->graph.type(node.operands[0]).dtype == DType::kI64 ? one : cast(one, DType::kI64, symbol, from);
  }
  for (const auto& [a, b] : model->graph.equations()) {
    if (a != wanted and b != wanted) continue;
    const Dim& other = a == wanted ? b : a;
    const auto is_fed = [&](const std::string& name) {
      return std::any_of(model->graph.inputs().begin(), model->graph.inputs().end(), [&](const Input& input) {
        const Shape& shape = model->graph.type(input.value).shape;
        return input.role == Role::kInput and std::find(shape.begin(), shape.end(), Dim::parse(name)) != shape.end();
      });
    };
    const std::vector<std::string> names = other.symbols();
    if (std::all_of(names.begin(), names.end(), is_fed)) return size(other, symbol, from);
  }
  return "";
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
