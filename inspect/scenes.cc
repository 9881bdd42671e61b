// What scenes are made of, from a description.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "inspect/clean_text.h"
#include "inspect/scene.h"

namespace hone {

namespace {

const std::vector<std::string> kLanes = {"forward", "loss", "backward", "all_reduce", "update"};  // Part's names in the order of a step

std::uint32_t lane_of(const std::string& part) {
  const auto found = std::ranges::find(kLanes, part);
  return found == kLanes.end() ? 0 : static_cast<std::uint32_t>(found - kLanes.begin());
}

const std::string& text_of(const Json& json, const char* key) {
  static const std::string none;
  const auto found = json.find(key);
  return found != json.end() and found->is_string() ? found->get_ref<const std::string&>() : none;
}

std::string last_piece(const std::string& path) { return path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1); }

/// The modules around a node and, because one ONNX node may have become many, that.
std::vector<std::string> path_of(const Json& node) {
  std::vector<std::string> path;
  for (const Json& name : node["module"]) path.push_back(clean_text(name.get<std::string>()));
  const std::string& origin = text_of(node["origin"], "node");
  if (not origin.empty()) path.push_back(clean_text(path.empty() ? origin : last_piece(origin)));
  return path;
}

/// "mul 0.9": numbers among the operands stand in the title.
std::string title_of(const Json& node, const Json& values) {
  std::string title = node["op"].get<std::string>();
  for (const Json& operand : node["operands"])
    if (not operand.is_null())
      if (const Json& value = values[operand.get<std::size_t>()]; value.contains("number")) title += value["number"].is_null() ? " nan" : fmt::format(" {:.4g}", value["number"].get<double>());
  return title;
}

std::string type_of_result(const Json& node, const Json& values) { return node["results"].empty() ? "" : clean_text(text_of(values[node["results"][0].get<std::size_t>()], "type")); }

}  // namespace

ScenePieces pieces_of_graph(const Json& graph) {
  const Json &values = graph["values"], &nodes = graph["nodes"];
  std::vector<SceneItem> items;
  std::vector<SceneEdge> edges;
  std::vector<SceneSource> sources;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const Json& node = nodes[i];
    items.push_back({title_of(node, values), type_of_result(node, values), path_of(node), lane_of(text_of(node, "part")), i});
    for (const Json& operand : node["operands"]) {
      if (operand.is_null()) continue;
      const Json& value = values[operand.get<std::size_t>()];
      if (not value["producer"].is_null()) edges.push_back({value["producer"].get<std::uint32_t>(), i});
      else if (not value.contains("number")) sources.push_back({clean_text(text_of(value, "input").empty() ? text_of(value, "role") : text_of(value, "input")), operand.get<std::uint32_t>(), i});
    }
  }
  return {kLanes, std::move(items), std::move(edges), std::move(sources)};
}

namespace {

/// "conv", "mul, add, relu", "add, mul and 15 more"
std::string ops_of(const Json& step, const Json& nodes) {
  std::vector<std::string> ops;
  std::set<std::string> seen;
  for (const Json& id : step["nodes"])
    if (const std::string op = text_of(nodes[id.get<std::size_t>()], "op"); seen.insert(op).second) ops.push_back(op);
  if (ops.empty()) return text_of(step, "kind");
  std::string text = ops[0];
  for (std::size_t i = 1; i < std::min<std::size_t>(ops.size(), 3); ++i) text += ", " + ops[i];
  return ops.size() > 3 ? text + fmt::format(" +{}", ops.size() - 3) : text;
}

/// Of the first of its nodes that belongs to the step's part and has one.
std::vector<std::string> path_of_step(const Json& step, const Json& nodes) {
  std::vector<std::string> path;
  for (const Json& id : step["nodes"]) {
    const Json& node = nodes[id.get<std::size_t>()];
    if (node["part"] != step["part"]) continue;
    for (const Json& name : node["module"]) path.push_back(clean_text(name.get<std::string>()));
    if (not path.empty()) return path;
  }
  return path;
}

}  // namespace

ScenePieces pieces_of_schedule(const Json& entry, const Json& graph) {
  const Json &nodes = graph["nodes"], &buffers = entry["buffers"], &steps = entry["steps"];
  const auto root = [&](std::uint32_t buffer) {
    while (buffers[buffer].contains("of")) buffer = buffers[buffer]["of"].get<std::uint32_t>();
    return buffer;
  };
  std::vector<SceneItem> items;
  std::vector<SceneEdge> edges;
  std::vector<SceneSource> sources;
  std::map<std::uint32_t, std::uint32_t> written_by;  // root -> the last step that wrote it
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const Json& step = steps[i];
    items.push_back({fmt::format("{} {}", i, clean_text(ops_of(step, nodes))), clean_text(text_of(step, "name")), path_of_step(step, nodes), lane_of(text_of(step, "part")), i});
    for (const Json& read : step["reads"]) {
      const std::uint32_t buffer = root(read.get<std::uint32_t>());
      if (const auto writer = written_by.find(buffer); writer != written_by.end()) edges.push_back({writer->second, i});
      else if (text_of(buffers[buffer], "role") != "constant") sources.push_back({clean_text(text_of(buffers[buffer], "name")), buffer, i});
    }
    for (const Json& write : step["writes"]) written_by[root(write.get<std::uint32_t>())] = i;
  }
  return {kLanes, std::move(items), std::move(edges), std::move(sources)};
}

}  // namespace hone
