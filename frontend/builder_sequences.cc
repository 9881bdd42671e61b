// Layers over sequences: normalization, embedding, attention, recurrence.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "frontend/builder_layer.h"
#include "ir/ops/ops.h"
#include "ir/recurrence.h"

namespace hone::nn {

namespace {

/// `count` features of the last axis, from the one at `first` on.
Val features(Val x, std::int64_t first, std::int64_t count) { return part_of(x, x.rank() - 1, first, count); }

/// Row `number` of a matrix.
Val row(Val x, std::int64_t number) {
  return hone::reshape(part_of(x, 0, number, 1), {x.shape()[1]});
}

/// A way through the steps.
enum class Direction : std::uint8_t { kForward, kBackward };

/// The name of a weight of the layer that goes that way.
std::string weight_of(Direction direction, const char* part) { return fmt::format("{}{}", direction == Direction::kForward ? "" : "backward_", part); }

/// The steps of x[N,T,in], which come first so that each reads a block, times the layer's kernel: what does not depend on the step before is one product for all of them.
Val products_of_steps(Layer& layer, Value x, std::int64_t units, std::int64_t width, Direction direction) {
  if (x.shape().size() != 3) layer.fail(fmt::format("its input [{}] must have three axes: samples, steps, features", to_string(x.shape())));
  layer.at_least(1, units, "the number of units");
  return op::matmul(hone::transpose(x.val(), {1, 0, 2}), layer.weight(weight_of(direction, "kernel"), {layer.extent(x, 2), width}, Initializer::glorot_uniform()));
}

/// The mask of a layer's steps: nothing, or bool [N,T], T being the second extent of `x`.
void check_mask(const Layer& layer, const Value& x, const std::optional<Value>& mask) {
  if (not mask or x.shape().size() < 2) return;  // which the layer refuses
  const Shape wanted = {x.shape()[0], x.shape()[1]};
  if (layer.operand(*mask).dtype() != DType::kBool or mask->shape() != wanted)
    layer.fail(fmt::format("its mask is {}[{}], and bool[{}] is wanted", to_string(mask->val().dtype()), to_string(mask->shape()), to_string(wanted)), "one truth for each step of each sample: not_equal(ids, 0), for one");
}

/// A recurrence whose padded steps leave all states as they were. If it `stacks`, that is the first state after each step.
StepResults masked_recurrence(Builder& builder, Recurrence loop, const std::optional<Value>& mask, bool stacks, const std::function<std::vector<Val>(const Step&)>& states_of) {
  if (mask) loop.scanned.push_back(hone::reshape(hone::transpose(mask->val(), {1, 0}), {loop.steps, mask->shape()[0], 1}));
  return write_recurrence(builder, loop, [&](Builder&, const Step& step) {
    std::vector<Val> states = states_of(step);
    if (mask)
      for (std::size_t i = 0; i < states.size(); ++i) states[i] = op::where(step.slices.back(), states[i], step.states[i]);
    return StepResults{states, stacks ? std::vector<Val>{states[0]} : std::vector<Val>{}};
  });
}

Val last_or_all(const StepResults& results, bool return_sequences) {
  return return_sequences ? hone::transpose(results.stacked[0], {1, 0, 2}) : results.states[0];
}

/// What `along` gives for one way, or for both, side by side.
Value in_directions(Layer& layer, bool both, const std::function<Val(Direction)>& along) {
  const Val forward = along(Direction::kForward);
  if (not both) return layer.done(forward);
  const Val backward = along(Direction::kBackward);
  return layer.done(op::concat.build({forward, backward}, {kAxis = static_cast<std::int64_t>(forward.rank()) - 1}));
}

/// x[N,T,C] as [N,heads,T,C/heads].
Val by_head(Val x, std::int64_t heads) {
  const Shape shape = x.shape();
  return hone::transpose(hone::reshape(x, {shape[0], shape[1], heads, floordiv(shape[2], heads)}), {0, 2, 1, 3});
}

/// bool [T,T]: may the position of the row see that of the column?
Val not_in_future(Builder& builder, std::int64_t positions) {
  return builder.constant(Tensor::make(DType::kBool, {positions, positions}, [&](std::span<std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte{i % static_cast<std::size_t>(positions) <= i / static_cast<std::size_t>(positions)};
  }));
}

/// The gates' bias: zeros, with ones for the forget gate if asked for.
Tensor lstm_bias(std::int64_t units, bool unit_forget_bias) {
  std::vector<float> values(static_cast<std::size_t>(4 * units), 0.0F);
  if (unit_forget_bias) std::fill_n(values.begin() + units, units, 1.0F);
  return Tensor::of<float>({4 * units}, std::span<const float>(values));
}

}  // namespace

Value layer_norm(Value x, const LayerNormOptions& options) {
  Layer layer(x, "layer_norm");
  layer.between(0, 1, options.epsilon, "epsilon");
  const std::size_t last = x.shape().size() - 1;
  const std::int64_t size = layer.extent(x, last);
  std::vector<Val> operands = {x.val(), layer.weight("gamma", {size}, Initializer::ones())};
  if (options.use_bias) operands.push_back(layer.weight("beta", {size}, Initializer::zeros()));
  else operands.emplace_back();
  return layer.done(op::layer_norm.build(operands, {kAxis = static_cast<std::int64_t>(last), kEpsilon = options.epsilon}));
}

Value embedding(Value x, std::int64_t vocabulary, std::int64_t size, const Initializer& initializer) {
  Layer layer(x, "embedding");
  layer.at_least(1, vocabulary, "the vocabulary");
  layer.at_least(1, size, "the number of features");
  return layer.done(op::gather(layer.weight("embeddings", {vocabulary, size}, initializer), x.val(), {kAxis = 0}));
}

Value embedding(Value x, Value table) {
  Layer layer(x, "embedding");
  if (table.shape().size() != 2) layer.fail(fmt::format("its table [{}] must have two axes: rows, and their elements", to_string(table.shape())), "a weight of the model, [rows, features]");
  return layer.done(op::gather(layer.operand(table), x.val(), {kAxis = 0}));
}

Value matmul(Value a, Value b, bool transpose_b) {
  Layer layer(a, "matmul");
  return layer.done(transpose_b ? op::matmul(a.val(), layer.operand(b), {kTransB = true}) : op::matmul(a.val(), layer.operand(b)));
}

namespace {

/// Of a padded position: its share is 0 beside any other score, and those of a sequence that is all padding are numbers, too.
constexpr double kMaskedScore = -1e9;

/// An attention layer being built.
class Attention {
 public:
  Attention(Layer& layer, const Value& x, std::int64_t heads, const AttentionOptions& options) : layer_(layer), options_(options), x_(x), heads_(heads) {
    require_positions(x);
    size_ = layer.extent(x, 2);
    if (heads < 1 or size_ % heads != 0) layer.fail(fmt::format("{} heads do not divide {} features", heads, size_), "their number divides the features'");
  }

  std::int64_t size() const { return size_; }
  void require_positions(const Value& x) const {
    if (x.shape().size() != 3) layer_.fail(fmt::format("its input [{}] must have three axes: samples, positions, features", to_string(x.shape())));
  }
  Val linear(Val in, const std::string& name, std::int64_t units) {
    const Val y = op::matmul(in, layer_.weight(name + "_kernel", {in.shape().back().value(), units}, options_.kernel_initializer));
    return options_.use_bias ? y + layer_.weight(name + "_bias", {units}, Initializer::zeros()) : y;
  }
  /// Of queries, keys and values [N,positions,C].
  Value attend(Val queries, Val keys, Val values) {
    Val scores = op::matmul(by_head(queries, heads_) * (1 / std::sqrt(static_cast<double>(size_ / heads_))), by_head(keys, heads_), {kTransB = true});
    if (options_.is_causal) {
      Builder& builder = layer_.model.builder();
      scores = op::where(not_in_future(builder, x_.shape()[1].value()), scores, builder.scalar(-std::numeric_limits<double>::infinity()));
    }
    if (options_.mask) {
      const Shape of_mask = options_.mask->shape();
      scores = op::where(hone::reshape(options_.mask->val(), {of_mask[0], 1, 1, of_mask[1]}), scores, layer_.model.builder().scalar(kMaskedScore));
    }
    const Val attended = op::matmul(op::softmax(scores, {kAxis = 3}), by_head(values, heads_));
    return layer_.done(linear(hone::reshape(hone::transpose(attended, {0, 2, 1, 3}), x_.shape()), "projection", size_));
  }

 private:
  Layer& layer_;
  const AttentionOptions& options_;
  const Value x_;
  std::int64_t heads_, size_ = 0;
};

}  // namespace

Value self_attention(Value x, std::int64_t heads, const AttentionOptions& options) {
  Layer layer(x, "self_attention");
  Attention attention(layer, x, heads, options);
  if (options.is_causal and not x.shape()[1].is_constant())
    layer.fail(fmt::format("is_causal needs a number of positions, and its input is [{}]", to_string(x.shape())), "give the input a fixed number of positions");
  check_mask(layer, x, options.mask);
  const std::int64_t size = attention.size();
  const Val qkv = attention.linear(x.val(), "qkv", 3 * size);
  return attention.attend(features(qkv, 0, size), features(qkv, size, size), features(qkv, 2 * size, size));
}

Value cross_attention(Value x, Value memory, std::int64_t heads, const AttentionOptions& options) {
  Layer layer(x, "cross_attention");
  if (options.is_causal) layer.fail("is_causal is about positions of one sequence, and it attends to another", "leave is_causal out, or take self_attention");
  Attention attention(layer, x, heads, options);
  attention.require_positions(memory);
  (void)layer.extent(memory, 2);
  check_mask(layer, memory, options.mask);
  const std::int64_t size = attention.size();
  const Val queries = attention.linear(x.val(), "query", size), keys_values = attention.linear(layer.operand(memory), "key_value", 2 * size);
  return attention.attend(queries, features(keys_values, 0, size), features(keys_values, size, size));
}

Value lstm(Value x, std::int64_t units, const LstmOptions& options) {
  Layer layer(x, "lstm");
  check_mask(layer, x, options.mask);
  return in_directions(layer, options.bidirectional, [&](Direction direction) {
    Val products = products_of_steps(layer, x, units, 4 * units, direction);
    const Val recurrent = layer.weight(weight_of(direction, "recurrent_kernel"), {units, 4 * units}, Initializer::orthogonal());
    if (options.use_bias) products = products + layer.model.weight(layer.name + "/" + weight_of(direction, "bias"), lstm_bias(units, options.unit_forget_bias)).val();
    Builder& builder = layer.model.builder();
    const Val zeros = full(builder, 0, DType::kF32, {x.shape()[0], units});
    const Recurrence loop{.steps = x.shape()[1], .reverse = direction == Direction::kBackward, .states = {zeros, zeros}, .scanned = {products}, .whole = {recurrent}};
    const StepResults results = masked_recurrence(builder, loop, options.mask, options.return_sequences, [&](const Step& step) {
      const Val gates = step.slices[0] + op::matmul(step.states[0], step.whole[0]);
      const auto gate = [&](std::int64_t number) { return features(gates, number * units, units); };
      const Val cell = op::sigmoid(gate(1)) * step.states[1] + op::sigmoid(gate(0)) * op::tanh(gate(2));
      const Val hidden = op::sigmoid(gate(3)) * op::tanh(cell);
      return std::vector<Val>{hidden, cell};
    });
    return last_or_all(results, options.return_sequences);
  });
}

Value gru(Value x, std::int64_t units, const GruOptions& options) {
  Layer layer(x, "gru");
  check_mask(layer, x, options.mask);
  const std::int64_t width = 3 * units;
  return in_directions(layer, options.bidirectional, [&](Direction direction) {
    Val products = products_of_steps(layer, x, units, width, direction);
    const Val recurrent = layer.weight(weight_of(direction, "recurrent_kernel"), {units, width}, Initializer::orthogonal());
    std::vector<Val> whole = options.reset_after ? std::vector<Val>{recurrent} : std::vector<Val>{features(recurrent, 0, 2 * units), features(recurrent, 2 * units, units)};
    if (options.use_bias and options.reset_after) {
      const Val biases = layer.weight(weight_of(direction, "bias"), {2, width}, options.bias_initializer);
      products = products + row(biases, 0);
      whole.push_back(row(biases, 1));
    } else if (options.use_bias) {
      products = products + layer.weight(weight_of(direction, "bias"), {width}, options.bias_initializer);
    }
    Builder& builder = layer.model.builder();
    const Recurrence loop{.steps = x.shape()[1], .reverse = direction == Direction::kBackward, .states = {full(builder, 0, DType::kF32, {x.shape()[0], units})}, .scanned = {products}, .whole = whole};
    const StepResults results = masked_recurrence(builder, loop, options.mask, options.return_sequences, [&](const Step& step) {
      const Val before = step.states[0], of_input = step.slices[0];
      Val of_state = op::matmul(before, step.whole[0]);
      if (options.use_bias and options.reset_after) of_state = of_state + step.whole[1];
      const auto gate = [&](std::int64_t number) { return op::sigmoid(features(of_input, number * units, units) + features(of_state, number * units, units)); };
      const Val update = gate(0), reset = gate(1);
      const Val remembered = options.reset_after ? reset * features(of_state, 2 * units, units) : op::matmul(reset * before, step.whole[1]);
      const Val candidate = op::tanh(features(of_input, 2 * units, units) + remembered);
      return std::vector<Val>{update * before + (1 - update) * candidate};
    });
    return last_or_all(results, options.return_sequences);
  });
}

}  // namespace hone::nn
