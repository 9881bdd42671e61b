// Attention and what goes with it.
#include <limits>

#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

/// Heads of two features each: queries of `heads`, keys and values of `key_heads`.
std::vector<GradientInput> packed(std::int64_t heads, std::int64_t key_heads) { return {x({2, 3, 2 * heads}), x({2, 4, 2 * key_heads}), x({2, 4, 2 * key_heads})}; }
std::vector<GradientInput> spread(std::int64_t heads, std::int64_t key_heads) {
  return {x({2, heads, 3, 2}), x({2, key_heads, 4, 2}), x({2, key_heads, 4, 3})};
}

void add_attention(GradientCases& cases) {
  const auto add = [&](std::string says, std::vector<GradientInput> inputs, std::vector<GradientAttribute> attributes = {}) -> GradientCases& {
    return cases.add("Attention", std::move(says), std::move(inputs), std::move(attributes)).opset(24);
  };
  const auto with = [](std::vector<GradientInput> inputs, std::vector<GradientInput> more) {
    inputs.insert(inputs.end(), more.begin(), more.end());
    return inputs;
  };
  const double out = -std::numeric_limits<double>::infinity();
  add("four axes", spread(2, 2));
  add("packed heads", packed(2, 2), {{"q_num_heads", 2}, {"kv_num_heads", 2}});
  add("queries share keys", spread(4, 2));
  add("packed heads that share a key", packed(3, 1), {{"q_num_heads", 3}, {"kv_num_heads", 1}});
  add("a scale", spread(1, 1), {{"scale", 0.3}});
  add("a soft cap", spread(2, 1), {{"softcap", 1.5}});
  add("causal", spread(2, 2), {{"is_causal", 1}});
  add("causal, as many queries as keys", {x({1, 2, 4, 2}), x({1, 2, 4, 2}), x({1, 2, 4, 2})}, {{"is_causal", 1}});
  add("a mask that is added", with(spread(2, 2), {x({3, 4})}));
  add("a mask for each head", with(spread(2, 2), {x({2, 2, 3, 4})}), {{"is_causal", 1}});
  add("a mask of conditions", with(spread(2, 2), {given(DType::kBool, {3, 4}, {1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 1})}));
  add("a query that may attend to nothing", with(spread(1, 1), {given(DType::kBool, {3, 4}, {1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1})}));
  add("a mask of infinities", with(spread(1, 1), {given(DType::kF32, {3, 4}, {0, out, 0, 0, out, out, out, out, 1, 0, out, 0})}));
  add("a mask for fewer positions", with(spread(2, 2), {x({3, 3})}));
  add("past keys and values", with(spread(2, 2), {absent(), x({2, 2, 2, 2}), x({2, 2, 2, 3})}), {{"is_causal", 1}}).outputs(3);
  add("padding", with(spread(2, 2), {absent(), absent(), absent(), given(DType::kI64, {2}, {4, 2})}));
  add("padding, causal", {x({2, 1, 2, 2}), x({2, 1, 4, 2}), x({2, 1, 4, 2}), absent(), absent(), absent(), given(DType::kI64, {2}, {4, 3})}, {{"is_causal", 1}});
  for (const std::int64_t mode : {0, 1, 2, 3})
    add("scores at stage " + std::to_string(mode), with(spread(2, 2), {x({3, 4})}), {{"softcap", 2.0}, {"qk_matmul_output_mode", mode}})
        .outputs(4)
        .leaves_out(1)
        .leaves_out(2);
  add("a symbolic batch and length", {x({"N", 2, "M", 2}), x({"N", 2, "M", 2}), x({"N", 2, "M", 2})}, {{"is_causal", 1}});
  add("a window", {x({1, 1, 4, 2}), x({1, 1, 4, 2}), x({1, 1, 4, 2})}, {{"left_window_size", 1}, {"right_window_size", 1}}).opset(25);
}

void add_rotary_embedding(GradientCases& cases) {
  const auto add = [&](std::string says, std::vector<GradientInput> inputs, std::vector<GradientAttribute> attributes = {}) {
    cases.add("RotaryEmbedding", std::move(says), std::move(inputs), std::move(attributes)).opset(23);
  };
  const GradientInput ids = given(DType::kI64, {2, 3}, {0, 1, 2, 4, 0, 4});
  add("by position", {x({2, 2, 3, 4}), x({5, 2}), x({5, 2}), ids});
  add("by position, interleaved", {x({2, 2, 3, 4}), x({5, 2}), x({5, 2}), ids}, {{"interleaved", 1}});
  add("angles for each sample", {x({2, 2, 3, 4}), x({2, 3, 2}), x({2, 3, 2})});
  add("angles for each sample, interleaved", {x({2, 2, 3, 4}), x({2, 3, 2}), x({2, 3, 2})}, {{"interleaved", 1}});
  add("some of the features", {x({2, 1, 3, 6}), x({5, 2}), x({5, 2}), ids}, {{"rotary_embedding_dim", 4}});
  add("some of the features, interleaved", {x({2, 1, 3, 6}), x({5, 2}), x({5, 2}), ids}, {{"rotary_embedding_dim", 4}, {"interleaved", 1}});
  add("packed heads", {x({2, 3, 8}), x({5, 2}), x({5, 2}), ids}, {{"num_heads", 2}});
  add("packed heads, interleaved, some features", {x({2, 3, 8}), x({2, 3, 1}), x({2, 3, 1})}, {{"num_heads", 2}, {"interleaved", 1}, {"rotary_embedding_dim", 2}});
  add("two features", {x({1, 1, 2, 2}), x({1, 2, 1}), x({1, 2, 1})});
  add("constant angles", {x({2, 2, 3, 4}), constant(x({5, 2})), constant(x({5, 2})), ids});
  add("a symbolic batch", {x({"N", 2, 3, 4}), x({"N", 3, 2}), x({"N", 3, 2})});
  add("a symbolic length", {x({1, 2, "N", 4}), x({1, "N", 2}), x({1, "N", 2})});
}

void add_causal_conv(GradientCases& cases) {
  const auto add = [&](std::string says, std::vector<GradientInput> inputs, std::vector<GradientAttribute> attributes = {}) {
    cases.add("CausalConvWithState", std::move(says), std::move(inputs), std::move(attributes)).opset(27).outputs(2);
  };
  add("no past", {x({2, 3, 5}), x({3, 1, 3})});
  add("a bias", {x({2, 3, 5}), x({3, 1, 3}), x({3})});
  add("a past", {x({2, 3, 5}), x({3, 1, 3}), absent(), x({2, 3, 2})});
  add("a bias and a past", {x({2, 3, 5}), x({3, 1, 4}), x({3}), x({2, 3, 3})});
  add("silu", {x({2, 3, 5}), x({3, 1, 3}), x({3})}, {{"activation", "silu"}});
  add("swish", {x({2, 2, 4}), x({2, 1, 2}), x({2}), x({2, 2, 1})}, {{"activation", "swish"}});
  add("one step", {x({2, 3, 1}), x({3, 1, 4}), absent(), x({2, 3, 3})});
  add("shorter than the window", {x({1, 2, 2}), x({2, 1, 4})});
  add("one channel", {x({2, 1, 4}), x({1, 1, 2})});
  add("a symbolic batch", {x({"N", 2, 4}), x({2, 1, 3}), x({2})});
  add("a symbolic length", {x({1, 2, "N"}), x({2, 1, 2})});
  add("a constant weight", {x({2, 2, 4}), constant(x({2, 1, 3}))});
  cases.add("CausalConvWithState", "a window of one", {x({2, 3, 4}), x({3, 1, 1})}).opset(27);
}

void add_linear_attention(GradientCases& cases) {
  const auto add = [&](std::string says, const char* rule, std::vector<GradientInput> inputs, std::int64_t heads, std::int64_t key_heads, double scale = 0) {
    cases.add("LinearAttention", std::string(rule) + ", " + says, std::move(inputs),
              {{"update_rule", rule}, {"q_num_heads", heads}, {"kv_num_heads", key_heads}, {"scale", scale}});
    cases.opset(27).outputs(2);
  };
  const auto qkv = [](std::int64_t heads, std::int64_t key_heads) {
    return std::vector<GradientInput>{x({2, 3, 2 * heads}, -1, 1), x({2, 3, 2 * key_heads}, -1, 1), x({2, 3, 3 * key_heads}, -1, 1)};
  };
  const auto with = [](std::vector<GradientInput> inputs, std::vector<GradientInput> more) {
    inputs.insert(inputs.end(), more.begin(), more.end());
    return inputs;
  };
  const GradientInput past = x({2, 2, 2, 3}), by_head = x({2, 3, 2}, -1, 0), by_feature = x({2, 3, 4}, -1, 0), rate = x({2, 3, 2}, 0, 1);
  add("no past", "linear", qkv(2, 2), 2, 2);
  add("a past", "linear", with(qkv(2, 2), {past}), 2, 2);
  add("a scale", "linear", qkv(1, 1), 1, 1, 0.7);
  add("queries share keys", "linear", qkv(4, 2), 4, 2);
  add("a decay for each head", "gated", with(qkv(2, 2), {past, by_head}), 2, 2);
  add("a decay for each feature", "gated", with(qkv(2, 2), {past, by_feature}), 2, 2);
  add("no past", "gated", with(qkv(2, 2), {absent(), by_feature}), 2, 2);
  add("no past", "delta", with(qkv(2, 2), {absent(), absent(), rate}), 2, 2);
  add("a past", "delta", with(qkv(2, 2), {past, absent(), rate}), 2, 2);
  add("one rate for all heads", "delta", with(qkv(2, 2), {past, absent(), x({2, 3, 1}, 0, 1)}), 2, 2);
  add("a decay for each head", "gated_delta", with(qkv(2, 2), {past, by_head, rate}), 2, 2);
  add("a decay for each feature", "gated_delta", with(qkv(4, 2), {past, by_feature, rate}), 4, 2);
}

}  // namespace

void add_attention_cases(GradientCases& cases) {
  add_attention(cases);
  add_rotary_embedding(cases);
  add_causal_conv(cases);
  add_linear_attention(cases);
}

}  // namespace hone::test
