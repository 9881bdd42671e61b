// Domain com.microsoft: what ONNX Runtime's optimizer fuses a model's nodes into, written in the ops that they were. Their definitions are in its
// docs/ContribOperators.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/activation_formulas.h"
#include "frontend/onnx/ops/conv.h"
#include "frontend/onnx/ops/heads.h"
#include "frontend/onnx/ops/matmul.h"
#include "ir/ops/formulas.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";

// --- Activations ---

/// x, with operand 1 added if it is there.
Val with_bias_operand(const ImportNode& node) { return node.has(1) ? node.x(0) + node.x(1) : node.x(0); }

std::vector<Val> import_contrib_gelu(const ImportNode& node) { return {op::gelu(with_bias_operand(node))}; }
std::vector<Val> import_fast_gelu(const ImportNode& node) { return {op::gelu(with_bias_operand(node), {kTanhForm = true})}; }

std::vector<Val> import_quick_gelu(const ImportNode& node) {
  const Val x = node.x(0);
  return {x * op::sigmoid(x * node.real("alpha", 1.702))};
}

/// What a fused convolution or Gemm does last: the operators of those names.
Val activated(const ImportNode& node, Val x, const std::vector<double>& numbers) {
  const std::string name = node.text("activation", "");
  const auto number = [&](std::size_t i, double absent) { return i < numbers.size() ? numbers[i] : absent; };
  if (name.empty()) return x;
  if (name == "Relu") return op::relu(x);
  if (name == "Sigmoid") return op::sigmoid(x);
  if (name == "Tanh") return op::tanh(x);
  if (name == "LeakyRelu") return above_zero(x, x * number(0, 0.01));
  if (name == "Clip") return op::clip(x, x.builder().scalar(number(0, 0), x.dtype()), x.builder().scalar(number(1, 6), x.dtype()));
  if (name == "HardSigmoid") return hard_sigmoid(x, number(0, 0.2), number(1, 0.5));
  node.fail(Code::kUnknownOp, fmt::format("its activation {} is not supported", name), {"optimize the model for ONNX Runtime behind training, not before"});
}

// --- Products and convolutions ---

Val last_two_swapped(Val x) {
  Ints order(x.rank());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  if (order.size() >= 2) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

std::vector<Val> import_fused_matmul(const ImportNode& node) {
  node.require(not node.flag("transBatchA", false) and not node.flag("transBatchB", false), Code::kUnknownOp, "transBatchA and transBatchB are not supported");
  const auto operand = [&](std::size_t i, const char* turned) { return node.flag(turned, false) ? last_two_swapped(node.x(i)) : node.x(i); };
  const Val y = matrix_product(node, operand(0, "transA"), operand(1, "transB"));
  const double alpha = node.real("alpha", 1);
  return {alpha == 1 ? y : y * alpha};
}

std::vector<Val> import_fused_gemm(const ImportNode& node) {
  return {activated(node, gemm(node), {node.real("activation_alpha", 0.01), node.real("activation_beta", 0)})};
}

/// Operand 3 is what a residual connection adds.
std::vector<Val> import_fused_conv(const ImportNode& node) {
  Val y = convolution(node, node.x(0), node.x(1));
  if (node.has(2)) y = y + per_channel(node.x(2), y.rank());
  if (node.has(3)) y = y + node.x(3);
  return {activated(node, y, node.reals("activation_params").value_or(std::vector<double>{}))};
}

// --- Normalizations ---

/// The sum of the input, what skipped over a layer, and a bias; `bias` is its operand.
Val skip_sum(const ImportNode& node, std::size_t bias) {
  const Val sum = node.x(0) + node.x(1);
  return node.has(bias) ? sum + node.x(bias) : sum;
}

void refuse_statistics(const ImportNode& node) {
  if (node.wants(1) or node.wants(2)) node.fail(Code::kUnknownOp, "its results 1 and 2 (mean and inverse deviation) cannot be used");
}

std::vector<Val> import_skip_layer_norm(const ImportNode& node) {
  refuse_statistics(node);
  const Val sum = skip_sum(node, 4), beta = node.has(3) ? node.x(3) : Val{};
  const Attrs attrs = {kAxis = static_cast<std::int64_t>(sum.rank()) - 1, kEpsilon = node.real("epsilon", 1e-12)};
  return {op::layer_norm.build({sum, node.x(2), beta}, attrs), Val{}, Val{}, sum};
}

std::vector<Val> import_skip_simplified_layer_norm(const ImportNode& node) {
  refuse_statistics(node);
  const Val sum = skip_sum(node, 3);
  return {op::rms_norm(sum, node.x(2), {kAxis = static_cast<std::int64_t>(sum.rank()) - 1, kEpsilon = node.real("epsilon", 1e-5)}), Val{}, Val{}, sum};
}

/// Of the default domain, though no standard has it.
std::vector<Val> import_simplified_layer_norm(const ImportNode& node) {
  if (node.wants(1)) node.fail(Code::kUnknownOp, "its result 1 (the inverse deviation) cannot be used");
  const Val x = node.x(0);
  return {op::rms_norm(x, node.x(1), {kAxis = static_cast<std::int64_t>(node.axis(node.integer("axis", -1), x.rank())), kEpsilon = node.real("epsilon", 1e-5)})};
}

// --- Attention ---

double scale_of_heads(const ImportNode& node, Val query) {
  if (node.real("scale", 0) != 0) return node.real("scale", 1);
  const Dim features = query.shape()[3];
  if (not features.is_constant()) node.fail(Code::kDynamic, fmt::format("the features of a head must be known when compiling, and are {}", features.text()));
  return 1 / std::sqrt(static_cast<double>(features.value()));
}

/// Of a mask that says where each sample's keys end, [B], and begin, [2B] with the ends first: which of the keys of [B,H,T,D] count, [B,1,1,T].
Val keys_within(const ImportNode& node, Val mask, Val key) {
  Builder& builder = node.builder();
  const Dim batch = key.shape()[0];
  const Val position = cast(sequence_positions(builder, key.shape()[2], 3), mask.dtype());
  const auto bound = [&](Dim first) { return reshape(part_of(mask, 0, first, batch), {batch, 1, 1, 1}); };
  const Val before_end = op::less(position, bound(0));
  if (mask.shape()[0] == batch) return before_end;
  if (not(mask.shape()[0] == batch * 2))
    node.fail(Code::kUnknownOp, fmt::format("a mask of one axis has one length a sample, or ends and begins, and not {} numbers for {} samples", mask.shape()[0].text(), batch.text()),
              {"fuse with a raw mask of two axes: [batch, positions]"});
  return op::logical_and(before_end, op::greater_equal(position, bound(batch)));
}

/// What is added to the scores [B,H,S,T] where a mask of integers, [B,T], [B,S,T] or [B,1,S,T], is 0, or behind the lengths that it has, [B]; invalid if it is left out.
Val mask_bias(const ImportNode& node, std::size_t i, Val key) {
  if (not node.has(i)) return {};
  const DType dtype = key.dtype();
  Val mask = node.x(i);
  const Shape shape = mask.shape();
  if (mask.rank() == 1) mask = keys_within(node, mask, key);
  else if (mask.rank() == 2) mask = reshape(mask, {shape[0], 1, 1, shape[1]});
  else if (mask.rank() == 3) mask = reshape(mask, {shape[0], 1, shape[1], shape[2]});
  else if (mask.rank() != 4) node.fail(Code::kUnknownOp, fmt::format("a mask of {} axes is not supported", mask.rank()), {"fuse with a raw mask of two axes: [batch, positions]"});
  Builder& builder = node.builder();
  const Val hidden = mask.dtype() == DType::kBool ? op::logical_not(mask) : op::equal(mask, builder.scalar(0, mask.dtype()));
  return op::where(hidden, builder.scalar(node.real("mask_filter_value", -10000.0), dtype), builder.scalar(0, dtype));
}

/// -10000 or less for keys in the future, if the attribute says so.
Val future_bias(const ImportNode& node, Val query, Val key) {
  if (not node.flag("unidirectional", false)) return {};
  Builder& builder = node.builder();
  const Val allowed = op::less_equal(sequence_positions(builder, key.shape()[2], 3), sequence_positions(builder, query.shape()[2], 2));
  return op::where(allowed, builder.scalar(0, query.dtype()), builder.scalar(node.real("mask_filter_value", -10000.0), query.dtype()));
}

Val sum_of(Val a, Val b) { return not a.valid() ? b : not b.valid() ? a : a + b; }

std::vector<Val> attended(const ImportNode& node, Val query, Val key, Val value, Val bias) {
  bias = sum_of(bias, future_bias(node, query, key));
  return {join_heads(op::attention.build_all({query, key, value, bias}, {kScale = scale_of_heads(node, query), kSoftcap = 0.0})[0])};
}

void refuse_operands(const ImportNode& node, std::initializer_list<std::size_t> operands) {
  for (const std::size_t i : operands)
    if (node.has(i)) node.fail(Code::kUnknownOp, fmt::format("operand {} (what is past, or packed) is not supported", i), {"export the model without past keys and values, as it is trained"});
}

/// How wide query, key and value are, side by side in `all`.
std::array<Dim, 3> widths_of(const ImportNode& node, const Dim& all) {
  const auto given = node.integers("qkv_hidden_sizes");
  if (not given) return {floordiv(all, 3), floordiv(all, 3), floordiv(all, 3)};
  const auto is_size = [&](std::int64_t size) { return size > 0 and not(all.is_constant() and size > all.value()); };
  node.require(given->size() == 3 and std::all_of(given->begin(), given->end(), is_size), Code::kBadAttribute, "qkv_hidden_sizes must be three sizes that make up the weights' columns");
  return {(*given)[0], (*given)[1], (*given)[2]};
}

/// x[B,S,D] times weights[D,3E], plus bias[3E], is query, key and value.
std::vector<Val> import_contrib_attention(const ImportNode& node) {
  refuse_operands(node, {4, 6});
  for (const char* name : {"do_rotary", "past_present_share_buffer"})
    if (node.flag(name, false)) node.fail(Code::kUnknownOp, fmt::format("{} is not supported", name));
  if (node.wants(1)) node.fail(Code::kUnknownOp, "its result 1 (keys and values for later) cannot be used");
  const Val weights = node.x(1);
  node.require(node.x(0).rank() == 3 and weights.rank() == 2, Code::kShape, "needs an input of three axes and weights of two");
  Val packed = op::matmul(node.x(0), weights);
  if (node.has(2)) packed = packed + node.x(2);
  const std::array<Dim, 3> widths = widths_of(node, packed.shape()[2]);
  node.require(widths[0] == widths[1] and widths[0] + widths[1] + widths[2] == packed.shape()[2], Code::kShape, "the weights' columns must be those of query, key and value, the first two equally many");
  const std::int64_t heads = heads_of(node, "num_heads");
  const auto part = [&](std::int64_t i) { return split_heads(node, features(packed, widths[0] * i, widths[static_cast<std::size_t>(i)]), heads); };
  const Val query = part(0), key = part(1);
  return attended(node, query, key, part(2), sum_of(mask_bias(node, 3, key), node.has(5) ? node.x(5) : Val{}));
}

/// query, key, value [B,S,H*D], a bias for the three of them, a mask of keys, and what is added to the scores.
std::vector<Val> import_multi_head_attention(const ImportNode& node) {
  refuse_operands(node, {6, 7, 8, 9});
  for (const std::size_t i : {1, 2, 3})
    if (node.wants(i)) node.fail(Code::kUnknownOp, fmt::format("its result {} cannot be used", i));
  node.require(node.has(1) and node.has(2) and node.x(0).rank() == 3 and node.x(1).rank() == 3 and node.x(2).rank() == 3, Code::kUnknownOp,
               "query, key and value must be apart, each of three axes");
  const std::int64_t heads = heads_of(node, "num_heads");
  std::vector<Val> parts;
  Dim first = 0;
  for (const std::size_t i : {0, 1, 2}) {
    const Dim width = node.x(i).shape()[2];
    const Val x = node.has(3) ? node.x(i) + features(node.x(3), first, width) : node.x(i);
    parts.push_back(split_heads(node, x, heads));
    first = first + width;
  }
  return attended(node, parts[0], parts[1], parts[2], sum_of(mask_bias(node, 4, parts[1]), node.has(5) ? node.x(5) : Val{}));
}

/// The cosines or sines at the positions of each sample, [B,S], or from one position on, [1]: [B,1,S,R/2], where B may be 1.
Val angles_at(const ImportNode& node, std::size_t i, Val x) {
  Val positions = node.x(1);
  node.require(x.rank() == 4 and node.x(i).rank() == 2 and (positions.rank() == 2 or (positions.rank() == 1 and positions.shape()[0].is_constant(1))), Code::kShape,
               "needs an input of three or four axes, caches [positions, angles] and position_ids [batch, sequence] or [1]");
  const Dim count = x.shape()[2];
  if (positions.rank() == 1) positions = reshape(cast(sequence_positions(node.builder(), count, 3), positions.dtype()) + reshape(positions, {1, 1, 1, 1}), {1, count});
  const Val angles = op::gather(node.x(i), positions, {kAxis = 0});
  const Shape shape = angles.shape();
  return reshape(angles, {shape[0], 1, shape[1], shape[2]});
}

std::vector<Val> import_contrib_rotary_embedding(const ImportNode& node) {
  node.require(not node.flag("is_packed_batching", false) and node.real("scale", 1) == 1, Code::kUnknownOp, "is_packed_batching and a scale other than 1 are not supported");
  const bool packed = node.x(0).rank() == 3;
  node.require(node.x(2).rank() == 2, Code::kShape, "needs caches of two axes: [positions, angles]");
  const Dim angles = node.x(2).shape()[1];
  const auto heads = [&] {  // without num_heads all features of a head are turned
    if (node.integer("num_heads", 0) > 0 or not angles.is_constant() or angles.is_constant(0)) return heads_of(node, "num_heads");
    const Dim count = floordiv(node.x(0).shape()[2], angles * 2);
    return count.is_constant() and count.value() >= 1 ? count.value() : heads_of(node, "num_heads");
  };
  const Val x = packed ? split_heads(node, node.x(0), heads()) : node.x(0);
  const Val y = turn_pairs(node, x, angles_at(node, 2, x), angles_at(node, 3, x));
  return {packed ? join_heads(y) : y};
}

constinit const Importer kContribOps[] = {
    {"Gelu", import_contrib_gelu, {}, kMicrosoft},
    {"BiasGelu", import_contrib_gelu, {}, kMicrosoft},
    {"FastGelu", import_fast_gelu, {}, kMicrosoft},
    {"QuickGelu", import_quick_gelu, {}, kMicrosoft},
    {"FusedMatMul", import_fused_matmul, {}, kMicrosoft},
    {"TransposeMatMul", import_fused_matmul, {}, kMicrosoft},
    {"FusedGemm", import_fused_gemm, {}, kMicrosoft},
    {"FusedConv", import_fused_conv, {}, kMicrosoft},
    {"SkipLayerNormalization", import_skip_layer_norm, {}, kMicrosoft},
    {"SkipSimplifiedLayerNormalization", import_skip_simplified_layer_norm, {}, kMicrosoft},
    {"SimplifiedLayerNormalization", import_simplified_layer_norm},
    {"Attention", import_contrib_attention, {}, kMicrosoft},
    {"MultiHeadAttention", import_multi_head_attention, {}, kMicrosoft},
    {"RotaryEmbedding", import_contrib_rotary_embedding, {}, kMicrosoft},
};

}  // namespace

std::span<const Importer> contrib_importers() { return kContribOps; }

}  // namespace hone::onnx
