// Scaled dot-product attention.
#include <limits>

#include "tests/ops/op_cases.h"

namespace hone::test {

void add_attention_cases(Cases& cases) {
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
