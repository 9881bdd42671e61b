// Running statistics of batch normalizations that were merged with what equals them: zeros and ones in a model that was never trained.
#include <fmt/format.h>

#include <map>

#include "frontend/onnx/mend_model.h"

namespace hone::onnx {

namespace {

constexpr int kMean = 3, kVariance = 4;

bool is_statistic(const NodeProto& node, int operand) {
  return node.op_type() == "BatchNormalization" and node.domain().empty() and (operand == kMean or operand == kVariance);
}

/// By the exporter's record the buffer's name; "" if it says nothing.
std::string buffer_of(const MendModel& m, const NodeProto& node, int operand) {
  const std::vector<std::string> buffers = m.program().buffers_of(node);
  return buffers.size() == 2 ? buffers[static_cast<std::size_t>(operand - kMean)] : "";
}

/// Equal for the calls of one layer.
std::string layer_of(const MendModel& m, const NodeProto& node, int operand) {
  const std::string buffer = buffer_of(m, node, operand);
  return buffer.empty() ? fmt::format("{}|{}|{}", node.input(1), node.input(2), operand) : buffer;
}

/// Who reads an initializer.
struct Uses {
  std::map<std::string, std::vector<Reader>> layers;  ///< as a statistic
  bool has_others = false;                            ///< as a scale, say
};

Uses uses_of(const MendModel& m, const std::string& name) {
  Uses uses;
  for (const Reader& reader : m.readers(name)) {
    const NodeProto* node = reader.node < 0 ? nullptr : &m.graph().node(reader.node);
    if (node != nullptr and is_statistic(*node, reader.operand)) uses.layers[layer_of(m, *node, reader.operand)].push_back(reader);
    else uses.has_others = true;
  }
  return uses;
}

void copy_for(MendModel& m, const std::string& weight, const std::vector<Reader>& readers) {
  const NodeProto& node = m.graph().node(readers[0].node);
  std::string name = buffer_of(m, node, readers[0].operand);
  if (name.empty()) name = fmt::format("{}@{}", weight, readers[0].operand == kMean ? "running_mean" : "running_var");
  while (not m.is_free(name)) name += fmt::format(":{}", readers[0].node);
  m.copy_weight(weight, name);
  for (const Reader& reader : readers) m.redirect(reader, name);
}

}  // namespace

void keep_statistics_apart(MendModel& m) {
  std::vector<std::string> names, merged;
  for (const TensorProto& tensor : m.graph().initializer()) names.push_back(tensor.name());
  for (const std::string& name : names) {
    const Uses uses = uses_of(m, name);
    bool is_taken = uses.has_others;
    for (const auto& [layer, readers] : uses.layers) {
      if (is_taken) copy_for(m, name, readers);
      if (is_taken and (merged.empty() or merged.back() != name)) merged.push_back(name);
      is_taken = true;
    }
  }
  if (not merged.empty())
    m.warn(fmt::format("running statistics were merged with scales, shifts or other statistics of equal values, in {}: they are kept apart", list_of(merged)), {"the exporter, or a tool behind it, merges initializers of equal values"});
}

}  // namespace hone::onnx
