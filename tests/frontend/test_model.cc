#include "tests/frontend/test_model.h"

#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/verify.h"
#include "passes/passes.h"

namespace hone::test {

Tensor f32(std::vector<std::int64_t> shape, std::vector<float> values) { return Tensor::of<float>(std::move(shape), std::span<const float>(values)); }
Tensor i64(std::vector<std::int64_t> shape, std::vector<std::int64_t> values) {
  return Tensor::of<std::int64_t>(std::move(shape), std::span<const std::int64_t>(values));
}

Tensor wavy(std::vector<std::int64_t> shape) {
  std::vector<float> values(static_cast<std::size_t>(checked_element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (i % 3 == 1 ? -0.5F : 0.5F) * static_cast<float>(i % 17 + 1);
  return f32(std::move(shape), values);
}

Tensor ones(std::int64_t n) { return f32({n}, std::vector<float>(static_cast<std::size_t>(n), 1.0F)); }

std::vector<std::string> weights_of(const onnx::Imported& imported) {
  std::vector<std::string> names;
  for (const Input& input : imported.graph.inputs())
    if (input.role == Role::kWeight) names.push_back(input.name);
  return names;
}

onnx::AttributeProto& TestNode::add(const std::string& name, onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& attribute = *proto_.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

TestNode& TestNode::set(const std::string& name, std::int64_t value) { return add(name, onnx::AttributeProto::INT).set_i(value), *this; }
TestNode& TestNode::set(const std::string& name, double value) { return add(name, onnx::AttributeProto::FLOAT).set_f(static_cast<float>(value)), *this; }
TestNode& TestNode::set(const std::string& name, const char* value) { return add(name, onnx::AttributeProto::STRING).set_s(value), *this; }
TestNode& TestNode::set(const std::string& name, std::vector<std::int64_t> values) {
  onnx::AttributeProto& attribute = add(name, onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
  return *this;
}
TestNode& TestNode::set(const std::string& name, std::vector<float> values) {
  onnx::AttributeProto& attribute = add(name, onnx::AttributeProto::FLOATS);
  for (const float value : values) attribute.add_floats(value);
  return *this;
}
TestNode& TestNode::set(const std::string& name, const Tensor& value) {
  return store_tensor(add(name, onnx::AttributeProto::TENSOR).mutable_t(), value), *this;
}
TestNode& TestNode::named(const std::string& name) { return proto_.set_name(name), *this; }

TestModel::TestModel(std::int64_t opset) {
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(opset);
  proto.mutable_graph()->set_name("test");
}

TestModel TestModel::of_node(const std::string& op_type, std::vector<Extent> x, std::vector<Tensor> others, std::int64_t opset) {
  TestModel model(opset);
  model.input("x", std::move(x)).output("y");
  std::vector<std::string> inputs = {"x"};
  for (std::size_t i = 0; i < others.size(); ++i) {
    const std::string name(1, static_cast<char>('b' + i));
    const bool is_left_out = others[i].shape() == std::vector<std::int64_t>{0} and others[i].dtype() == DType::kF32;
    inputs.push_back(is_left_out ? "" : name);
    if (not is_left_out) model.initializer(name, others[i]);
  }
  model.node(op_type, inputs, {"y"});
  return model;
}

TestModel& TestModel::input(const std::string& name, std::vector<Extent> shape, DType dtype) {
  onnx::ValueInfoProto& info = *proto.mutable_graph()->add_input();
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx_of_dtype(dtype));
  tensor.mutable_shape();
  for (const Extent& extent : shape) {
    auto& dim = *tensor.mutable_shape()->add_dim();
    if (const auto* number = std::get_if<std::int64_t>(&extent)) dim.set_dim_value(*number);
    else if (not std::get<std::string>(extent).empty()) dim.set_dim_param(std::get<std::string>(extent));
  }
  return *this;
}

TestModel& TestModel::initializer(const std::string& name, const Tensor& value) {
  onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
  tensor.set_name(name);
  store_tensor(&tensor, value);
  return *this;
}

TestModel& TestModel::output(const std::string& name) {
  proto.mutable_graph()->add_output()->set_name(name);
  return *this;
}

TestNode TestModel::node(const std::string& op_type, std::vector<std::string> inputs, std::vector<std::string> outputs) {
  onnx::NodeProto& node = *proto.mutable_graph()->add_node();
  node.set_op_type(op_type);
  for (const std::string& name : inputs) node.add_input(name);
  for (const std::string& name : outputs) node.add_output(name);
  return TestNode(node);
}

TestNode TestModel::last() { return TestNode(*proto.mutable_graph()->mutable_node(proto.graph().node_size() - 1)); }

std::string TestModel::type(const std::string& output) const {
  const Graph graph = import().graph;
  return to_string(graph.type(graph.find_output(output)->value));
}

GraphResults TestModel::run(const Feeds& feeds) const {
  Graph graph = import().graph;
  verify(graph);
  if (expand(graph) == Changed::kYes) verify(graph);
  return interpret(graph, feeds);
}

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) values.push_back(tensor.at(i));
  return values;
}

std::string ops_of(const Graph& graph) {
  std::string names;
  for (const Node& node : graph.nodes()) names += (names.empty() ? "" : " ") + std::string(node.op->name);
  return names;
}

TestNode add_node(onnx::NodeProto& node, const std::string& op_type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                  const std::string& domain) {
  node.set_op_type(op_type);
  node.set_domain(domain);
  for (const std::string& name : inputs) node.add_input(name);
  for (const std::string& name : outputs) node.add_output(name);
  return TestNode(node);
}

std::vector<Diag> problems_of(const TestModel& model, const onnx::ImportOptions& options) {
  try {
    model.import(options);
  } catch (const Error& error) { return error.diags(); }
  ADD_FAILURE() << "nothing was reported";
  return {};
}

std::string problem_of(const TestModel& model, Code code, const onnx::ImportOptions& options) {
  const std::vector<Diag> diags = problems_of(model, options);
  EXPECT_EQ(diags.size(), 1U);
  if (diags.empty()) return "";
  EXPECT_EQ(to_string(diags[0].code), to_string(code)) << to_string(diags[0]);
  return to_string(diags[0]);
}

}  // namespace hone::test
