// Normalizations and softmax.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

void add_softmax(GradientCases& cases, const char* op) {
  cases.add(op, "the last axis", {x({3, 5})});
  cases.add(op, "axis 0", {x({3, 5})}, {{"axis", 0}});
  cases.add(op, "the middle axis", {x({2, 4, 3})}, {{"axis", 1}});
  cases.add(op, "a negative axis", {x({2, 4, 3})}, {{"axis", -2}});
  cases.add(op, "a vector", {x({6})});
  cases.add(op, "an axis of one element", {x({3, 1})});
  cases.add(op, "large values", {x({2, 4}, 90, 110)});
  cases.add(op, "far apart", {x({2, 4}, -30, 30)});
  cases.add(op, "a symbolic batch", {x({"N", 4})});
  cases.add(op, "over a symbolic axis", {x({2, "N"})});
  cases.add(op, "rank 4", {x({1, 2, 3, 2})}, {{"axis", 2}});
  cases.add(op, "all axes from 1 on, as before opset 13", {x({2, 3, 2})}).opset(11);
  cases.add(op, "all axes from 0 on, as before opset 13", {x({2, 3})}, {{"axis", 0}}).opset(11);
}

/// With running statistics, as in inference.
void add_batch_norm(GradientCases& cases) {
  const char* const op = "BatchNormalization";
  const auto per_channel = [](std::int64_t count) { return x({count}); };
  const auto variance = [](std::int64_t count) { return x({count}, 0.3, 2); };
  cases.add(op, "images", {x({2, 3, 2, 2}), per_channel(3), per_channel(3), per_channel(3), variance(3)});
  cases.add(op, "rows", {x({4, 3}), per_channel(3), per_channel(3), per_channel(3), variance(3)});
  cases.add(op, "one spatial axis", {x({2, 2, 5}), per_channel(2), per_channel(2), per_channel(2), variance(2)});
  cases.add(op, "three spatial axes", {x({1, 2, 2, 2, 2}), per_channel(2), per_channel(2), per_channel(2), variance(2)});
  cases.add(op, "epsilon", {x({2, 3, 2}), per_channel(3), per_channel(3), per_channel(3), variance(3)}, {{"epsilon", 0.1}});
  cases.add(op, "constant statistics", {x({2, 3, 2, 2}), per_channel(3), per_channel(3), constant(per_channel(3)), constant(variance(3))});
  cases.add(op, "everything constant but the data",
            {x({2, 2, 3}), constant(per_channel(2)), constant(per_channel(2)), constant(per_channel(2)), constant(variance(2))});
  cases.add(op, "constant data", {constant(x({2, 2, 3})), per_channel(2), per_channel(2), per_channel(2), variance(2)});
  cases.add(op, "a symbolic batch", {x({"N", 2, 2}), per_channel(2), per_channel(2), per_channel(2), variance(2)});
  cases.add(op, "one channel", {x({3, 1, 2, 2}), per_channel(1), per_channel(1), per_channel(1), variance(1)});
  cases.add(op, "opset 9", {x({2, 3, 2}), per_channel(3), per_channel(3), per_channel(3), variance(3)}, {{"momentum", 0.8}}).opset(9);
}

}  // namespace

void add_normalization_cases(GradientCases& cases) {
  add_softmax(cases, "Softmax");
  add_softmax(cases, "LogSoftmax");
  add_batch_norm(cases);
}

}  // namespace hone::test
