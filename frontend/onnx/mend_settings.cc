// Floats that are no weights by what reads them, and models that are quantized.
#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

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
