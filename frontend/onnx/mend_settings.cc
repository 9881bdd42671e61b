// Floats that are no weights by what reads them, and models that are quantized.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "frontend/onnx/mend_model.h"

namespace hone::onnx {

namespace {

struct Setting {
  std::string_view op_type;
  int operand;
};
constexpr Setting kSettings[] = {
    {"OneHot", 2},      {"QuantizeLinear", 1}, {"DequantizeLinear", 1}, {"QLinearConv", 1},   {"QLinearConv", 4},
    {"QLinearConv", 6}, {"QLinearMatMul", 1},  {"QLinearMatMul", 4},    {"QLinearMatMul", 6},
};

/// Operators that round floats to integers, or compute with integers that were floats.
constexpr std::string_view kQuantizing[] = {"QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger"};

/// Of a Dropout that the file has in inference mode, whose rate is known: that rate; else 0.
double idle_rate(const MendModel& m, const NodeProto& node) {
  if (node.op_type() != "Dropout" or not node.domain().empty() or node.input_size() == 0) return 0;
  const auto operand = [&](int i) { return i < node.input_size() ? node.input(i) : ""; };
  if (const auto mode = m.values(operand(2)); not operand(2).empty() and (not mode or mode->element_count() != 1 or mode->at(0) != 0)) return 0;
  if (const auto rate = m.values(operand(1)); rate and rate->element_count() == 1) return rate->at(0);
  if (not operand(1).empty()) return 0;
  for (const AttributeProto& attribute : node.attribute())
    if (attribute.name() == "ratio") return attribute.f();
  return 0.5;  // the operator's default
}

}  // namespace

void name_idle_dropout(const MendModel& m) {
  std::vector<std::string> nodes, before;
  std::unordered_map<std::string, const NodeProto*> makers;  // of what is read further down
  double rate = 0;
  for (const NodeProto& node : m.graph().node()) {
    for (const std::string& name : node.output()) makers.emplace(name, &node);
    const double own = idle_rate(m, node);
    if (own == 0) continue;
    rate = own;
    nodes.push_back(m.loc(node).node);
    if (const auto maker = makers.find(node.input(0)); maker != makers.end()) before.push_back(m.loc(*maker->second).node);
  }
  if (nodes.empty()) return;
  m.warn(fmt::format("{} Dropout node{} exported for inference, where it does nothing, and nothing is dropped in training: {}", nodes.size(), nodes.size() == 1 ? " was" : "s were", list_of(nodes)),
         {before.empty() ? "export the model in training mode" : fmt::format("export the model in training mode, or let the recipe drop: [model.dropout] after = [{}], rate = {:g}", list_of(before), rate)});
}

bool is_setting(const MendModel& m, const std::string& name) {
  const std::vector<Reader>& readers = m.readers(name);
  return not readers.empty() and std::all_of(readers.begin(), readers.end(), [&](const Reader& reader) {
    return reader.node >= 0 and std::any_of(std::begin(kSettings), std::end(kSettings), [&](const Setting& setting) {
             return reader.operand == setting.operand and m.graph().node(reader.node).op_type() == setting.op_type;
           });
  });
}

void name_quantized(const MendModel& m) {
  std::vector<std::string> nodes;
  for (const NodeProto& node : m.graph().node())
    if (node.output_size() > 0 and std::find(std::begin(kQuantizing), std::end(kQuantizing), node.op_type()) != std::end(kQuantizing)) nodes.push_back(m.loc(node).node);
  if (nodes.empty()) return;
  m.warn(fmt::format("the model is quantized, by {} node{}: {}; no gradient passes what is rounded, and weights of integers are not trained", nodes.size(), nodes.size() == 1 ? "" : "s",
                     list_of(nodes)),
         {"train the model of floats, and quantize what comes out of the training"});
}

}  // namespace hone::onnx
