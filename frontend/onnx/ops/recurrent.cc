// RNN, LSTM and GRU, as loops of their cell's formulas. What does not depend on the step before, is one matrix product for all steps.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/cell_activations.h"
#include "ir/ops/ops.h"
#include "ir/recurrence.h"

namespace hone::onnx {

namespace {

/// x[i] of axis 0, which goes.
Val direction_of(Val x, std::size_t i) {
  const Shape shape(x.shape().begin() + 1, x.shape().end());
  return reshape(part_of(x, 0, static_cast<std::int64_t>(i), 1), shape);
}

Val together(std::vector<Val> parts, std::int64_t axis) { return parts.size() == 1 ? parts[0] : op::concat.build(std::move(parts), {kAxis = axis}); }

/// What a cell's formulas need of the node, and the parts of `x` that belong to its gates.
struct Cell {
  Dim hidden;
  double clip;  ///< 0: none
  std::vector<CellActivation> functions;
  bool linear_before_reset, input_forget;

  Val gate(Val x, std::int64_t i, std::int64_t count = 1) const { return part_of(x, x.rank() - 1, hidden * i, hidden * count); }
  /// The gate's activation. `clip` bounds what goes in.
  Val activate(std::size_t function, Val x) const {
    if (clip > 0) x = op::clip(x, x.builder().scalar(-clip, x.dtype()), x.builder().scalar(clip, x.dtype()));
    return functions[function](x);
  }
};

/// One step: the slice of the input's products [batch, gates * hidden], the states, and the weights that the step reads whole; gives the new states.
using CellFn = std::vector<Val> (*)(const Cell& cell, Val x, const std::vector<Val>& states, const std::vector<Val>& weights);

/// A layer as a row: how many gates and states, which activations, and the formulas.
struct Layer {
  std::int64_t gates;
  std::size_t states;
  std::vector<std::string> activations;
  CellFn step;
};

/// h' = f(x + h R)
std::vector<Val> step_rnn(const Cell& cell, Val x, const std::vector<Val>& states, const std::vector<Val>& weights) {
  return {cell.activate(0, x + op::matmul(states[0], weights[0]))};
}

/// Gates i, o, f, c; peepholes (weights[1], if any) i, o, f. The cell's value goes into h as it is, unclipped, as in ONNX Runtime.
std::vector<Val> step_lstm(const Cell& cell, Val x, const std::vector<Val>& states, const std::vector<Val>& weights) {
  const Val gates = x + op::matmul(states[0], weights[0]), c = states[1];
  const auto peep = [&](Val gate, std::int64_t i, Val at) { return weights.size() < 2 ? gate : gate + cell.gate(weights[1], i) * at; };
  const Val input = cell.activate(0, peep(cell.gate(gates, 0), 0, c));
  const Val forget = cell.input_forget ? 1.0 - input : cell.activate(0, peep(cell.gate(gates, 2), 2, c));
  const Val new_c = forget * c + input * cell.activate(1, cell.gate(gates, 3));
  const Val output = cell.activate(0, peep(cell.gate(gates, 1), 1, new_c));
  return {output * cell.functions[2](new_c), new_c};
}

/// Gates z, r, h. weights: R of z and r, R of h, and with linear_before_reset the bias that belongs to it, if there is one.
std::vector<Val> step_gru(const Cell& cell, Val x, const std::vector<Val>& states, const std::vector<Val>& weights) {
  const Val h = states[0];
  const Val both = cell.activate(0, cell.gate(x, 0, 2) + op::matmul(h, weights[0]));
  const Val z = cell.gate(both, 0), r = cell.gate(both, 1);
  const auto before_reset = [&] {
    const Val product = op::matmul(h, weights[1]);
    return r * (weights.size() > 2 ? product + weights[2] : product);
  };
  const Val candidate = cell.activate(1, cell.gate(x, 2) + (cell.linear_before_reset ? before_reset() : op::matmul(r * h, weights[1])));
  return {(1.0 - z) * candidate + z * h};
}

/// The operands, with X as [steps, batch, input] and initial states as [directions, batch, hidden].
class Recurrent {
 public:
  Recurrent(const ImportNode& node, const Layer& layer)
      : node_(node), layer_(layer), batch_first_(node.flag("layout", false)), direction_(node.text("direction", "forward")) {
    node.require(direction_ == "forward" or direction_ == "reverse" or direction_ == "bidirectional", Code::kBadAttribute,
                 fmt::format("there is no direction \"{}\"", direction_));
    directions_ = direction_ == "bidirectional" ? 2 : 1;
    x_ = batch_first_ ? swapped(node.x(0)) : node.x(0);
    node.require(x_.rank() == 3 and node.x(2).rank() == 3, Code::kShape, "X and R must have 3 axes");
    hidden_ = node.x(2).shape()[2];
    check(1, {static_cast<std::int64_t>(directions_), hidden_ * layer.gates, x_.shape()[2]});
    check(2, {static_cast<std::int64_t>(directions_), hidden_ * layer.gates, hidden_});
    if (node.has(3)) check(3, {static_cast<std::int64_t>(directions_), hidden_ * (2 * layer.gates)});
    if (node.has(4)) check(4, {x_.shape()[1]});
    node.require(not node.has_attribute("hidden_size") or not hidden_.is_constant() or hidden_.is_constant(node.integer("hidden_size", 0)), Code::kBadAttribute,
                 fmt::format("hidden_size is {}, and R says {}", node.integer("hidden_size", 0), hidden_.text()));
    functions_ = cell_activations(node, layer.activations, directions_);
  }

  /// Y, and the last of each state.
  std::vector<Val> results() const {
    std::vector<Val> all;
    std::vector<std::vector<Val>> last(layer_.states);
    for (std::size_t d = 0; d < directions_; ++d) {
      const StepResults results = run(d);
      if (node_.wants(0)) all.push_back(with_axis(results.stacked[0], 1));
      for (std::size_t i = 0; i < layer_.states; ++i) last[i].push_back(with_axis(results.states[i], 0));
    }
    std::vector<Val> results = {Val()};
    if (node_.wants(0)) results[0] = batch_first_ ? transpose(together(all, 1), {2, 0, 1, 3}) : together(all, 1);
    for (std::vector<Val>& parts : last) results.push_back(batch_first_ ? swapped(together(parts, 0)) : together(parts, 0));
    return results;
  }

 private:
  static Val swapped(Val x) {
    Ints perm(x.rank());
    for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(i);
    if (perm.size() > 1) std::swap(perm[0], perm[1]);
    return transpose(x, perm);
  }

  static Val with_axis(Val x, std::size_t axis) {
    Shape shape = x.shape();
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), Dim(1));
    return reshape(x, shape);
  }

  /// Operand `i` must have this shape.
  void check(std::size_t i, const Shape& shape) const {
    const Shape& actual = node_.x(i).shape();
    bool fits = actual.size() == shape.size();
    for (std::size_t k = 0; fits and k < shape.size(); ++k) {
      fits = actual[k] == shape[k] or not actual[k].is_constant() or not shape[k].is_constant();
      if (fits and actual[k] != shape[k]) node_.builder().equate(actual[k], shape[k]);
    }
    if (not fits) node_.fail(Code::kShape, fmt::format("input {} has the shape [{}], and must have [{}]", i, to_string(actual), to_string(shape)));
  }

  /// Operand `i`, a state [directions, batch, hidden], for one direction; zeros if it is left out.
  Val initial(std::size_t i, std::size_t direction) const {
    const Shape shape = {x_.shape()[1], hidden_};
    if (not node_.has(i)) return full(node_.builder(), 0, x_.dtype(), shape);
    const Val given = node_.x(i);
    const Dim directions = static_cast<std::int64_t>(directions_);
    check(i, batch_first_ ? Shape{shape[0], directions, shape[1]} : Shape{directions, shape[0], shape[1]});
    return direction_of(batch_first_ ? swapped(given) : given, direction);
  }

  /// Both biases where all of it is added outside of the loop; that of `h` behind a reset stays inside.
  Val outer_bias(std::size_t direction, bool keeps_last) const {
    const Val both = direction_of(node_.x(3), direction);
    const Dim size = hidden_ * layer_.gates, outside = keeps_last ? hidden_ * (layer_.gates - 1) : size;
    const Val of_input = part_of(both, 0, 0, size);
    if (not keeps_last) return of_input + part_of(both, 0, size, size);
    return together({part_of(of_input, 0, 0, outside) + part_of(both, 0, size, outside), part_of(of_input, 0, outside, hidden_)}, 0);
  }

  /// What every step reads: R transposed, in the pieces that the cell wants, and the layer's own extras.
  std::vector<Val> weights(std::size_t direction, bool linear_before_reset) const {
    const Val r = transpose_last(direction_of(node_.x(2), direction));
    if (layer_.step != step_gru) {
      std::vector<Val> weights = {r};
      if (node_.op_type() == "LSTM" and node_.has(7)) {
        check(7, {static_cast<std::int64_t>(directions_), hidden_ * 3});
        weights.push_back(direction_of(node_.x(7), direction));
      }
      return weights;
    }
    std::vector<Val> weights = {part_of(r, 1, 0, hidden_ * 2), part_of(r, 1, hidden_ * 2, hidden_)};
    if (linear_before_reset and node_.has(3)) weights.push_back(part_of(direction_of(node_.x(3), direction), 0, hidden_ * 5, hidden_));
    return weights;
  }

  StepResults run(std::size_t direction) const {
    const std::size_t per_direction = layer_.activations.size();
    const auto first = functions_.begin() + static_cast<std::ptrdiff_t>(direction * per_direction);
    const Cell cell{hidden_, node_.real("clip", 0), {first, first + static_cast<std::ptrdiff_t>(per_direction)},
                    layer_.step == step_gru and node_.flag("linear_before_reset", false), node_.flag("input_forget", false)};
    const Val w = transpose_last(direction_of(node_.x(1), direction));
    const Dim steps = x_.shape()[0], batch = x_.shape()[1];
    Val products = op::matmul(reshape(x_, {steps * batch, x_.shape()[2]}), w);
    if (node_.has(3)) products = products + outer_bias(direction, cell.linear_before_reset);
    Recurrence loop{.steps = steps, .reverse = direction_ == "reverse" or direction == 1};
    loop.scanned = {reshape(products, {steps, batch, hidden_ * layer_.gates})};
    for (std::size_t i = 0; i < layer_.states; ++i) loop.states.push_back(initial(5 + i, direction));
    loop.whole = weights(direction, cell.linear_before_reset);
    const bool has_lengths = node_.has(4), stacks = node_.wants(0);
    if (has_lengths) loop.whole.push_back(cast(reshape(node_.x(4), {batch, 1}), DType::kI64));
    return write_recurrence(node_.builder(), loop, [&](Builder& inside, const Step& step) {
      std::vector<Val> own = step.whole;
      if (has_lengths) own.pop_back();
      StepResults results{layer_.step(cell, step.slices[0], step.states, own), {}};
      Val y = results.states[0];
      if (has_lengths) {  // behind its end, a sequence keeps its states and gives zeros
        const Val alive = op::less(step.position, step.whole.back());
        for (std::size_t i = 0; i < results.states.size(); ++i) results.states[i] = op::where(alive, results.states[i], step.states[i]);
        y = op::where(alive, y, inside.scalar(0, y.dtype()));
      }
      if (stacks) results.stacked = {y};
      return results;
    });
  }

  const ImportNode& node_;
  const Layer& layer_;
  const bool batch_first_;
  const std::string direction_;
  std::size_t directions_ = 1;
  Val x_;
  Dim hidden_;
  std::vector<CellActivation> functions_;
};

std::vector<Val> import_rnn(const ImportNode& node) { return Recurrent(node, {1, 1, {"Tanh"}, step_rnn}).results(); }
std::vector<Val> import_gru(const ImportNode& node) { return Recurrent(node, {3, 1, {"Sigmoid", "Tanh"}, step_gru}).results(); }
std::vector<Val> import_lstm(const ImportNode& node) { return Recurrent(node, {4, 2, {"Sigmoid", "Tanh", "Tanh"}, step_lstm}).results(); }

constinit const Importer kRecurrentOps[] = {
    {"RNN", import_rnn, {1, 2, 3}},
    {"GRU", import_gru, {1, 2, 3}},
    {"LSTM", import_lstm, {1, 2, 3, 7}},
};

}  // namespace

std::span<const Importer> recurrent_importers() { return kRecurrentOps; }

}  // namespace hone::onnx
