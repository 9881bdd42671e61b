#include "frontend/onnx/readers.h"

#include "frontend/onnx/body.h"
#include "frontend/onnx/ops.h"

namespace hone::onnx {

namespace {

using Readers = std::unordered_map<std::string, std::vector<Reader>>;

void add_bodies(const NodeProto& node, Readers& readers);

void add_body(const GraphProto& body, Readers& readers) {
  for (const NodeProto& node : body.node()) {
    for (const std::string& name : node.input()) readers[name].push_back({-1, 0});
    add_bodies(node, readers);
  }
  for (const ValueInfoProto& output : body.output()) readers[output.name()].push_back({-1, 0});
}

void add_bodies(const NodeProto& node, Readers& readers) {
  for (const std::string_view name : referred_names(node)) readers[std::string(name)].push_back({-1, 0});
  for (const AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) add_body(attribute.g(), readers);
    for (const GraphProto& body : attribute.graphs()) add_body(body, readers);
  }
}

}  // namespace

Readers readers_of(const GraphProto& graph) {
  Readers readers;
  for (int i = 0; i < graph.node_size(); ++i) {
    const NodeProto& node = graph.node(i);
    for (int k = 0; k < node.input_size(); ++k)
      if (not node.input(k).empty()) readers[node.input(k)].push_back({i, k});
    add_bodies(node, readers);
  }
  for (const ValueInfoProto& output : graph.output()) readers[output.name()].push_back({-1, 0});
  return readers;
}

bool is_weight_position(const NodeProto& node, int i) {
  return is_parameter(node.op_type(), i) or (i >= 1 and node.op_type().ends_with("Normalization"));
}

bool is_recurrent(const NodeProto& node) {
  return (node.domain().empty() or node.domain() == "ai.onnx") and (node.op_type() == "LSTM" or node.op_type() == "GRU" or node.op_type() == "RNN");
}

}  // namespace hone::onnx
