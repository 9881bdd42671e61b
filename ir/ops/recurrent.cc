// A recurrent layer in one direction as one node, and its gradient as another, for targets whose library does each in one call.
#include <fmt/format.h>

#include <algorithm>

#include "base/recurrent_cell.h"
#include "ir/differentiate.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/ops/products.h"
#include "ir/recurrence.h"

namespace hone::op {

namespace {

// The operands of both.
enum : std::size_t { kX, kW, kR, kBias, kStateBias };
constexpr std::size_t kWeights = 5;  ///< that many in front of the states; of the gradient dy, too

RecurrentCell cell_of(const Attrs& attrs) { return static_cast<RecurrentCell>(attrs[kCell]); }

/// x and all weights; how many states follow, and the type of each.
struct StateTypes {
  std::size_t count;
  Type type;
};
StateTypes require_layer(Infer& infer) {
  infer.require(infer.attrs[kCell] >= kFirstRecurrentCell and infer.attrs[kCell] <= kLastRecurrentCell, Code::kBadAttribute, "there is no such cell");
  const std::int64_t gates = gates_of(cell_of(infer.attrs));
  Ints places = infer.attrs[kGates];
  std::ranges::sort(places);
  for (std::int64_t i = 0; i < gates; ++i)
    infer.require(static_cast<std::int64_t>(places.size()) == gates and places[static_cast<std::size_t>(i)] == i, Code::kBadAttribute, "`gates` must name a place for each gate");
  for (std::size_t i = 0; i < kWeights; ++i) infer.require(infer.dtype(i) == DType::kF32, Code::kType, "x and weights must be f32");
  infer.require(infer.rank(kX) == 3 and infer.rank(kW) == 2 and infer.rank(kR) == 2 and infer.rank(kBias) == 1 and infer.rank(kStateBias) == 1, Code::kShape,
                "x has three axes, w and r two, biases one");
  const Dim hidden = infer.shape(kR)[1];
  for (const std::size_t i : {kW, kR, kBias, kStateBias}) infer.unify(infer.shape(i)[0], hidden * gates, "rows of a weight, and gates times hidden features");
  infer.unify(infer.shape(kW)[1], infer.shape(kX)[2], "columns of w, and features of x");
  return {states_of(cell_of(infer.attrs)), {DType::kF32, {infer.shape(kX)[1], hidden}}};
}

void require_states(Infer& infer, std::size_t first, std::size_t count, const Type& type) {
  infer.require(infer.count() == first + count, Code::kBadGraph, fmt::format("the cell has {} states", count));
  for (std::size_t i = first; i < infer.count(); ++i) {
    infer.require(infer.dtype(i) == type.dtype and infer.rank(i) == 2, Code::kShape, "states are f32, of samples and hidden features");
    for (const std::size_t axis : {0, 1}) infer.unify(infer.shape(i)[axis], type.shape[axis], "samples, or hidden features, of a state");
  }
}

Type stacked_type(const Infer& infer, const Type& state) { return {state.dtype, {infer.shape(kX)[0], state.shape[0], state.shape[1]}}; }

std::vector<Type> infer_recurrent(Infer& infer) {
  const StateTypes states = require_layer(infer);
  require_states(infer, kWeights, states.count, states.type);
  std::vector<Type> types = {stacked_type(infer, states.type)};
  types.insert(types.end(), states.count, states.type);
  return types;
}

std::vector<Type> infer_recurrent_grad(Infer& infer) {
  const StateTypes states = require_layer(infer);
  infer.require(infer.type(kWeights) == stacked_type(infer, states.type), Code::kShape, "dy must be what the layer gives");
  require_states(infer, kWeights + 1, 2 * states.count, states.type);
  std::vector<Type> types;
  for (std::size_t i = 0; i < kWeights; ++i) types.push_back(infer.type(i));
  types.insert(types.end(), states.count, states.type);
  return types;
}

/// The loop: products with x for all steps in front of it, those with h in it.
class Loop {
 public:
  Loop(const Attrs& attrs, std::vector<Val> operands) : cell_(cell_of(attrs)), gates_(attrs[kGates]), tf32_(attrs[kTf32]), operands_(std::move(operands)), hidden_(operands_[kR].shape()[1]) {}

  /// y, and the last of each state.
  std::vector<Val> write(Builder& builder) const {
    const Val x = operands_[kX], state_bias = operands_[kStateBias];
    const Dim steps = x.shape()[0], batch = x.shape()[1];
    const bool bias_stays = cell_ == RecurrentCell::kGru;  // behind the reset
    const Val bias = bias_stays ? operands_[kBias] : operands_[kBias] + state_bias;
    const Val products = multiply(hone::reshape(x, {steps * batch, x.shape()[2]}), operands_[kW]) + bias;
    Recurrence loop{.steps = steps, .states = {operands_.begin() + kWeights, operands_.end()}, .scanned = {hone::reshape(products, {steps, batch, products.shape()[1]})}, .whole = {operands_[kR]}};
    if (bias_stays) loop.whole.push_back(state_bias);
    const StepResults results = write_recurrence(builder, loop, [this](Builder&, const Step& step) {
      StepResults made{states_after(step), {}};
      made.stacked = {made.states[0]};
      return made;
    });
    std::vector<Val> all = {results.stacked[0]};
    all.insert(all.end(), results.states.begin(), results.states.end());
    return all;
  }

 private:
  Val multiply(Val a, Val b) const {
    Attrs attrs = {kTransB = true};
    if (tf32_) attrs.set(kTf32 = true);
    return op::matmul(a, b, std::move(attrs));
  }
  Val gate(Val x, std::size_t i) const { return part_of(x, x.rank() - 1, hidden_ * gates_[i], hidden_); }

  std::vector<Val> states_after(const Step& step) const {
    const Val of_input = step.slices[0], h = step.states[0], of_state = multiply(h, step.whole[0]);
    switch (cell_) {
      case RecurrentCell::kTanh: return {op::tanh(of_input + of_state)};
      case RecurrentCell::kLstm: {
        const Val all = of_input + of_state;
        const Val c = op::sigmoid(gate(all, 1)) * step.states[1] + op::sigmoid(gate(all, 0)) * op::tanh(gate(all, 2));
        return {op::sigmoid(gate(all, 3)) * op::tanh(c), c};
      }
      case RecurrentCell::kGru: {
        const Val biased = of_state + step.whole[1];
        const Val reset = op::sigmoid(gate(of_input, 0) + gate(biased, 0)), update = op::sigmoid(gate(of_input, 1) + gate(biased, 1));
        return {update * h + (1 - update) * op::tanh(gate(of_input, 2) + reset * gate(biased, 2))};
      }
    }
    return {};
  }

  const RecurrentCell cell_;
  const Ints gates_;
  const bool tf32_;
  const std::vector<Val> operands_;
  const Dim hidden_;
};

/// The loop again, and back through it.
std::vector<Val> lower_recurrent_grad(const Lower& l) {
  const std::size_t states = states_of(cell_of(l.attrs)), first_state = kWeights + 1;
  std::vector<Val> operands;
  const auto add = [&](std::size_t i) { operands.push_back(op::stop_gradient(l.x(i))); };  // because how one operand follows from another is nobody's business here
  for (std::size_t i = 0; i < kWeights; ++i) add(i);
  for (std::size_t i = 0; i < states; ++i) add(first_state + i);
  const std::vector<Val> results = Loop(l.attrs, operands).write(l.builder);
  std::vector<Seed> seeds = {{results[0].id(), l.x(kWeights).id()}};
  for (std::size_t i = 0; i < states; ++i) seeds.push_back({results[1 + i].id(), l.x(first_state + states + i).id()});
  std::vector<ValueId> wrt;
  for (const Val& operand : operands) wrt.push_back(operand.id());
  std::vector<Val> gradients;
  for (const ValueId gradient : differentiate(l.builder, seeds, wrt)) gradients.push_back(l.builder.val(gradient));
  return gradients;
}

void differentiate_recurrent(Grad& g) {
  std::vector<Val> operands;
  for (std::size_t i = 0; i < kWeights; ++i) operands.push_back(g.x(i));
  const std::size_t states = g.count() - kWeights;
  operands.push_back(g.dy());
  for (std::size_t i = 0; i < states; ++i) operands.push_back(g.x(kWeights + i));
  for (std::size_t i = 0; i < states; ++i) operands.push_back(g.dy(1 + i));
  const std::vector<Val> gradients = op::recurrent_grad.build_all(operands, g.attrs);
  for (std::size_t i = 0; i < gradients.size(); ++i) g.flow(i, gradients[i]);
}

}  // namespace

constinit const OpDef recurrent = {
    .name = "recurrent",
    .doc = "y[t,n] = the hidden state after step t, and the last states, of a layer over x [steps, samples, features]: base/recurrent_cell.h says what cell number `cell` does. w [gates * hidden, features] and "
           "r [gates * hidden, hidden] give each gate its products with x and with the hidden state, bias and state_bias [gates * hidden] are added to them; gate i lies at place gates[i]. "
           "The states before the first step are h, and of an LSTM c, [samples, hidden]",
    .inputs = {"x", "w", "r", "bias", "state_bias", "states..."},
    .results = {"y", "last..."},
    .attrs = {kCell, kGates, kTf32},
    .infer = infer_recurrent,
    .grad = differentiate_recurrent,
    .lower = [](const Lower& l) { return Loop(l.attrs, l.operands).write(l.builder); },
    .keep = true,
    .whole = true,
};

constinit const OpDef recurrent_grad = {
    .name = "recurrent_grad",
    .doc = "the gradients of recurrent's operands, from these, dy, the states before the first step, and the gradients of the last ones. What the layer computed in between, it computes again",
    .inputs = {"x", "w", "r", "bias", "state_bias", "dy", "states..."},
    .results = {"dx", "dw", "dr", "dbias", "dstate_bias", "dstates..."},
    .attrs = {kCell, kGates, kTf32},
    .infer = infer_recurrent_grad,
    .grad = no_gradient("it is made where gradients are, and not differentiated again"),
    .lower = lower_recurrent_grad,
    .whole = true,
};

}  // namespace hone::op
