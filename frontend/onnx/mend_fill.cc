// Weights that a file makes by nodes: by ConstantOfShape, as small files of big networks do, or each by a Constant. They become initializers, so that they can be drawn and trained.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/limits.h"
#include "frontend/onnx/mend_model.h"

namespace hone::onnx {

namespace {

constexpr std::int64_t kMostFilled = std::int64_t{1} << 29;  // protobuf ends at 2 GiB
constexpr int kMostStepsToLayer = 16;                        // from a weight to the layer that reads it

template <typename... Names>
bool is_one_of(const std::string& op_type, Names... names) {
  return ((op_type == names) or ...);
}

/// Names of results that a layer gives, scaled or shifted or not: what is multiplied with or added to them is a scale or bias.
std::set<std::string_view> layer_results(const GraphProto& graph) {
  std::set<std::string_view> results;
  for (const NodeProto& node : graph.node()) {
    const bool layer = is_one_of(node.op_type(), "Conv", "ConvTranspose", "MatMul", "Gemm") or node.op_type().ends_with("Normalization");
    const bool scaled = is_one_of(node.op_type(), "Mul", "Add") and
                        std::any_of(node.input().begin(), node.input().end(), [&](const std::string& name) { return results.contains(name); });
    if (layer or scaled) results.insert(node.output().begin(), node.output().end());
  }
  return results;
}

/// Does the value end, perhaps under another shape, where models keep weights?
bool stands_for_weight(const MendModel& m, const std::string& value, const std::set<std::string_view>& layers, int steps) {
  const auto& readers = m.readers(value);
  return std::any_of(readers.begin(), readers.end(), [&](const Reader& reader) {
    if (reader.node < 0 or steps == 0) return false;
    const NodeProto& node = m.graph().node(reader.node);
    if (is_weight_position(node, reader.operand)) return true;
    if (node.op_type() == "Gather" and reader.operand == 0 and node.input_size() == 2) return not m.initializer(node.input(1));  // an embedding: what is looked up is not known
    if (is_one_of(node.op_type(), "Mul", "Add") and node.input_size() == 2) return layers.contains(node.input(1 - reader.operand));
    const bool reshapes = reader.operand == 0 and is_one_of(node.op_type(), "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Flatten", "Identity");
    return reshapes and node.output_size() > 0 and stands_for_weight(m, node.output(0), layers, steps - 1);
  });
}

/// The one element that a ConstantOfShape repeats.
std::optional<Tensor> repeated(const NodeProto& node) {
  for (const AttributeProto& attribute : node.attribute()) {
    if (attribute.name() != "value" or not attribute.has_t()) continue;
    try {
      return tensor_of(attribute.t(), "", {});
    } catch (const Error&) { return std::nullopt; }  // the importer reports it
  }
  return Tensor::scalar(0.0F);
}

std::optional<TensorProto> filled(const MendModel& m, const NodeProto& node) {
  const auto shape = node.input_size() == 1 ? m.values(node.input(0)) : std::nullopt;
  const auto element = repeated(node);
  if (not shape or shape->dtype() != DType::kI64 or shape->element_count() == 0 or not element or element->element_count() != 1 or not is_float(element->dtype()))
    return std::nullopt;
  TensorProto weight;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape->data<std::int64_t>()) {
    if (extent <= 0 or extent > kMostFilled / count) return std::nullopt;
    count *= extent;
    weight.add_dims(extent);
  }
  weight.set_name(node.output(0));
  weight.set_data_type(onnx_of_dtype(element->dtype()));
  std::string& bytes = *weight.mutable_raw_data();
  bytes.reserve(static_cast<std::size_t>(count) * element->byte_count());
  for (std::int64_t i = 0; i < count; ++i) bytes.append(reinterpret_cast<const char*>(element->bytes().data()), element->byte_count());
  return weight;
}

const TensorProto* held_floats(const NodeProto& node) {
  if (node.op_type() != "Constant" or not node.domain().empty() or node.output_size() != 1) return nullptr;
  for (const AttributeProto& attribute : node.attribute())
    if (attribute.name() == "value" and attribute.has_t() and attribute.t().dims_size() > 0)
      if (const auto dtype = dtype_of_onnx(attribute.t().data_type()); dtype and is_float(*dtype) and info(*dtype).bits >= 16) return &attribute.t();
  return nullptr;
}

/// Names that nodes of bodies read where models keep weights.
std::set<std::string> read_as_weights(const std::vector<GraphProto*>& bodies) {
  std::set<std::string> names;
  for (const GraphProto* body : bodies)
    for (const NodeProto& node : body->node())
      for (int i = 0; i < node.input_size(); ++i)
        if (is_weight_position(node, i)) names.insert(node.input(i));
  return names;
}

/// Constant nodes of the body that are `weights` become initializers of it.
void lift_in_body(GraphProto& body, const std::set<std::string>& weights, std::vector<std::string>& lifted) {
  for (int i = body.node_size(); i-- > 0;) {
    const TensorProto* held = held_floats(body.node(i));
    if (held == nullptr or not weights.contains(body.node(i).output(0))) continue;
    TensorProto& weight = *body.add_initializer();
    weight = *held;
    weight.set_name(body.node(i).output(0));
    lifted.push_back(weight.name());
    body.mutable_node()->DeleteSubrange(i, 1);
  }
}

}  // namespace

void lift_constants(MendModel& m) {
  if (m.is_from_pytorch() and not m.weights().empty()) return;  // its exporters make initializers of all parameters, and nodes of what is none
  const std::set<std::string_view> layers = layer_results(m.graph());
  const std::vector<GraphProto*> bodies = m.bodies();
  const std::set<std::string> of_bodies = read_as_weights(bodies);
  const auto is_output = [&](const std::string& name) { return std::ranges::any_of(m.graph().output(), [&](const ValueInfoProto& output) { return output.name() == name; }); };
  std::vector<std::string> lifted;
  for (int i = 0; i < m.graph().node_size(); ++i) {
    const NodeProto& node = m.graph().node(i);
    const TensorProto* held = held_floats(node);
    if (held == nullptr) continue;
    const std::string& name = node.output(0);
    const bool is_weight_of_body = of_bodies.contains(name) and not is_output(name), is_weight = not m.is_read_outside(name) and stands_for_weight(m, name, layers, kMostStepsToLayer);
    if (not is_weight_of_body and not is_weight) continue;
    TensorProto weight = *held;
    weight.set_name(node.output(0));
    lifted.push_back(weight.name());
    m.add_weight(std::move(weight));
    m.remove_node(i);
  }
  for (GraphProto* body : bodies) lift_in_body(*body, of_bodies, lifted);
  if (not lifted.empty())
    m.warn(fmt::format("the file holds weights in Constant nodes, where layers read them: {}; they are initializers from now on, and trained", list_of(lifted)),
           {"if one is a constant of the model, say so: model.freeze"});
}

void fill_weights(MendModel& m) {
  const std::set<std::string_view> layers = layer_results(m.graph());
  for (int i = 0; i < m.graph().node_size(); ++i) {
    const NodeProto& node = m.graph().node(i);
    if (node.op_type() != "ConstantOfShape" or node.output_size() != 1 or m.is_read_outside(node.output(0))) continue;
    if (not stands_for_weight(m, node.output(0), layers, kMostStepsToLayer)) continue;
    if (auto weight = filled(m, node)) {
      m.add_weight(*std::move(weight));
      m.remove_node(i);
    }
  }
}

}  // namespace hone::onnx
