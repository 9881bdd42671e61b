// Recurrent layers as one node. Numbers are small, so that no gate saturates.
#include <cmath>

#include "base/recurrent_cell.h"
#include "tests/ops/op_cases.h"

namespace hone::test {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// A layer of two hidden features over x [steps,samples,3], and its gradient, for which the states and their gradients are any numbers.
void add_layer(Cases& cases, std::string says, RecurrentCell cell, Ints gates, const Dim& steps, const Dim& samples) {
  constexpr std::int64_t kFeatures = 3, kHidden = 2;
  const std::int64_t rows = gates_of(cell) * kHidden;
  const Shape state = {samples, kHidden}, y = {steps, samples, kHidden};
  const auto small = [](Shape shape) { return f32(std::move(shape), -0.9, 0.9); };
  const std::vector<Operand> layer = {small({steps, samples, kFeatures}), small({rows, kFeatures}), small({rows, kHidden}), small({rows}), small({rows})};
  std::vector<Operand> forward = layer, backward = layer;
  backward.push_back(small(y));
  for (std::size_t i = 0; i < states_of(cell); ++i) forward.push_back(small(state));
  for (std::size_t i = 0; i < 2 * states_of(cell); ++i) backward.push_back(small(state));
  const Attrs attrs = {kCell = static_cast<std::int64_t>(cell), kGates = std::move(gates)};
  cases.add(op::recurrent, says, std::move(forward), attrs).gives(y).gives(state);
  if (states_of(cell) > 1) cases.gives(state);
  cases.add(op::recurrent_grad, std::move(says), std::move(backward), attrs);
  for (const Operand& operand : layer) cases.gives(operand.type.shape);
  for (std::size_t i = 0; i < states_of(cell); ++i) cases.gives(state);
}

}  // namespace

void add_recurrent_cases(Cases& cases) {
  add_layer(cases, "tanh", RecurrentCell::kTanh, {0}, 4, kN);
  add_layer(cases, "an LSTM", RecurrentCell::kLstm, {0, 1, 2, 3}, 3, kN);
  add_layer(cases, "an LSTM whose gates lie otherwise", RecurrentCell::kLstm, {0, 2, 3, 1}, kM, kN);
  add_layer(cases, "a GRU", RecurrentCell::kGru, {1, 0, 2}, 3, kN);
  add_layer(cases, "no steps", RecurrentCell::kGru, {0, 1, 2}, kEmpty, kN);
  add_layer(cases, "no samples", RecurrentCell::kLstm, {0, 1, 2, 3}, 2, kEmpty);

  // One step, one sample, one feature: gates get 0, 1, 2, .. from the bias, less what comes by x and h.
  const auto one = [](const std::vector<double>& values) { return given({static_cast<std::int64_t>(values.size())}, values); };
  const auto column = [](const std::vector<double>& values) { return given({static_cast<std::int64_t>(values.size()), 1}, values); };
  const Operand x = given({1, 1, 1}, {2}), h = given({1, 1}, {0.5}), c = given({1, 1}, {4});
  cases.add(op::recurrent, "by hand: tanh", {x, column({0.3}), column({-2}), one({0.5}), one({1}), h}, {kCell = 1, kGates = Ints{0}}).equals({std::tanh(1.1)});
  const double new_c = sigmoid(1) * 4 + sigmoid(0) * std::tanh(2);
  cases.add(op::recurrent, "by hand: an LSTM", {x, column({0, 0, 0, 0.5}), column({0, 0, 0, 2}), one({0, 1, 2, 0}), one({0, 0, 0, 1}), h, c}, {kCell = 2, kGates = Ints{0, 1, 2, 3}});
  cases.equals({sigmoid(3) * std::tanh(new_c)});
  const double update = sigmoid(2), candidate = std::tanh(1 + sigmoid(-1) * (0.5 * 6 + 1));
  cases.add(op::recurrent, "by hand: a GRU resets what comes by h, bias included", {x, column({0, 1, 0.5}), column({-2, 0, 6}), one({0, 0, 0}), one({0, 0, 1}), h}, {kCell = 3, kGates = Ints{0, 1, 2}});
  cases.equals({update * 0.5 + (1 - update) * candidate});
}

}  // namespace hone::test
