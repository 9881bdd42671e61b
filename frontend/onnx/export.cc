#include "frontend/onnx/export.h"

#include <fmt/format.h>

#include "frontend/onnx/exporter.h"

namespace hone::onnx {

namespace {
constexpr std::int64_t kOpset = 17;
}

ModelProto export_model(const Graph& graph) {
  ModelProto model;
  model.set_ir_version(8);
  model.set_producer_name("hone");
  auto& opset = *model.add_opset_import();
  opset.set_domain("");
  opset.set_version(kOpset);
  GraphProto& proto = *model.mutable_graph();
  proto.set_name(graph.name.empty() ? "model" : graph.name);
  Exporter exporter(graph, proto, kOpset);
  exporter.name_outputs();
  for (const Input& input : graph.inputs()) {
    if (input.data) exporter.initializer(input.value, *input.data);
    else write_value_info(*proto.add_input(), exporter.name(input.value), graph.type(input.value));
  }
  Diags problems;
  for (const Node& node : graph.nodes())
    if (not exporter.write(node))
      problems.error(Code::kUnknownOp, fmt::format("{} {} cannot be written as ONNX", node.op->name, node.attrs.text()), node.loc);
  problems.throw_if_errors();
  exporter.write_outputs();
  return model;
}

void save(const Graph& graph, const std::string& path) { save_model(export_model(graph), path); }

}  // namespace hone::onnx
