// Small ONNX models, written down in a test.
#pragma once

#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "base/tensor.h"
#include "formats/onnx_file.h"
#include "frontend/onnx/import.h"
#include "ir/kernel/interpret.h"

namespace hone::test {

/// A number or a name.
using Extent = std::variant<std::int64_t, std::string>;

Tensor f32(std::vector<std::int64_t> shape, std::vector<float> values);
Tensor i64(std::vector<std::int64_t> shape, std::vector<std::int64_t> values);
/// A vector of int64, as shapes, axes and starts are given.
inline Tensor ints(std::vector<std::int64_t> values) { return i64({static_cast<std::int64_t>(values.size())}, values); }
/// f32 values that differ from each other: 0.5, 1, 1.5, ... with changing signs.
Tensor wavy(std::vector<std::int64_t> shape);
/// A vector of f32: a scale of a fresh model.
Tensor ones(std::int64_t n);
/// Names of what would be trained.
std::vector<std::string> weights_of(const onnx::Imported& imported);

/// Adds attributes to a node.
class TestNode {
 public:
  explicit TestNode(onnx::NodeProto& proto) : proto_(proto) {}
  TestNode& set(const std::string& name, std::int64_t value);
  TestNode& set(const std::string& name, int value) { return set(name, static_cast<std::int64_t>(value)); }
  TestNode& set(const std::string& name, double value);
  TestNode& set(const std::string& name, const char* value);
  TestNode& set(const std::string& name, std::vector<std::int64_t> values);
  TestNode& set(const std::string& name, std::vector<float> values);
  TestNode& set(const std::string& name, const Tensor& value);
  TestNode& named(const std::string& name);
  onnx::NodeProto& proto() { return proto_; }

 private:
  onnx::AttributeProto& add(const std::string& name, onnx::AttributeProto::AttributeType type);
  onnx::NodeProto& proto_;
};

/// Makes `node` one of `op_type`.
TestNode add_node(onnx::NodeProto& node, const std::string& op_type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                  const std::string& domain = "");

/// A body of If, Loop or Scan, written down.
struct BodyGraph {
  onnx::GraphProto& proto;
  BodyGraph(onnx::NodeProto& node, const std::string& attribute) : proto(*add(node, attribute).mutable_g()) {}
  BodyGraph& input(const std::string& name) { return proto.add_input()->set_name(name), *this; }
  BodyGraph& output(const std::string& name) { return proto.add_output()->set_name(name), *this; }
  TestNode node(const std::string& op_type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, const std::string& domain = "") {
    return add_node(*proto.add_node(), op_type, inputs, outputs, domain);
  }

 private:
  static onnx::AttributeProto& add(onnx::NodeProto& node, const std::string& name) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    return attribute;
  }
};

struct TestModel {
  onnx::ModelProto proto;

  explicit TestModel(std::int64_t opset = 17);
  /// Input "x" and output "y" of one node, whose other operands are initializers "b", "c", ... (an empty Tensor is left out).
  static TestModel of_node(const std::string& op_type, std::vector<Extent> x, std::vector<Tensor> others = {}, std::int64_t opset = 17);

  TestModel& input(const std::string& name, std::vector<Extent> shape, DType dtype = DType::kF32);
  TestModel& initializer(const std::string& name, const Tensor& value);
  TestModel& output(const std::string& name);
  TestNode node(const std::string& op_type, std::vector<std::string> inputs, std::vector<std::string> outputs);
  /// The last node.
  TestNode last();

  onnx::Imported import(const onnx::ImportOptions& options = {}) const { return onnx::import_model(proto, "test.onnx", ".", options); }
  /// "f32[N,10]" of output "y" (or another).
  std::string type(const std::string& output = "y") const;
  /// What the model gives, verified, expanded and interpreted.
  GraphResults run(const Feeds& feeds) const;
  /// Output "y" for input "x".
  Tensor y(const Tensor& x) const { return run({{"x", x}})["y"]; }
};

std::vector<double> values_of(const Tensor& tensor);

/// The names of the ops of the graph's nodes, in order: "matmul add".
std::string ops_of(const Graph& graph);

/// What importing the model reports.
std::vector<Diag> problems_of(const TestModel& model, const onnx::ImportOptions& options = {});
/// The only problem, as text; its code must be `code`.
std::string problem_of(const TestModel& model, Code code, const onnx::ImportOptions& options = {});

}  // namespace hone::test
