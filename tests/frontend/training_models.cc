#include "tests/frontend/training_models.h"

namespace hone::test {

TestModel linear_model() {
  TestModel model;
  model.input("x", {"N", 3}).output("y");
  model.initializer("w", f32({3, 2}, {0.5F, -0.25F, 0.125F, 0.75F, -0.5F, 0.25F})).initializer("b", f32({2}, {0.1F, -0.2F}));
  model.node("MatMul", {"x", "w"}, {"product"});
  model.node("Add", {"product", "b"}, {"y"});
  return model;
}

Tensor linear_x() { return f32({4, 3}, {1, 2, -1, 0.5F, -1, 2, -1.5F, 0.25F, 1, 2, 1, 0.5F}); }
Tensor linear_targets() { return f32({4, 2}, {1, -1, 0.5F, 2, -2, 0, 1.5F, 0.75F}); }

void add_update(TestModel& model, const std::string& initializer, const std::string& value) {
  onnx::TrainingInfoProto& info = *model.proto.mutable_training_info(0);
  onnx::StringStringEntryProto& binding = *info.add_update_binding();
  binding.set_key(initializer);
  binding.set_value(value);
  info.mutable_algorithm()->add_output()->set_name(value);
}

void add_algorithm(TestModel& model, TestModel algorithm, const std::vector<std::pair<std::string, std::string>>& updates) {
  onnx::OperatorSetIdProto& training = *model.proto.add_opset_import();
  training.set_domain("ai.onnx.preview.training");
  training.set_version(1);
  *model.proto.add_training_info()->mutable_algorithm() = std::move(*algorithm.proto.mutable_graph());
  for (const auto& [initializer, value] : updates) add_update(model, initializer, value);
}

TestModel mean_square_gradients() {
  TestModel algorithm;
  algorithm.input("t", {"N", 2}).output("loss");
  algorithm.node("Sub", {"y", "t"}, {"error"});
  algorithm.node("Mul", {"error", "error"}, {"squares"});
  algorithm.node("ReduceMean", {"squares"}, {"loss"}).set("keepdims", 0);
  TestNode gradient = algorithm.node("Gradient", {"w", "b", "x", "t"}, {"dw", "db"});
  gradient.set("y", "loss").proto().set_domain("ai.onnx.preview.training");
  for (const auto& [name, values] : {std::pair("xs", std::vector{"w", "b"}), std::pair("zs", std::vector{"x", "t"})}) {
    onnx::AttributeProto& attribute = *gradient.proto().add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::STRINGS);
    for (const char* value : values) attribute.add_strings(value);
  }
  return algorithm;
}

TestModel trained_by(const std::string& optimizer, std::size_t states) {
  TestModel model = linear_model(), algorithm = mean_square_gradients();
  algorithm.initializer("R", f32({}, {0.1F})).initializer("T", i64({}, {0})).initializer("one", i64({}, {1}));
  std::vector<std::string> inputs = {"R", "T", "w", "b", "dw", "db"}, outputs = {"w_next", "b_next"};
  std::vector<std::pair<std::string, std::string>> updates = {{"w", "w_next"}, {"b", "b_next"}, {"T", "T_next"}};
  for (std::size_t i = 0; i < states; ++i) {
    const std::string prefix = i == 0 ? "v_" : "h_";
    algorithm.initializer(prefix + "w", f32({3, 2}, std::vector<float>(6))).initializer(prefix + "b", f32({2}, {0, 0}));
    for (const char* weight : {"w", "b"}) {
      inputs.push_back(prefix + weight);
      outputs.push_back(prefix + weight + "_next");
      updates.emplace_back(inputs.back(), outputs.back());
    }
  }
  algorithm.node(optimizer, inputs, outputs).proto().set_domain("ai.onnx.preview.training");
  algorithm.node("Add", {"T", "one"}, {"T_next"});
  add_algorithm(model, std::move(algorithm), updates);
  return model;
}

TestModel trained_by_descent() {
  TestModel model = linear_model(), algorithm = mean_square_gradients();
  algorithm.initializer("R", f32({}, {0.1F}));
  for (const std::string weight : {"w", "b"}) {
    algorithm.node("Mul", {"R", "d" + weight}, {"step_" + weight});
    algorithm.node("Sub", {weight, "step_" + weight}, {weight + "_next"});
  }
  add_algorithm(model, std::move(algorithm), {{"w", "w_next"}, {"b", "b_next"}});
  return model;
}

TestNode algorithm_node(TestModel& model, const std::string& op_type) {
  for (onnx::NodeProto& node : *model.proto.mutable_training_info(0)->mutable_algorithm()->mutable_node())
    if (node.op_type() == op_type) return TestNode(node);
  throw std::logic_error("no node " + op_type);
}

Trajectory by_descent() {
  return {{1.67209473, 1.13788537, 0.797929333, 0.575887143},
          {0.716383186, -0.0767496091, -0.014916957, 0.332352453, -0.336213836, 0.716763531},
          {0.126950908, -0.158643122}};
}
Trajectory by_momentum() {
  return {{1.67209473, 1.13725031, 0.625439656, 0.290229386},
          {0.861940325, 0.017967547, -0.108424821, 0.0145535149, -0.208230704, 1.07671833},
          {0.156432133, -0.116630509}};
}
Trajectory by_adam() {
  return {{1.67209473, 0.63360802, 0.387750844, 0.218605096},
          {1.08898075, 0.195774441, -0.4132053, 0.0880423589, -0.227465319, 0.873336745},
          {0.199227751, -0.0692416471}};
}
Trajectory by_adagrad() {
  return {{1.67209473, 1.19471236, 0.976144763, 0.837507329},
          {0.727437645, -0.0423869986, -0.0892275805, 0.508988762, -0.320501022, 0.481202857},
          {0.161434161, -0.100782531}};
}

}  // namespace hone::test
