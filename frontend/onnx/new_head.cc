#include "frontend/onnx/new_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "base/text.h"
#include "formats/onnx_file.h"

namespace hone::onnx {

namespace {

constexpr int kMostStepsToHead = 8;  // from the output to the head

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

bool is_transposed(const NodeProto& gemm) {
  for (const AttributeProto& attribute : gemm.attribute())
    if (attribute.name() == "transB") return attribute.i() != 0;
  return false;
}

/// The last layer: what multiplies by a weight [inputs, classes], or transposed, and what is added.
struct Head {
  TensorProto* weight = nullptr;
  TensorProto* bias = nullptr;
  bool transposed = false;
  std::vector<std::string> values;  ///< results whose last extent is the number of classes
};

[[noreturn]] void refuse(const std::string& output, const std::string& why) {
  throw Error(Code::kRecipeModel, fmt::format("model.new_head: {} {}", quoted(output), why), {},
              {"a head is a Gemm or MatMul by a weight of the file, perhaps with a bias and a Softmax behind it", "model.output says which output it is behind"});
}

/// Takes up one more node on the way from the output to the head; true when the weight is found.
bool take(GraphProto& graph, const NodeProto& node, Head* head, std::string* value) {
  const std::string& op = node.op_type();
  if (op == "Softmax" or op == "LogSoftmax" or op == "Identity" or op == "Sigmoid") {
    *value = node.input(0);
    return false;
  }
  if (op == "Add" and node.input_size() == 2 and head->bias == nullptr) {
    const int added = initializer(graph, node.input(1)) != nullptr ? 1 : 0;
    head->bias = initializer(graph, node.input(added));
    *value = node.input(1 - added);
    return false;
  }
  if ((op == "Gemm" or op == "MatMul") and node.input_size() >= 2) {
    head->weight = initializer(graph, node.input(1));
    head->transposed = op == "Gemm" and is_transposed(node);
    if (op == "Gemm" and node.input_size() > 2 and not node.input(2).empty()) head->bias = initializer(graph, node.input(2));
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
    if (found and head.weight != nullptr and head.weight->dims_size() == 2) return head;
    if (found or value.empty()) refuse(output, fmt::format("comes from {}, which is no layer with a weight of its own", quoted(op)));
  }
  refuse(output, "is too far from a layer with a weight");
}

/// Glorot & Bengio 2010.
Tensor drawn(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  const double limit = std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1]));
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

/// The last extent of a declared shape.
void set_classes(ValueInfoProto* value, std::int64_t classes) {
  if (not value->type().has_tensor_type() or not value->type().tensor_type().has_shape()) return;
  TensorShapeProto* shape = value->mutable_type()->mutable_tensor_type()->mutable_shape();
  if (shape->dim_size() > 0) shape->mutable_dim(shape->dim_size() - 1)->set_dim_value(classes);
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
  const std::int64_t inputs = head.weight->dims(head.transposed ? 1 : 0), before = head.weight->dims(head.transposed ? 0 : 1);
  const std::vector<std::int64_t> shape = head.transposed ? std::vector{wanted.classes, inputs} : std::vector{inputs, wanted.classes};
  set_elements(head.weight, drawn(shape, wanted.seed), output);
  if (head.bias != nullptr) set_elements(head.bias, Tensor::zeros(DType::kF32, {wanted.classes}), output);
  for (auto* declared : {graph.mutable_output(), graph.mutable_value_info()})
    for (ValueInfoProto& value : *declared)
      if (std::find(head.values.begin(), head.values.end(), value.name()) != head.values.end()) set_classes(&value, wanted.classes);
  diags.warn(Code::kModelWarning, fmt::format("the head {} of {} classes is replaced by a fresh one of {}", quoted(head.weight->name()), before, wanted.classes), {},
             {"train it; model.train_only or model.freeze say whether the rest learns, too"});
}

}  // namespace hone::onnx
