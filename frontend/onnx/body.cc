#include "frontend/onnx/body.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace hone::onnx {

namespace {

/// A body among those that are being looked through, and the one that it lies in.
struct Level {
  const GraphProto* graph;
  int outer;  // its position in the list, -1 for a body of the node itself
  std::unordered_set<std::string_view> made;
};

std::unordered_set<std::string_view> names_made_in(const GraphProto& graph) {
  std::unordered_set<std::string_view> names;
  for (const ValueInfoProto& input : graph.input()) names.insert(input.name());
  for (const TensorProto& initializer : graph.initializer()) names.insert(initializer.name());
  for (const SparseTensorProto& sparse : graph.sparse_initializer()) names.insert(sparse.values().name());
  for (const NodeProto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
  return names;
}

}  // namespace

Body::Body(const GraphProto& proto) : nodes(&proto.node()), graph(&proto) {
  for (const ValueInfoProto& input : proto.input()) inputs.emplace_back(input.name());
  for (const ValueInfoProto& output : proto.output()) outputs.emplace_back(output.name());
}

Body::Body(const FunctionProto& function)
    : nodes(&function.node()), inputs(function.input().begin(), function.input().end()), outputs(function.output().begin(), function.output().end()) {}

std::vector<const GraphProto*> bodies_of(const NodeProto& node) {
  std::vector<const GraphProto*> bodies;
  for (const AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) bodies.push_back(&attribute.g());
    for (const GraphProto& graph : attribute.graphs()) bodies.push_back(&graph);
  }
  return bodies;
}

std::vector<std::string_view> referred_names(const NodeProto& node) {
  std::vector<std::string_view> names;
  if (node.op_type() != "Gradient" or node.domain() != kTrainingDomain) return names;
  for (const AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == "y") names.emplace_back(attribute.s());
    if (attribute.name() == "xs" or attribute.name() == "zs") names.insert(names.end(), attribute.strings().begin(), attribute.strings().end());
  }
  return names;
}

std::vector<std::string_view> captured_names(const NodeProto& node) {
  std::vector<Level> levels;
  for (const GraphProto* body : bodies_of(node)) levels.push_back({body, -1, names_made_in(*body)});
  std::vector<std::string_view> captured;
  std::unordered_set<std::string_view> seen;
  for (const std::string_view name : referred_names(node))
    if (not name.empty() and seen.insert(name).second) captured.push_back(name);
  for (int at = 0; at < static_cast<int>(levels.size()); ++at) {
    const GraphProto& graph = *levels[static_cast<std::size_t>(at)].graph;
    const auto read = [&](std::string_view name) {
      for (int level = at; level >= 0; level = levels[static_cast<std::size_t>(level)].outer)
        if (levels[static_cast<std::size_t>(level)].made.contains(name)) return;
      if (not name.empty() and seen.insert(name).second) captured.push_back(name);
    };
    for (const NodeProto& inner : graph.node()) {
      for (const std::string& name : inner.input()) read(name);
      for (const std::string_view name : referred_names(inner)) read(name);
      for (const GraphProto* body : bodies_of(inner)) levels.push_back({body, at, names_made_in(*body)});
    }
    for (const ValueInfoProto& output : graph.output()) read(output.name());
  }
  return captured;
}

int nesting_depth(const NodeList& nodes) {
  int deepest = 0;
  std::vector<std::pair<const NodeList*, int>> open = {{&nodes, 0}};
  while (not open.empty()) {
    const auto [list, depth] = open.back();
    open.pop_back();
    deepest = std::max(deepest, depth);
    for (const NodeProto& node : *list)
      for (const GraphProto* body : bodies_of(node)) open.emplace_back(&body->node(), depth + 1);
  }
  return deepest;
}

}  // namespace hone::onnx
