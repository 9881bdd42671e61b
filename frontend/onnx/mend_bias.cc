// Biases that are not in the file because they were zero when it was written: which layers have none, and fresh ones where the recipe asks for them (model.add_bias).
#include <fmt/format.h>

#include <algorithm>

#include "base/patterns.h"
#include "base/text.h"
#include "frontend/onnx/mend_model.h"

namespace hone::onnx {

namespace {

bool rearranges(const NodeProto& node) {
  constexpr std::string_view kRearranging[] = {"Reshape", "Transpose", "Squeeze", "Unsqueeze"};
  return std::find(std::begin(kRearranging), std::end(kRearranging), node.op_type()) != std::end(kRearranging);
}

std::string with_dots(std::string name) {
  std::replace(name.begin(), name.end(), '/', '.');
  return name.starts_with('.') ? name.substr(1) : name;
}

/// Products of one weight that have no bias: a layer that is called several times has one bias for all of its calls.
struct LayerWithoutBias {
  std::string weight;
  std::int64_t extent = 0;
  std::vector<int> nodes;
  std::vector<std::string> names = {};  ///< what a pattern may call it
};

std::vector<LayerWithoutBias> layers_without_bias(const MendModel& m) {
  std::vector<LayerWithoutBias> layers;
  for (int i = 0; i < m.graph().node_size(); ++i) {
    const NodeProto& node = m.graph().node(i);
    if (not is_layer_with_weight(m, node) or has_bias(m, node) == HasBias::kYes) continue;
    const std::string& weight = node.input(1);
    const std::int64_t extent = bias_extent(node, *m.initializer(weight));
    if (extent <= 0) continue;
    auto layer = std::find_if(layers.begin(), layers.end(), [&](const LayerWithoutBias& known) { return known.weight == weight and known.extent == extent; });
    if (layer == layers.end()) layer = layers.insert(layers.end(), LayerWithoutBias{weight, extent, {}, {weight}});
    layer->nodes.push_back(i);
    const Loc loc = m.loc(node);
    for (const std::string& name : {loc.node, loc.layer, with_dots(loc.node)})
      if (not name.empty() and std::find(layer->names.begin(), layer->names.end(), name) == layer->names.end()) layer->names.push_back(name);
  }
  return layers;
}

/// "fc1.bias" beside "fc1.weight", "dense/bias" for the node "dense/MatMul".
std::string name_of_bias(const MendModel& m, const LayerWithoutBias& layer) {
  constexpr std::string_view kWeight = "weight";
  std::string name = m.loc(m.graph().node(layer.nodes[0])).node;
  if (layer.weight.ends_with(".weight")) name = layer.weight.substr(0, layer.weight.size() - kWeight.size()) + "bias";
  else if (const std::size_t slash = name.rfind('/'); slash != std::string::npos and slash > 0) name = name.substr(0, slash) + "/bias";
  else name += "/bias";
  if (m.is_free(name)) return name;
  for (int k = 1;; ++k)
    if (std::string numbered = fmt::format("{}_{}", name, k); m.is_free(numbered)) return numbered;
}

void add_bias(MendModel& m, const LayerWithoutBias& layer, const std::string& name) {
  const DType dtype = *dtype_of_onnx(m.initializer(layer.weight)->data_type());
  TensorProto bias;
  store_tensor(&bias, Tensor::zeros(dtype, {layer.extent}));
  bias.set_name(name);
  m.add_parameter(std::move(bias), name);
  for (const int node : layer.nodes)
    if (m.graph().node(node).op_type() == "MatMul") m.add_behind(node, name);
    else m.set_bias(node, name);
}

}  // namespace

bool is_layer_with_weight(const MendModel& m, const NodeProto& node) {
  constexpr std::string_view kProducts[] = {"MatMul", "Gemm", "Conv", "ConvTranspose"};
  return std::find(std::begin(kProducts), std::end(kProducts), node.op_type()) != std::end(kProducts) and node.input_size() > 1 and node.output_size() == 1 and
         m.is_weight(node.input(1));
}

HasBias has_bias(const MendModel& m, const NodeProto& layer) {
  if (layer.input_size() > 2 and not layer.input(2).empty()) return HasBias::kYes;
  constexpr int kMostSteps = 4;
  const std::string* value = &layer.output(0);
  for (int i = 0; i < kMostSteps; ++i) {
    const std::vector<Reader>& readers = m.readers(*value);
    if (readers.size() != 1 or readers[0].node < 0) return HasBias::kNo;
    const NodeProto& node = m.graph().node(readers[0].node);
    if (node.input_size() == 2 and (node.op_type() == "Add" or node.op_type() == "Mul") and m.initializer(node.input(1 - readers[0].operand)) != nullptr)
      return node.op_type() == "Add" ? HasBias::kYes : HasBias::kScaledInstead;
    if (not rearranges(node) or readers[0].operand != 0 or node.output_size() != 1) return HasBias::kNo;
    value = &node.output(0);
  }
  return HasBias::kNo;
}

std::int64_t bias_extent(const NodeProto& node, const TensorProto& weight) {
  const std::int64_t group = integer_attribute(node, "group", 1), transposed = integer_attribute(node, "transB");
  constexpr std::int64_t kMost = std::int64_t{1} << 20;  // hostile numbers do not multiply
  if (weight.dims_size() < 2) return 0;
  if (node.op_type() == "Conv") return weight.dims(0);
  if (node.op_type() == "Gemm") return weight.dims(transposed != 0 ? 0 : 1);
  if (node.op_type() == "MatMul") return weight.dims_size() == 2 ? weight.dims(1) : 0;
  return group > 0 and group <= kMost and weight.dims(1) <= kMost ? group * weight.dims(1) : 0;
}

void add_biases(MendModel& m, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return;
  const std::vector<LayerWithoutBias> layers = layers_without_bias(m);
  std::vector<std::string> known, added;
  for (const LayerWithoutBias& layer : layers) known.insert(known.end(), layer.names.begin(), layer.names.end());
  for (const std::string& pattern : patterns)
    if (std::none_of(known.begin(), known.end(), [&](const std::string& name) { return matches_name(pattern, name); }))
      refuse_pattern("model.add_bias", pattern, "MatMul, Gemm or convolution by a weight that has no bias", "layers without a bias, and their weights", known);
  for (const LayerWithoutBias& layer : layers) {
    if (std::none_of(layer.names.begin(), layer.names.end(), [&](const std::string& name) { return matches_any(patterns, name); })) continue;
    added.push_back(name_of_bias(m, layer));
    add_bias(m, layer, added.back());
  }
  m.warn(fmt::format("{} bias{} of zeros, as model.add_bias asks for: {}", added.size(), added.size() == 1 ? "" : "es", list_of(added)), {});
}

}  // namespace hone::onnx
