// Attention and rotary embedding.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/heads.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

struct Attended {
  Val query, key, value;        ///< [B,H,S,D], [B,G,T,D], [B,G,T,E]; key and value with what is past in front
  Dim past = 0;                 ///< positions of the key that are past
  bool packed = false;          ///< the heads came packed in the last axis
};

Attended operands_of(const ImportNode& node) {
  Attended a{node.x(0), node.x(1), node.x(2)};
  a.packed = a.query.rank() == 3;
  if (a.packed) {
    const std::int64_t query_heads = heads_of(node, "q_num_heads"), key_heads = heads_of(node, "kv_num_heads");
    a.query = split_heads(node, a.query, query_heads);
    a.key = split_heads(node, a.key, key_heads);
    a.value = split_heads(node, a.value, key_heads);
  }
  node.require(node.has(4) == node.has(5), Code::kBadGraph, "past_key and past_value go together");
  if (not node.has(4)) return a;
  node.require(node.x(4).rank() == 4 and a.key.rank() == 4, Code::kShape, "past_key needs four axes: [batch, heads, positions, features]");
  a.past = node.x(4).shape()[2];
  a.key = op::concat(node.x(4), a.key, {kAxis = 2});
  a.value = op::concat(node.x(5), a.value, {kAxis = 2});
  return a;
}

/// The mask, as long as the key: `beyond` stands for what it leaves out.
Val padded_mask(const ImportNode& node, Val mask, Dim positions, double beyond) {
  if (mask.rank() == 0 or mask.shape().back() == positions) return mask;
  Shape missing = mask.shape();
  missing.back() = positions - missing.back();
  node.require(not missing.back().is_constant() or missing.back().value() >= 0, Code::kShape,
               fmt::format("attn_mask is for {} positions, and the key has {}", mask.shape().back().text(), positions.text()));
  return op::concat(mask, full(node.builder(), beyond, mask.dtype(), missing), {kAxis = static_cast<std::int64_t>(mask.rank()) - 1});
}

/// Conditions that must all hold; an invalid one always does.
Val both(Val a, Val b) { return not a.valid() ? b : not b.valid() ? a : op::logical_and(a, b); }

/// Which keys a query may attend to by their positions alone: those not in its future, within the window, not padding.
Val allowed_positions(const ImportNode& node, const Attended& a) {
  Builder& builder = node.builder();
  const std::int64_t left = node.integer("left_window_size", -1), right = node.flag("is_causal", false) ? 0 : node.integer("right_window_size", -1);
  node.require(left >= -1 and right >= -1, Code::kBadAttribute, fmt::format("windows of {} and {}", left, right));
  const Val key_at = sequence_positions(builder, a.key.shape()[2], 3);
  Val used, allowed;
  if (node.has(6)) {
    node.require(node.x(6).rank() == 1 and not node.has(4), Code::kBadGraph, "nonpad_kv_seqlen is a number for each sample, and needs no past");
    used = cast(reshape(node.x(6), {node.x(6).shape()[0], 1, 1, 1}), DType::kI64);
    allowed = op::less(key_at, used);
  }
  if (left < 0 and right < 0) return allowed;
  const Val before = used.valid() ? used - size_value(builder, a.query.shape()[2], DType::kI64) : size_value(builder, a.past, DType::kI64);
  const Val query_at = sequence_positions(builder, a.query.shape()[2], 2) + before;
  if (right >= 0) allowed = both(allowed, op::less_equal(key_at, query_at + static_cast<double>(right)));
  if (left >= 0) allowed = both(allowed, op::greater_equal(key_at, query_at - static_cast<double>(left)));
  return allowed;
}

/// What is added to the scores; invalid: nothing.
Val bias_of(const ImportNode& node, const Attended& a) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  Val allowed = allowed_positions(node, a), added;
  if (node.has(3)) {
    const bool is_condition = node.x(3).dtype() == DType::kBool;
    const Val mask = padded_mask(node, node.x(3), a.key.shape()[2], is_condition ? 0 : kNever);
    if (is_condition) allowed = both(mask, allowed);
    else added = cast(mask, a.query.dtype());
  }
  if (not allowed.valid()) return added;
  Builder& builder = node.builder();
  return op::where(allowed, added.valid() ? added : builder.scalar(0, a.query.dtype()), builder.scalar(kNever, a.query.dtype()));
}

double scale_of(const ImportNode& node, Dim features) {
  if (node.has_attribute("scale")) return node.real("scale", 1);
  if (not features.is_constant()) node.fail(Code::kDynamic, fmt::format("the features of a head must be known when compiling, and are {}", features.text()));
  return 1 / std::sqrt(static_cast<double>(features.value()));
}

/// The fourth result: the scores at one of four stages.
Val scores_at(const ImportNode& node, Val scores, Val weights, Val bias, double softcap) {
  const std::int64_t mode = node.integer("qk_matmul_output_mode", 0);
  node.require(mode >= 0 and mode <= 3, Code::kBadAttribute, fmt::format("qk_matmul_output_mode = {}", mode));
  if (mode == 3) return weights;
  if (mode >= 1 and softcap > 0) scores = op::tanh(scores / softcap) * softcap;
  return mode == 2 and bias.valid() ? scores + bias : scores;
}

std::vector<Val> import_attention(const ImportNode& node) {
  const Attended a = operands_of(node);
  node.require(a.query.rank() == 4 and a.key.rank() == 4 and a.value.rank() == 4, Code::kShape, "Q, K and V must all have three axes, or all four");
  const double softcap = node.real("softcap", 0);
  const Val bias = bias_of(node, a);
  Attrs attrs = {kScale = scale_of(node, a.query.shape()[3]), kSoftcap = softcap};
  if (node.has_attribute("softmax_precision")) attrs.set(kSoftmaxType = node.dtype("softmax_precision"));
  const std::vector<Val> results = op::attention.build_all({a.query, a.key, a.value, bias}, attrs);
  const Val y = a.packed ? join_heads(results[0]) : results[0];
  return {y, a.key, a.value, node.wants(3) ? scores_at(node, results[1], results[2], bias, softcap) : Val{}};
}

/// The angles' cosines or sines: [B,1,S,R/2].
Val angles_of(const ImportNode& node, std::size_t i) {
  Val cache = node.x(i);
  if (node.has(3)) cache = op::gather(cache, node.x(3), {kAxis = 0});
  node.require(cache.rank() == 3, Code::kShape, "the caches are [positions, features] with position_ids, else [batch, positions, features]");
  const Shape shape = cache.shape();
  return reshape(cache, {shape[0], 1, shape[1], shape[2]});
}

std::vector<Val> import_rotary_embedding(const ImportNode& node) {
  const bool packed = node.x(0).rank() == 3;
  const Val x = packed ? split_heads(node, node.x(0), heads_of(node, "num_heads")) : node.x(0);
  const Val y = turn_pairs(node, x, angles_of(node, 1), angles_of(node, 2));
  return {packed ? join_heads(y) : y};
}

constinit const Importer kAttentionOps[] = {
    {"Attention", import_attention},
    {"RotaryEmbedding", import_rotary_embedding},
};

}  // namespace

std::span<const Importer> attention_importers() { return kAttentionOps; }

}  // namespace hone::onnx
