// A graph as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "inspect/describe.h"
#include "inspect/flops.h"
#include "ir/op.h"
#include "ir/ops/ops.h"

namespace hone {

namespace {

/// "encoder/layer.0/attention" -> encoder, layer, 0, attention, and so "encoder.layer.0.attention". An exporter may say a name again with all that is around it:
/// "layer1/layer1.0/conv1" -> layer1, 0, conv1.
std::vector<std::string> module_path(const std::string& layer) {
  constexpr std::size_t kMostLevels = 32;
  std::vector<std::string> path;
  std::string before;
  for (const std::string& piece : split(layer, '/')) {
    const bool repeats = not before.empty() and piece.starts_with(before + ".");
    for (const std::string& name : split(repeats ? std::string_view(piece).substr(before.size() + 1) : std::string_view(piece), '.'))
      if (not name.empty() and path.size() < kMostLevels) path.push_back(shown(name));
    before = piece;
  }
  return path;
}

Json dims_of(const Shape& shape) {
  Json dims = Json::array();
  for (const Dim& dim : shape) dim.is_constant() ? dims.push_back(dim.value()) : dims.push_back(dim.text());
  return dims;
}

/// What has no layer but is made for a weight or a state ("update of layer1.0.conv1.weight", or what that becomes) has its name for one.
class Layers {
 public:
  explicit Layers(const Graph& graph) {
    for (const Input& input : graph.inputs()) names_.insert(input.name);
    for (const Alias& alias : graph.aliases())
      if (const Input* input = graph.input_of(alias.state); input != nullptr) becomes_[alias.value] = input->name;
  }
  std::string of(const Node& node) const {
    constexpr std::string_view kOf = " of ";
    if (not node.loc.layer.empty()) return node.loc.layer;
    const std::size_t at = node.loc.derived.rfind(kOf);
    if (at != std::string::npos)
      if (const std::string name = node.loc.derived.substr(at + kOf.size()); names_.contains(name)) return name;
    if (node.part != Part::kUpdate or node.results.empty()) return "";
    const auto state = becomes_.find(node.results[0]);
    return state == becomes_.end() ? "" : state->second;
  }

 private:
  std::set<std::string> names_;
  std::map<ValueId, std::string> becomes_;
};

Json bytes_of(const Type& type, const DimBindings& sizes) { return number_of(element_count(type.shape) * static_cast<std::int64_t>(size_of(type.dtype)), sizes); }

Json describe_value(const Graph& graph, ValueId id, const DimBindings& sizes) {
  const Value& value = graph.value(id);
  Json json = {{"id", id.index}, {"name", shown(value.name)}, {"type", to_string(value.type)}, {"dtype", to_string(value.type.dtype)}, {"shape", dims_of(value.type.shape)}, {"bytes", bytes_of(value.type, sizes)}};
  json["producer"] = value.producer.valid() ? Json(value.producer.index) : Json();
  if (const Input* input = graph.input_of(id); input != nullptr) {
    json["role"] = to_string(input->role);
    json["input"] = shown(input->name);
    if (const auto number = graph.scalar_constant(id)) json["number"] = *number;
  }
  return json;
}

/// A model in which everything has one name must not give a list for each pair.
std::vector<std::uint32_t> first_of(const std::vector<std::uint32_t>& nodes) {
  constexpr std::size_t kMost = 40;
  return {nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), kMost))};
}

/// Nodes of the forward pass and those that differentiate them come from one node of the model.
std::vector<std::vector<std::uint32_t>> partners_of(const Graph& graph) {
  std::map<std::pair<std::string, std::string>, std::array<std::vector<std::uint32_t>, 2>> places;
  const auto place = [](const Node& node) { return std::pair(node.loc.node, node.loc.layer); };
  for (std::size_t i = 0; i < graph.node_count(); ++i)
    if (const Node& node = graph.node(NodeId(i)); not node.loc.node.empty() and node.part <= Part::kBackward) places[place(node)][node.part == Part::kBackward].push_back(static_cast<std::uint32_t>(i));
  std::vector<std::vector<std::uint32_t>> partners(graph.node_count());
  for (std::size_t i = 0; i < graph.node_count(); ++i)
    if (const Node& node = graph.node(NodeId(i)); not node.loc.node.empty() and node.part <= Part::kBackward) partners[i] = first_of(places[place(node)][node.part != Part::kBackward]);
  return partners;
}

Json ids_of(const std::vector<ValueId>& values) {
  Json ids = Json::array();
  for (const ValueId value : values) value.valid() ? ids.push_back(value.index) : ids.push_back(nullptr);
  return ids;
}

Json describe_attributes(const Attrs& attrs) {
  Json json = Json::object();
  for (const auto& [name, attr] : attrs) {
    const std::string text = to_string(attr.value);
    json[std::string(name)] = shown(text);
  }
  return json;
}

Json describe_origin(const Loc& loc) {
  Json origin = Json::object();
  const auto add = [&](const char* key, const std::string& text) {
    if (not text.empty()) origin[key] = shown(text);
  };
  add("node", loc.node), add("layer", loc.layer), add("derived", loc.derived);
  return origin;
}

Json describe_node(const Graph& graph, NodeId id, const Layers& layers, const DimBindings& sizes) {
  const Node& node = graph.node(id);
  Json json = {{"id", id.index}, {"op", node.op->name}, {"part", to_string(node.part)}, {"operands", ids_of(node.operands)}, {"results", ids_of(node.results)}};
  json["attributes"] = describe_attributes(node.attrs);
  json["origin"] = describe_origin(node.loc);
  json["module"] = module_path(layers.of(node));
  const auto flops = flops_of(graph, id, sizes);
  json["flops"] = flops ? Json(*flops) : Json();
  if (*node.op == op::reshape) json["view"] = true;
  for (const auto& body : node.bodies) json["bodies"].push_back(describe_graph(*body, sizes));  // the verifier limits the depth
  return json;
}

}  // namespace

Json describe_graph(const Graph& graph, const DimBindings& sizes) {
  Json json = {{"name", shown(graph.name)}, {"inputs", Json::array()}, {"outputs", Json::array()}, {"aliases", Json::array()}, {"ops", Json::object()}, {"values", Json::array()}, {"nodes", Json::array()}};
  for (const Input& input : graph.inputs()) json["inputs"].push_back(input.value.index);
  for (const Output& output : graph.outputs()) json["outputs"].push_back({{"name", shown(output.name)}, {"value", output.value.index}});
  for (const Alias& alias : graph.aliases()) json["aliases"].push_back({{"state", alias.state.index}, {"value", alias.value.index}});
  std::map<std::string, std::string> docs;
  for (const Node& node : graph.nodes()) docs.try_emplace(std::string(node.op->name), node.op->doc);
  for (const auto& [name, doc] : docs) json["ops"][name] = doc;
  for (std::size_t i = 0; i < graph.value_count(); ++i) json["values"].push_back(describe_value(graph, ValueId(i), sizes));
  const auto partners = partners_of(graph);
  const Layers layers(graph);
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    json["nodes"].push_back(describe_node(graph, NodeId(i), layers, sizes));
    json["nodes"].back()["partners"] = partners[i];
  }
  return json;
}

}  // namespace hone
