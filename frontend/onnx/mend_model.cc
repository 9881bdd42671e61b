#include "frontend/onnx/mend_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/patterns.h"
#include "base/module_names.h"
#include "base/text.h"

namespace hone::onnx {

namespace {

bool is_float_tensor(const TensorProto& tensor) {
  const auto dtype = dtype_of_onnx(tensor.data_type());
  return dtype and is_float(*dtype);
}

}  // namespace

bool all_elements_equal(const Tensor& tensor) {
  const std::span<const std::byte> bytes = tensor.bytes();
  const std::size_t element = size_of(tensor.dtype());
  return bytes.size() < 2 * element or std::memcmp(bytes.data(), bytes.data() + element, bytes.size() - element) == 0;
}

std::int64_t integer_attribute(const NodeProto& node, std::string_view name, std::int64_t otherwise) {
  const auto found = std::ranges::find_if(node.attribute(), [&](const AttributeProto& attribute) { return attribute.name() == name; });
  return found == node.attribute().end() ? otherwise : found->i();
}

bool are_equal(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() and a.shape() == b.shape() and std::memcmp(a.bytes().data(), b.bytes().data(), a.byte_count()) == 0;
}

MendModel::MendModel(ModelProto& model, const std::string& file, const std::string& folder, const MendOptions& options, Diags& diags)
    : model_(model), graph_(*model.mutable_graph()), folder_(folder), options_(options), diags_(diags), locations_(graph_.node(), file), program_(graph_) {
  const auto is_of_newer = [](const NodeProto& node) { return node.name().starts_with("node_"); };
  is_from_torchscript_ = is_from_pytorch() and not program_.is_recorded() and std::none_of(graph_.node().begin(), graph_.node().end(), is_of_newer);
  index();
}

void MendModel::index() {
  readers_ = readers_of(graph_);
  initializers_.clear();
  taken_.clear();
  for (const TensorProto& tensor : graph_.initializer()) {
    initializers_.emplace(tensor.name(), &tensor);
    taken_.insert(tensor.name());
  }
  for (const ValueInfoProto& input : graph_.input()) taken_.insert(input.name());
  layers_.clear();
  for (const NodeProto& node : graph_.node()) {
    taken_.insert(node.output().begin(), node.output().end());
    layers_.insert(locations_.of(node).layer);
  }
  has_numbered_modules_ = std::any_of(layers_.begin(), layers_.end(), [&](const std::string& layer) {
    const std::string first = without_calls(layer);
    return first != layer and has_layer(first) and has_parameters_of(module_name(layer));
  });
}

std::vector<std::string> MendModel::weights() const {
  std::vector<std::string> names;
  for (const TensorProto& tensor : graph_.initializer())
    if (is_weight(tensor.name())) names.push_back(tensor.name());
  return names;
}

const TensorProto* MendModel::initializer(const std::string& name) const {
  const auto found = initializers_.find(name);
  return found == initializers_.end() ? nullptr : found->second;
}

bool MendModel::is_weight(const std::string& name) const {
  const TensorProto* tensor = initializer(name);
  if (tensor == nullptr or not is_float_tensor(*tensor)) return false;
  const Origin origin = program_.origin_of(name);
  return tensor->dims_size() > 0 ? origin != Origin::kConstant : origin == Origin::kParameter or is_scalar_of_module(*tensor);
}

/// PyTorch's older exporter makes initializers of a module's parameters and buffers, and nodes of constants; what it folds it calls "onnx::Mul_12". tf2onnx calls
/// variables of TensorFlow after the node that read them.
bool MendModel::is_scalar_of_module(const TensorProto& tensor) const {
  const std::string& name = tensor.name();
  if (tensor.data_type() != TensorProto::FLOAT or not std::all_of(tensor.dims().begin(), tensor.dims().end(), [](std::int64_t extent) { return extent == 1; })) return false;
  if (is_from_keras()) return tensor.dims_size() == 0 and name.ends_with("/ReadVariableOp:0");
  const bool is_of_module = name.find("::") == std::string::npos and name.find_first_not_of("0123456789") != std::string::npos and not name.starts_with("/");
  return is_from_torchscript_ and is_of_module;
}

std::optional<Tensor> MendModel::values(const std::string& name) const {
  const TensorProto* tensor = initializer(name);
  if (tensor == nullptr) return std::nullopt;
  try {
    return tensor_of(*tensor, folder_, locations_.file());
  } catch (const Error&) { return std::nullopt; }  // the importer reports it
}

const std::vector<Reader>& MendModel::readers(const std::string& name) const {
  static const std::vector<Reader> kNone;
  const auto found = readers_.find(name);
  return found == readers_.end() ? kNone : found->second;
}

bool MendModel::is_read_by(const std::string& name, std::string_view op_type, int operand) const {
  const auto& all = readers(name);
  return std::any_of(all.begin(), all.end(), [&](const Reader& reader) {
    return reader.node >= 0 and reader.operand == operand and graph_.node(reader.node).op_type() == op_type;
  });
}

bool MendModel::is_read_outside(const std::string& name) const {
  const auto& all = readers(name);
  return std::any_of(all.begin(), all.end(), [](const Reader& reader) { return reader.node < 0; });
}

const std::string* MendModel::tie_pattern(const std::string& name) const {
  const auto found = std::find_if(options_.tie.begin(), options_.tie.end(), [&](const std::string& pattern) { return matches_name(pattern, name); });
  return found == options_.tie.end() ? nullptr : &*found;
}

std::vector<std::string> MendModel::checked_names_to_tie() const {
  std::vector<std::string> names = weights();
  for (const NodeProto& node : graph_.node())
    if (node.op_type() == "Identity" and node.input_size() == 1 and node.output_size() == 1 and is_weight(node.input(0))) names.push_back(node.output(0));
  for (const std::string& pattern : options_.tie)
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return matches_name(pattern, name); }))
      refuse_pattern("model.tie", pattern, "weight of the model", "the model's weights", names);
  return names;
}

void MendModel::warn_of_idle_ties(const std::vector<std::string>& names) const {
  const auto is_shared = [&](const std::string& name) { return not is_weight(name) or is_read_outside(name) or readers(name).size() > 1; };  // what was tied to another weight is no longer one
  for (const std::string& pattern : options_.tie)
    if (std::ranges::none_of(names, [&](const std::string& name) { return matches_name(pattern, name) and is_shared(name); }))
      warn(fmt::format("model.tie: {} ties nothing: what it matches is read once, and equals no other weight or its transpose", quoted(pattern)), {"weights of different numbers are not tied: copy one over the other in the file first"});
}

std::vector<GraphProto*> MendModel::bodies() {
  std::vector<GraphProto*> all;
  const auto add_those_of = [&](GraphProto& graph) {
    for (NodeProto& node : *graph.mutable_node())
      for (AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) all.push_back(attribute.mutable_g());
        for (GraphProto& body : *attribute.mutable_graphs()) all.push_back(&body);
      }
  };
  add_those_of(graph_);
  for (std::size_t i = 0; i < all.size(); ++i) add_those_of(*all[i]);
  return all;
}

void MendModel::copy_weight(const std::string& from, const std::string& name) {
  TensorProto copy = *initializer(from);
  copy.set_name(name);
  add_weight(std::move(copy));
  program_.add(name, program_.origin_of(from), program_.parameters_in(from));
}

void MendModel::copy_as(const std::string& from, const std::string& name, Origin origin, std::set<std::string> parameters) {
  copy_weight(from, name);
  program_.add(name, origin, std::move(parameters));
}

void MendModel::add_weight(TensorProto weight) {
  constexpr std::int64_t kInitializersAreNoInputs = 4;  // from this version of the format on
  if (model_.ir_version() < kInitializersAreNoInputs) {
    ValueInfoProto& input = *graph_.add_input();
    input.set_name(weight.name());
    auto& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(weight.data_type());
    for (const std::int64_t extent : weight.dims()) type.mutable_shape()->add_dim()->set_dim_value(extent);
  }
  taken_.insert(weight.name());
  *graph_.add_initializer() = std::move(weight);
}

void MendModel::add_parameter(TensorProto weight, const std::string& parameter) {
  program_.add(weight.name(), Origin::kParameter, {parameter});
  add_weight(std::move(weight));
}

void MendModel::set_bias(int node, const std::string& weight) {
  NodeProto& layer = *graph_.mutable_node(node);
  if (layer.input_size() > 2) layer.set_input(2, weight);
  else layer.add_input(weight);
}

void MendModel::add_behind(int node, const std::string& weight) {
  NodeProto& layer = *graph_.mutable_node(node);
  const std::string product = take_name(layer.output(0) + "/without_bias");
  NodeProto& sum = behind_.emplace(node, NodeProto())->second;
  sum.set_op_type("Add");
  sum.set_name(locations_.of(layer).node + "/bias");
  sum.add_input(product);
  sum.add_input(weight);
  sum.add_output(layer.output(0));
  layer.set_output(0, product);
}

void MendModel::derive_weight(const std::string& weight, const std::string& from, std::string_view op_type) {
  remove_weight(weight);
  add_node(op_type, {from}, weight).set_name("tie " + weight);
}

void MendModel::remove_weight(const std::string& weight) {
  auto& initializers = *graph_.mutable_initializer();
  initializers.erase(std::find_if(initializers.begin(), initializers.end(), [&](const TensorProto& tensor) { return tensor.name() == weight; }));
  auto& inputs = *graph_.mutable_input();
  const auto input = std::find_if(inputs.begin(), inputs.end(), [&](const ValueInfoProto& info) { return info.name() == weight; });
  if (input != inputs.end()) inputs.erase(input);
}

NodeProto& MendModel::add_node(std::string_view op_type, const std::vector<std::string>& inputs, const std::string& output) {
  NodeProto& node = added_.emplace_back();
  node.set_op_type(std::string(op_type));
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

std::string MendModel::take_name(std::string wanted) {
  while (not is_free(wanted)) wanted += "_";
  return *taken_.insert(std::move(wanted)).first;
}

void MendModel::redirect(const Reader& reader, const std::string& name) { graph_.mutable_node(reader.node)->set_input(reader.operand, name); }

void MendModel::copy_node(int node, std::span<const Reader> readers) {
  NodeProto copy = graph_.node(node);
  copy.set_name(fmt::format("{}@{}", locations_.of(graph_.node(node)).node, locations_.of(graph_.node(readers[0].node)).node));
  for (std::string& output : *copy.mutable_output()) {
    if (output.empty()) continue;
    const std::string before = output;
    output = take_name(before);
    for (const Reader& reader : readers)
      if (graph_.node(reader.node).input(reader.operand) == before) redirect(reader, output);
  }
  behind_.emplace(node, std::move(copy));
}

void MendModel::finish() {
  if (not added_.empty() or not removed_.empty() or not behind_.empty()) {
    google::protobuf::RepeatedPtrField<NodeProto> nodes;
    for (NodeProto& node : added_) *nodes.Add() = std::move(node);
    for (int i = 0; i < graph_.node_size(); ++i) {
      if (not removed_.contains(i)) *nodes.Add() = std::move(*graph_.mutable_node(i));
      for (auto [next, last] = behind_.equal_range(i); next != last; ++next) *nodes.Add() = std::move(next->second);
    }
    behind_.clear();
    graph_.mutable_node()->Swap(&nodes);
    added_.clear();
    removed_.clear();
  }
  index();
}

std::string first_of(const std::vector<std::string>& items) {
  constexpr std::size_t kMostNamed = 6;
  const std::size_t named = std::min(items.size(), kMostNamed);
  const std::string list = join(std::span(items).first(named), ", ");
  return named == items.size() ? list : fmt::format("{} and {} more", list, items.size() - named);
}

std::string list_of(const std::vector<std::string>& names) {
  std::vector<std::string> items;
  for (const std::string& name : names) items.push_back(quoted(name));
  return first_of(items);
}

}  // namespace hone::onnx
