// Recurrent layers. Weights are kept small, so that no gate saturates; relu's and hard sigmoid's kinks are far from what the seeds give.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

constexpr std::int64_t kHidden = 3, kInput = 2, kSteps = 4, kBatch = 2;

/// The operands of a layer of so many gates.
struct Operands {
  std::int64_t gates, directions = 1;

  GradientInput data() const { return x({kSteps, kBatch, kInput}, -1, 1); }
  GradientInput w() const { return x({directions, gates * kHidden, kInput}, -0.9, 0.9); }
  GradientInput r() const { return x({directions, gates * kHidden, kHidden}, -0.9, 0.9); }
  GradientInput b() const { return x({directions, 2 * gates * kHidden}, -0.5, 0.5); }
  GradientInput state() const { return x({directions, kBatch, kHidden}, -0.8, 0.8); }
  GradientInput peepholes() const { return x({directions, 3 * kHidden}, -0.8, 0.8); }
};
GradientInput lengths(std::vector<double> values) { return given(DType::kI32, {kBatch}, std::move(values)); }

/// What all three layers have.
void add_layer(GradientCases& cases, const char* op, std::int64_t gates, std::size_t outputs) {
  const Operands one{gates}, two{gates, 2};
  cases.add(op, "forward", {one.data(), one.w(), one.r()}, {{"hidden_size", kHidden}}).outputs(outputs);
  cases.add(op, "biases", {one.data(), one.w(), one.r(), one.b()}, {{"hidden_size", kHidden}}).outputs(outputs);
  cases.add(op, "backwards", {one.data(), one.w(), one.r(), one.b()}, {{"direction", "reverse"}}).outputs(outputs);
  cases.add(op, "both directions", {two.data(), two.w(), two.r(), two.b()}, {{"direction", "bidirectional"}}).outputs(outputs);
  cases.add(op, "an initial state", {one.data(), one.w(), one.r(), absent(), absent(), one.state()}).outputs(outputs);
  cases.add(op, "lengths", {one.data(), one.w(), one.r(), one.b(), lengths({2, 4}), one.state()}).outputs(outputs);
  cases.add(op, "lengths in both directions", {two.data(), two.w(), two.r(), two.b(), lengths({3, 1})}, {{"direction", "bidirectional"}}).outputs(outputs);
  cases
      .add(op, "the batch first", {x({kBatch, kSteps, kInput}, -1, 1), two.w(), two.r(), two.b(), absent(), x({kBatch, 2, kHidden}, -0.8, 0.8)},
           {{"layout", 1}, {"direction", "bidirectional"}})
      .outputs(outputs);
  cases.add(op, "the last state only", {one.data(), one.w(), one.r(), one.b()}).outputs(outputs).leaves_out(0);
  cases.add(op, "all steps only", {one.data(), one.w(), one.r(), one.b()});
  cases.add(op, "one step", {x({1, kBatch, kInput}, -1, 1), one.w(), one.r(), one.b(), absent(), one.state()}).outputs(outputs);
  cases.add(op, "a symbolic batch", {x({kSteps, "N", kInput}, -1, 1), one.w(), one.r(), one.b()}).outputs(outputs);
  cases.add(op, "constant weights", {one.data(), constant(one.w()), constant(one.r()), constant(one.b())}).outputs(outputs);
  cases.add(op, "a clip that bounds nothing here", {one.data(), one.w(), one.r(), one.b()}, {{"clip", 40.0}}).outputs(outputs);
}

/// Every activation, as the function that a gate applies; the cell's others stay what they are.
void add_activations(GradientCases& cases, const char* op, std::int64_t gates, std::size_t outputs, const std::vector<std::string>& others) {
  const Operands one{gates};
  const auto add = [&](const char* name, std::vector<float> alpha, std::vector<float> beta, GradientInput bias) {
    cases.add(op, std::string("activation ") + name, {one.data(), one.w(), one.r(), std::move(bias)}).outputs(outputs).nodes([=](TestModel& model) {
      std::vector<std::string> results;
      for (std::size_t i = 0; i < outputs; ++i) results.push_back("y" + std::to_string(i));
      TestNode node = model.node(op, {"x0", "x1", "x2", "x3"}, results);
      if (not alpha.empty()) node.set("activation_alpha", alpha);
      if (not beta.empty()) node.set("activation_beta", beta);
      onnx::AttributeProto& activations = *node.proto().add_attribute();
      activations.set_name("activations");
      activations.set_type(onnx::AttributeProto::STRINGS);
      activations.add_strings(name);
      for (const std::string& other : others) activations.add_strings(other);
    });
  };
  const GradientInput above_kinks = x({1, 2 * gates * kHidden}, 1.6, 2.4);
  for (const char* name : {"Tanh", "Sigmoid", "Softsign", "Softplus"}) add(name, {}, {}, one.b());
  for (const char* name : {"LeakyRelu", "Elu"}) add(name, {0.3F}, {}, one.b());
  for (const char* name : {"Affine", "ScaledTanh"}) add(name, {0.7F}, {0.6F}, one.b());
  add("HardSigmoid", {0.1F}, {0.45F}, one.b());
  add("Relu", {}, {}, above_kinks);
  add("ThresholdedRelu", {0.01F}, {}, above_kinks);
}

}  // namespace

void add_recurrent_cases(GradientCases& cases) {
  const Operands gru{3}, lstm{4}, both{4, 2};
  add_layer(cases, "RNN", 1, 2);
  add_activations(cases, "RNN", 1, 2, {});
  add_layer(cases, "GRU", 3, 2);
  add_activations(cases, "GRU", 3, 2, {"Tanh"});
  cases.add("GRU", "linear before reset", {gru.data(), gru.w(), gru.r(), gru.b()}, {{"linear_before_reset", 1}}).outputs(2);
  cases.add("GRU", "linear before reset without biases", {gru.data(), gru.w(), gru.r()}, {{"linear_before_reset", 1}}).outputs(2);
  add_layer(cases, "LSTM", 4, 3);
  add_activations(cases, "LSTM", 4, 3, {"Tanh", "Softsign"});
  cases.add("LSTM", "peepholes and both states", {lstm.data(), lstm.w(), lstm.r(), lstm.b(), absent(), lstm.state(), lstm.state(), lstm.peepholes()}).outputs(3);
  cases
      .add("LSTM", "peepholes in both directions", {both.data(), both.w(), both.r(), absent(), lengths({4, 2}), absent(), both.state(), both.peepholes()},
           {{"direction", "bidirectional"}})
      .outputs(3);
  cases.add("LSTM", "input and forget gate coupled", {lstm.data(), lstm.w(), lstm.r(), lstm.b()}, {{"input_forget", 1}}).outputs(3);
}

}  // namespace hone::test
