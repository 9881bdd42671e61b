#include "frontend/onnx/new_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/philox.h"
#include "base/text.h"
#include "formats/onnx_file.h"
#include "frontend/onnx/mend_model.h"

namespace hone::onnx {

namespace {

constexpr int kMostStepsToHead = 12;  // from the output to the head

const NodeProto* producer(const GraphProto& graph, const std::string& value) {
  for (const NodeProto& node : graph.node())
    if (std::find(node.output().begin(), node.output().end(), value) != node.output().end()) return &node;
  return nullptr;
}

TensorProto* initializer(GraphProto& graph, const std::string& name) {
  for (TensorProto& tensor : *graph.mutable_initializer())
    if (tensor.name() == name) return &tensor;
  return nullptr;
}

/// How often a weight is read, outside of bodies.
int reads(const GraphProto& graph, const std::string& name) {
  int count = 0;
  for (const NodeProto& node : graph.node()) count += static_cast<int>(std::count(node.input().begin(), node.input().end(), name));
  return count;
}

/// What a node holds for good: an initializer, or the value of a Constant.
TensorProto* constant(GraphProto& graph, const std::string& name) {
  if (TensorProto* tensor = initializer(graph, name)) return tensor;
  for (NodeProto& node : *graph.mutable_node())
    if (node.op_type() == "Constant" and node.output_size() == 1 and node.output(0) == name)
      for (AttributeProto& attribute : *node.mutable_attribute())
        if (attribute.name() == "value") return attribute.mutable_t();
  return nullptr;
}

/// What may stand between the head and the output: it keeps the classes apart.
constexpr std::string_view kBehindHead[] = {"Softmax", "LogSoftmax", "Identity", "Sigmoid", "HardSigmoid", "Relu", "Dropout", "Cast", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Reshape", "Resize", "GlobalAveragePool", "GlobalMaxPool", "AveragePool", "MaxPool", "ReduceMean", "ReduceMax"};

/// The input that says the sizes of a result, -1 for none.
int sizes_input(const NodeProto& node) {
  const int input = node.op_type() == "Reshape" ? 1 : node.op_type() == "Resize" ? 3 : -1;
  return input < node.input_size() ? input : -1;
}

/// The last layer: what multiplies by a weight [inputs, classes], or [classes, inputs, ...], and what is added.
struct Head {
  TensorProto* weight = nullptr;
  TensorProto* bias = nullptr;
  bool classes_first = false;
  bool is_convolution = false;
  std::vector<std::string> values;  ///< results that have an axis of classes

  std::int64_t classes() const { return weight->dims(classes_first ? 0 : 1); }
  std::vector<std::int64_t> weight_shape(std::int64_t new_classes) const {
    std::vector<std::int64_t> shape(weight->dims().begin(), weight->dims().end());
    shape[classes_first ? 0 : 1] = new_classes;
    return shape;
  }
  /// [classes], or with axes of one element: what is added behind a convolution is [classes, 1, 1].
  std::vector<std::int64_t> bias_shape(std::int64_t new_classes) const {
    std::vector<std::int64_t> shape(bias->dims().begin(), bias->dims().end());
    std::ranges::replace(shape, classes(), new_classes);
    return shape;
  }
};

[[noreturn]] void refuse(const std::string& output, const std::string& why) {
  throw Error(Code::kRecipeModel, fmt::format("model.new_head: {} {}", quoted(output), why), {},
              {"a head is a Gemm, MatMul or Conv by a weight of the file, perhaps with a bias, a pooling and a Softmax behind it", "model.output says which output it is behind"});
}

/// Takes up one more node on the way from the output to the head; true when the weight is found.
bool take(GraphProto& graph, const NodeProto& node, Head* head, std::string* value) {
  const std::string& op = node.op_type();
  if (std::ranges::find(kBehindHead, op) != std::end(kBehindHead) and node.input_size() > 0) {
    *value = node.input(0);
    return false;
  }
  if (op == "Add" and node.input_size() == 2 and head->bias == nullptr) {
    const int added = initializer(graph, node.input(1)) != nullptr ? 1 : 0;
    head->bias = initializer(graph, node.input(added));
    *value = head->bias == nullptr ? "" : node.input(1 - added);  // a sum of two layers is none
    return false;
  }
  if ((op == "Gemm" or op == "MatMul") and node.input_size() >= 2) {
    head->weight = initializer(graph, node.input(1));
    head->classes_first = op == "Gemm" and integer_attribute(node, "transB") != 0;
    if (op == "Gemm" and node.input_size() > 2 and not node.input(2).empty()) head->bias = initializer(graph, node.input(2));
    return true;
  }
  if (op == "Conv" and node.input_size() >= 2 and integer_attribute(node, "group", 1) == 1) {
    head->weight = initializer(graph, node.input(1));
    head->classes_first = head->is_convolution = true;
    if (node.input_size() > 2 and not node.input(2).empty()) head->bias = initializer(graph, node.input(2));
    return true;
  }
  *value = "";
  return false;
}

Head find_head(GraphProto& graph, const std::string& output) {
  Head head;
  std::string value = output;
  for (int step = 0; step < kMostStepsToHead; ++step) {
    const NodeProto* node = producer(graph, value);
    if (node == nullptr) refuse(output, "is made by no layer that could be replaced");
    head.values.push_back(value);
    const std::string op = node->op_type();
    const bool found = take(graph, *node, &head, &value);
    if (found and head.weight != nullptr and (head.is_convolution ? head.weight->dims_size() > 2 : head.weight->dims_size() == 2)) return head;
    if (found or value.empty()) refuse(output, fmt::format("comes from {}, which is no layer with a weight of its own", quoted(op)));
  }
  refuse(output, "is too far from a layer with a weight");
}

/// Glorot & Bengio 2010; each tap of a convolution's window is an input and an output more.
Tensor drawn(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  double taps = 1;
  for (std::size_t axis = 2; axis < shape.size(); ++axis) taps *= static_cast<double>(shape[axis]);
  const double limit = std::sqrt(6.0 / (taps * static_cast<double>(shape[0] + shape[1])));
  return Tensor::make(DType::kF32, shape, [&](std::span<std::byte> bytes) {
    auto* values = reinterpret_cast<float*>(bytes.data());
    for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) values[i] = static_cast<float>((2 * philox_uniform(seed, 0x4e45574845414421u, i).first - 1) * limit);
  });
}

void set_elements(TensorProto* tensor, const Tensor& elements, const std::string& output) {
  const auto dtype = dtype_of_onnx(tensor->data_type());
  if (not dtype or not is_float(*dtype)) refuse(output, fmt::format("has a head whose weight {} is not of floats", quoted(tensor->name())));
  TensorProto changed;
  changed.set_name(tensor->name());
  changed.set_data_type(tensor->data_type());
  for (const std::int64_t extent : elements.shape()) changed.add_dims(extent);
  store_tensor(&changed, elements.cast(*dtype));
  *tensor = std::move(changed);
}

/// What follows from the head's values, in or behind the way to the output.
std::set<std::string> computed_from(const GraphProto& graph, const Head& head) {
  std::set<std::string> names(head.values.begin(), head.values.end());
  for (const NodeProto& node : graph.node())
    if (std::any_of(node.input().begin(), node.input().end(), [&](const std::string& input) { return names.contains(input); })) names.insert(node.output().begin(), node.output().end());
  return names;
}

/// Of a declared shape: the only extent that is the number of classes, else the channels of a convolution or what comes last.
void set_classes(TensorShapeProto* shape, const Head& head, std::int64_t classes) {
  if (shape->dim_size() == 0) return;
  int axis = head.is_convolution and shape->dim_size() > 1 ? 1 : shape->dim_size() - 1;
  if (shape->dim(axis).dim_value() != head.classes())
    for (int other = 0; other < shape->dim_size(); ++other)
      if (shape->dim(other).dim_value() == head.classes()) axis = other;
  shape->mutable_dim(axis)->set_dim_value(classes);
}

void set_extents(TensorShapeProto* shape, const std::vector<std::int64_t>& extents) {
  shape->clear_dim();
  for (const std::int64_t extent : extents) shape->add_dim()->set_dim_value(extent);
}

/// Declares what has another shape with so many classes: the head's weight and bias, and the values up to the output. Of what else is computed from these only symbols stay.
void declare_shapes(GraphProto& graph, const Head& head, std::int64_t classes) {
  const std::set<std::string> followers = computed_from(graph, head);
  for (auto* declared : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (ValueInfoProto& value : *declared) {
      if (not value.type().has_tensor_type() or not value.type().tensor_type().has_shape()) continue;
      TensorShapeProto* shape = value.mutable_type()->mutable_tensor_type()->mutable_shape();
      if (std::ranges::find(head.values, value.name()) != head.values.end()) set_classes(shape, head, classes);
      else if (value.name() == head.weight->name()) set_extents(shape, head.weight_shape(classes));
      else if (head.bias != nullptr and value.name() == head.bias->name()) set_extents(shape, head.bias_shape(classes));
      else if (followers.contains(value.name()))
        for (auto& extent : *shape->mutable_dim())
          if (extent.has_dim_value()) extent.Clear();
    }
}

/// Sizes that are written out, as in a Reshape to [-1, 1000]. Others follow from what comes in.
void set_sizes(GraphProto& graph, NodeProto& node, const Head& head, std::int64_t classes, const std::string& output) {
  const int input = sizes_input(node);
  const TensorProto* sizes = input < 0 ? nullptr : constant(graph, node.input(input));
  if (sizes == nullptr or sizes->data_type() != TensorProto::INT64) return;
  const Tensor before = tensor_of(*sizes, "", {});
  std::vector<std::int64_t> extents;
  for (std::int64_t i = 0; i < before.element_count(); ++i) extents.push_back(static_cast<std::int64_t>(before.at(i)));
  const auto count = std::ranges::count(extents, head.classes());
  if (count == 0) return;
  if (count > 1) refuse(output, fmt::format("is made by a {} to {}, of which one extent is the number of classes, and it does not say which", node.op_type(), shape_text(extents)));
  std::ranges::replace(extents, head.classes(), classes);
  std::string name = sizes->name().empty() ? node.input(input) : sizes->name();
  do name += "/classes"; while (constant(graph, name) != nullptr or producer(graph, name) != nullptr);
  TensorProto* changed = graph.add_initializer();  // others may read the one that there is
  changed->set_name(name);
  store_tensor(changed, Tensor::of<std::int64_t>({static_cast<std::int64_t>(extents.size())}, std::span<const std::int64_t>(extents)));
  node.set_input(input, name);
}

}  // namespace

void replace_head(ModelProto& model, const NewHead& wanted, Diags& diags) {
  GraphProto& graph = *model.mutable_graph();
  if (wanted.output.empty() and graph.output_size() != 1)
    throw Error(Code::kRecipeModel, fmt::format("model.new_head: the model has {} outputs", graph.output_size()), {}, {"say which one the head is behind: [model] output = \"NAME\""});
  const std::string output = wanted.output.empty() ? graph.output(0).name() : wanted.output;
  const Head head = find_head(graph, output);
  for (const TensorProto* tensor : {head.weight, head.bias})
    if (tensor != nullptr and reads(graph, tensor->name()) != 1) refuse(output, fmt::format("has a head whose weight {} other layers use, too", quoted(tensor->name())));
  const std::int64_t before = head.classes();
  const auto is_behind_head = [&](const std::string& value) { return std::find(head.values.begin(), head.values.end(), value) != head.values.end(); };
  for (NodeProto& node : *graph.mutable_node())
    if (node.output_size() > 0 and is_behind_head(node.output(0))) set_sizes(graph, node, head, wanted.classes, output);
  declare_shapes(graph, head, wanted.classes);
  if (head.bias != nullptr) set_elements(head.bias, Tensor::zeros(DType::kF32, head.bias_shape(wanted.classes)), output);
  set_elements(head.weight, drawn(head.weight_shape(wanted.classes), wanted.seed), output);
  diags.warn(Code::kModelWarning, fmt::format("the head {} of {} classes is replaced by a fresh one of {}", quoted(head.weight->name()), before, wanted.classes), {},
             {"train it; model.train_only or model.freeze say whether the rest learns, too"});
}

}  // namespace hone::onnx
