// Layers over sequences: normalization, embedding, attention, recurrence.
#include <algorithm>
#include <cmath>
#include <limits>

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

/// The steps of x[N,T,in], which come first so that each reads a block, times the layer's kernel: what does not depend on the step before is one product for all of them.
Val products_of_steps(Layer& layer, Value x, std::int64_t units, std::int64_t width) {
  if (x.shape().size() != 3) layer.fail(fmt::format("its input [{}] must have three axes: samples, steps, features", to_string(x.shape())));
  layer.at_least(1, units, "the number of units");
  return op::matmul(hone::transpose(x.val(), {1, 0, 2}), layer.weight("kernel", {layer.extent(x, 2), width}, Initializer::glorot_uniform()));
}

Val last_or_all(const StepResults& results, bool return_sequences) {
  return return_sequences ? hone::transpose(results.stacked[0], {1, 0, 2}) : results.states[0];
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

Value self_attention(Value x, std::int64_t heads, const AttentionOptions& options) {
  Layer layer(x, "self_attention");
  if (x.shape().size() != 3) layer.fail(fmt::format("its input [{}] must have three axes: samples, positions, features", to_string(x.shape())));
  const std::int64_t size = layer.extent(x, 2);
  if (heads < 1 or size % heads != 0) layer.fail(fmt::format("{} heads do not divide {} features", heads, size), "their number divides the features'");
  if (options.is_causal and not x.shape()[1].is_constant())
    layer.fail(fmt::format("is_causal needs a number of positions, and its input is [{}]", to_string(x.shape())), "give the input a fixed number of positions");
  const auto linear = [&](Val in, const std::string& name, std::int64_t units) {
    const Val y = op::matmul(in, layer.weight(name + "_kernel", {size, units}, options.kernel_initializer));
    return options.use_bias ? y + layer.weight(name + "_bias", {units}, Initializer::zeros()) : y;
  };
  const Val qkv = linear(x.val(), "qkv", 3 * size);
  const Val query = by_head(features(qkv, 0, size), heads), key = by_head(features(qkv, size, size), heads), value = by_head(features(qkv, 2 * size, size), heads);
  Val scores = op::matmul(query * (1 / std::sqrt(static_cast<double>(size / heads))), key, {kTransB = true});
  if (options.is_causal) {
    Builder& builder = layer.model.builder();
    scores = op::where(not_in_future(builder, x.shape()[1].value()), scores, builder.scalar(-std::numeric_limits<double>::infinity()));
  }
  const Val attended = op::matmul(op::softmax(scores, {kAxis = 3}), value);
  return layer.done(linear(hone::reshape(hone::transpose(attended, {0, 2, 1, 3}), x.shape()), "projection", size));
}

Value lstm(Value x, std::int64_t units, const LstmOptions& options) {
  Layer layer(x, "lstm");
  Val products = products_of_steps(layer, x, units, 4 * units);
  const Val recurrent = layer.weight("recurrent_kernel", {units, 4 * units}, Initializer::orthogonal());
  if (options.use_bias) products = products + layer.model.weight(layer.name + "/bias", lstm_bias(units, options.unit_forget_bias)).val();
  Builder& builder = layer.model.builder();
  const Val zeros = full(builder, 0, DType::kF32, {x.shape()[0], units});
  const Recurrence loop{.steps = x.shape()[1], .states = {zeros, zeros}, .scanned = {products}, .whole = {recurrent}};
  const StepResults results = write_recurrence(builder, loop, [&](Builder&, const Step& step) {
    const Val gates = step.slices[0] + op::matmul(step.states[0], step.whole[0]);
    const auto gate = [&](std::int64_t i) { return features(gates, i * units, units); };
    const Val cell = op::sigmoid(gate(1)) * step.states[1] + op::sigmoid(gate(0)) * op::tanh(gate(2));
    const Val hidden = op::sigmoid(gate(3)) * op::tanh(cell);
    return StepResults{{hidden, cell}, options.return_sequences ? std::vector<Val>{hidden} : std::vector<Val>{}};
  });
  return layer.done(last_or_all(results, options.return_sequences));
}

Value gru(Value x, std::int64_t units, const GruOptions& options) {
  Layer layer(x, "gru");
  const std::int64_t width = 3 * units;
  Val products = products_of_steps(layer, x, units, width);
  const Val recurrent = layer.weight("recurrent_kernel", {units, width}, Initializer::orthogonal());
  std::vector<Val> whole = options.reset_after ? std::vector<Val>{recurrent} : std::vector<Val>{features(recurrent, 0, 2 * units), features(recurrent, 2 * units, units)};
  if (options.use_bias and options.reset_after) {
    const Val biases = layer.weight("bias", {2, width}, options.bias_initializer);
    products = products + row(biases, 0);
    whole.push_back(row(biases, 1));
  } else if (options.use_bias) {
    products = products + layer.weight("bias", {width}, options.bias_initializer);
  }
  Builder& builder = layer.model.builder();
  const Recurrence loop{.steps = x.shape()[1], .states = {full(builder, 0, DType::kF32, {x.shape()[0], units})}, .scanned = {products}, .whole = whole};
  const StepResults results = write_recurrence(builder, loop, [&](Builder&, const Step& step) {
    const Val before = step.states[0], of_input = step.slices[0];
    Val of_state = op::matmul(before, step.whole[0]);
    if (options.use_bias and options.reset_after) of_state = of_state + step.whole[1];
    const auto gate = [&](std::int64_t i) { return op::sigmoid(features(of_input, i * units, units) + features(of_state, i * units, units)); };
    const Val update = gate(0), reset = gate(1);
    const Val remembered = options.reset_after ? reset * features(of_state, 2 * units, units) : op::matmul(reset * before, step.whole[1]);
    const Val candidate = op::tanh(features(of_input, 2 * units, units) + remembered);
    const Val hidden = update * before + (1 - update) * candidate;
    return StepResults{{hidden}, options.return_sequences ? std::vector<Val>{hidden} : std::vector<Val>{}};
  });
  return layer.done(last_or_all(results, options.return_sequences));
}

}  // namespace hone::nn
