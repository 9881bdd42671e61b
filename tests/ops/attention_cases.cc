// Scaled dot-product attention.
#include <limits>

#include "tests/ops/op_cases.h"

namespace hone::test {

namespace {

/// Attention of which nothing but statistics is kept, and its gradient: y and the statistics are any numbers to that.
void add_fused_attention(Cases& cases) {
  const auto add = [&](std::string says, Shape query, Shape key, Shape value, Operand bias, const Attrs& attrs) {
    const Shape y = {query[0], query[1], query[2], value[3]}, statistics = {query[0], query[1], query[2], 1};
    cases.add(op::fused_attention, says, {f32(query), f32(key), f32(value), bias}, attrs).gives(y).gives(statistics);
    cases.add(op::fused_attention_grad, says, {f32(query), f32(key), f32(value), f32(y), f32(y), f32(statistics, 1, 3), bias}, attrs).gives(query).gives(key).gives(value);
  };
  add("one head", {1, 1, 3, 2}, {1, 1, 4, 2}, {1, 1, 4, 3}, absent(), {kScale = 0.5});
  add("symbolic batch and positions", {kN, 2, kM, 3}, {kN, 2, kM, 3}, {kN, 2, kM, 2}, absent(), {kScale = 0.5});
  add("causal", {2, 1, 3, 2}, {2, 1, 3, 2}, {2, 1, 3, 2}, absent(), {kScale = 1, kCausal = true});
  add("causal, more keys than queries", {1, 1, 2, 2}, {1, 1, 3, 2}, {1, 1, 3, 2}, absent(), {kScale = 1, kCausal = true});
  add("a bias for each score", {1, 2, 3, 2}, {1, 2, 4, 2}, {1, 2, 4, 2}, f32({1, 2, 3, 4}), {kScale = 0.5});
  add("a mask for each sample", {2, 2, 3, 2}, {2, 2, 4, 2}, {2, 2, 4, 2}, constant(given({2, 1, 1, 4}, {0, -1e30, 0, 0, 0, 0, 0, -1e30})), {kScale = 0.5});
  add("no batch", {kEmpty, 1, 2, 2}, {kEmpty, 1, 2, 2}, {kEmpty, 1, 2, 2}, absent(), {kScale = 0.5});
  const Operand one = given({1, 1, 1, 1}, {1}), two = given({1, 1, 2, 1}, {2, 2}), values = given({1, 1, 2, 1}, {3, 5});
  cases.add(op::fused_attention, "by hand: equal scores", {one, two, values}, {kScale = 1}).equals({4});
  cases.add(op::fused_attention, "by hand: the first query sees one key", {given({1, 1, 2, 1}, {1, 1}), two, values}, {kScale = 1, kCausal = true}).equals({3, 4});
}

}  // namespace

void add_attention_cases(Cases& cases) {
  add_fused_attention(cases);
  const Attrs plain = {kScale = 0.5};
  const auto attend = [&](std::string says, Shape query, Shape key, Shape value, Attrs attrs) {
    const Shape y = {query[0], query[1], query[2], value[3]}, scores = {query[0], query[1], query[2], key[2]};
    cases.add(op::attention, std::move(says), {f32(std::move(query)), f32(std::move(key)), f32(std::move(value))}, std::move(attrs)).gives(y).gives(scores).gives(scores);
  };
  attend("one head", {1, 1, 3, 2}, {1, 1, 4, 2}, {1, 1, 4, 3}, plain);
  attend("symbolic batch and positions", {kN, 2, kM, 3}, {kN, 2, kM, 3}, {kN, 2, kM, 2}, plain);
  attend("two query heads to a key head", {2, 4, 3, 2}, {2, 2, 2, 2}, {2, 2, 2, 3}, plain);
  attend("one key head for all", {1, 3, 2, 2}, {1, 1, 2, 2}, {1, 1, 2, 2}, plain);
  attend("capped scores", {1, 2, 2, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}, {kScale = 1, kSoftcap = 1.5});
  attend("softmax in f64", {1, 1, 2, 2}, {1, 1, 3, 2}, {1, 1, 3, 2}, {kScale = 1, kSoftmaxType = DType::kF64});
  attend("no batch", {kEmpty, 1, 2, 2}, {kEmpty, 1, 2, 2}, {kEmpty, 1, 2, 2}, plain);

  const auto with_bias = [&](std::string says, Operand bias) {
    cases.add(op::attention, std::move(says), {f32({2, 2, 3, 2}), f32({2, 2, 4, 2}), f32({2, 2, 4, 2}), std::move(bias)}, plain);
  };
  with_bias("a bias for each score", f32({2, 2, 3, 4}));
  with_bias("a bias for all heads", f32({3, 4}));
  with_bias("a bias of one element", f32({}));
  with_bias("a bias for each query", f32({2, 1, 3, 1}));
  const double out = -std::numeric_limits<double>::infinity();
  with_bias("causal", constant(given({3, 4}, {0, out, out, out, 0, 0, out, out, 0, 0, 0, out})));
  with_bias("a query that attends to nothing", constant(given({3, 4}, {out, out, out, out, 0, out, 0, out, 0, 0, 0, 0})));
  const Operand one = given({1, 1, 1, 1}, {1}), values = given({1, 1, 2, 1}, {3, 5});
  cases.add(op::attention, "by hand: equal scores", {one, given({1, 1, 2, 1}, {2, 2}), values}, {kScale = 1}).equals({4});
  cases.add(op::attention, "by hand: one key is left out", {one, given({1, 1, 2, 1}, {2, 2}), values, constant(given({2}, {out, 0}))}, {kScale = 1}).equals({5});
  cases.add(op::attention, "by hand: no key is left", {one, given({1, 1, 2, 1}, {2, 2}), values, constant(given({}, {out}))}, {kScale = 1}).equals({0});
}

}  // namespace hone::test
