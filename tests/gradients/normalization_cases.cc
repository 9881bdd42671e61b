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

/// With the batch's own statistics; the running ones that come out are constants to the gradient.
void add_batch_norm_in_training(GradientCases& cases) {
  const auto add = [&](std::string says, std::vector<Extent> data, std::int64_t channels, std::vector<GradientAttribute> attributes = {}) {
    attributes.push_back({"training_mode", 1});
    cases.add("BatchNormalization", "training, " + std::move(says),
              {x(std::move(data)), x({channels}), x({channels}), constant(x({channels})), constant(x({channels}, 0.3, 2))}, std::move(attributes));
    cases.outputs(3).varies_in(1);
  };
  add("images", {2, 3, 2, 2}, 3);
  add("rows", {4, 3}, 3);
  add("a symbolic batch", {"N", 2, 2}, 2);
  add("one channel", {3, 1, 2}, 1, {{"epsilon", 0.01}});
  add("three spatial axes", {1, 2, 2, 1, 2}, 2, {{"momentum", 0.5}});
}

void add_layer_norm(GradientCases& cases) {
  const char* const op = "LayerNormalization";
  cases.add(op, "the last axis", {x({3, 5}), x({5}), x({5})});
  cases.add(op, "without a bias", {x({3, 5}), x({5})});
  cases.add(op, "axis 0", {x({3, 4}), x({3, 4}), x({3, 4})}, {{"axis", 0}});
  cases.add(op, "the last two axes", {x({2, 3, 4}), x({3, 4}), x({3, 4})}, {{"axis", -2}});
  cases.add(op, "scale and bias broadcast", {x({2, 3, 4}), x({3, 1}), x({4})}, {{"axis", 1}});
  cases.add(op, "one scale for all", {x({2, 3}), x({1}), x({})});
  cases.add(op, "a symbolic batch", {x({"N", 4}), x({4}), x({4})});
  cases.add(op, "over a symbolic axis", {x({2, "N"}), x({"N"}), x({1})});
  cases.add(op, "epsilon", {x({2, 4}), x({4}), x({4})}, {{"epsilon", 0.5}});
  cases.add(op, "rank 4", {x({2, 1, 2, 3}), x({3}), x({3})}, {{"axis", 3}});
  cases.add(op, "constant scale and bias", {x({3, 4}), constant(x({4})), constant(x({4}))});
  cases.add(op, "mean and inverse deviation, too", {x({3, 4}), x({4}), x({4})}).outputs(3);
  cases.add(op, "the inverse deviation only", {x({2, 2, 3}), x({2, 3})}, {{"axis", 1}}).outputs(3).leaves_out(1);
  cases.add(op, "f64, computed in f64", {of_type(DType::kF64, x({3, 4})), of_type(DType::kF64, x({4})), of_type(DType::kF64, x({4}))}, {{"stash_type", 11}});
}

void add_rms_norm(GradientCases& cases) {
  const char* const op = "RMSNormalization";
  const auto add = [&](std::string says, GradientInput data, GradientInput scale, std::vector<GradientAttribute> attributes = {}) {
    cases.add(op, std::move(says), {std::move(data), std::move(scale)}, std::move(attributes)).opset(23);
  };
  add("the last axis", x({3, 5}), x({5}));
  add("axis 0", x({3, 4}), x({3, 4}), {{"axis", 0}});
  add("the last two axes", x({2, 3, 4}), x({3, 4}), {{"axis", -2}});
  add("the scale broadcasts", x({2, 3, 4}), x({3, 1}), {{"axis", 1}});
  add("one scale for all", x({2, 3}), x({}));
  add("a symbolic batch", x({"N", 4}), x({4}));
  add("over a symbolic axis", x({2, "N"}), x({1}));
  add("epsilon", x({2, 4}), x({4}), {{"epsilon", 0.5}});
  add("rank 4", x({2, 1, 2, 3}), x({3}), {{"axis", 3}});
  add("a constant scale", x({3, 4}), constant(x({4})));
  add("a constant x", constant(x({3, 4})), x({4}));
}

/// Scale and bias for each channel: InstanceNormalization, and GroupNormalization with `groups`.
void add_normalization_of_channels(GradientCases& cases, const std::string& op, std::int64_t groups, std::int64_t opset) {
  const auto add = [&](std::string says, std::vector<Extent> data, std::int64_t channels, std::vector<GradientAttribute> attributes = {}) {
    if (groups > 0) attributes.push_back({"num_groups", groups});
    cases.add(op, std::move(says), {x(std::move(data)), x({channels}), x({channels})}, std::move(attributes)).opset(opset);
  };
  add("images", {2, 4, 2, 3}, 4);
  add("one spatial axis", {2, 4, 5}, 4);
  add("three spatial axes", {1, 2, 2, 3, 2}, 2);
  add("epsilon", {2, 2, 3}, 2, {{"epsilon", 0.3}});
  add("a symbolic batch", {"N", 2, 3}, 2);
  add("symbolic extents", {1, 2, "N", "M"}, 2);
  add("one sample", {1, 4, 4}, 4);
  add("more channels", {1, 6, 3}, 6);
  add("an axis of one element", {2, 2, 1, 4}, 2);
  std::vector<GradientAttribute> attributes;
  if (groups > 0) attributes.push_back({"num_groups", groups});
  cases.add(op, "constant scale and bias", {x({2, 2, 4}), constant(x({2})), constant(x({2}))}, std::move(attributes)).opset(opset);
}

void add_group_norm_of_opset_18(GradientCases& cases) {
  const std::vector<GradientAttribute> attributes = {{"num_groups", 2}};
  cases.add("GroupNormalization", "opset 18: scale and bias for each group", {x({2, 4, 3}), x({2}), x({2})}, attributes).opset(18);
  cases.add("GroupNormalization", "opset 18: a symbolic batch", {x({"N", 2, 2, 2}), x({2}), x({2})}, attributes).opset(18);
}

void add_mean_variance_norm(GradientCases& cases) {
  const char* const op = "MeanVarianceNormalization";
  cases.add(op, "images", {x({2, 3, 2, 2})});
  cases.add(op, "the last axis", {x({3, 5})}, {{"axes", Ints{1}}});
  cases.add(op, "a negative axis", {x({3, 5})}, {{"axes", Ints{-1}}});
  cases.add(op, "axis 0", {x({4, 3})}, {{"axes", Ints{0}}});
  cases.add(op, "all axes", {x({3, 4})}, {{"axes", Ints{0, 1}}});
  cases.add(op, "axes around one that stays", {x({2, 3, 2})}, {{"axes", Ints{0, 2}}});
  cases.add(op, "a vector", {x({6})}, {{"axes", Ints{0}}});
  cases.add(op, "a symbolic batch", {x({"N", 4})}, {{"axes", Ints{1}}});
  cases.add(op, "over a symbolic axis", {x({"N", 2})}, {{"axes", Ints{0}}});
  cases.add(op, "rank 5", {x({1, 2, 2, 1, 3})}, {{"axes", Ints{2, 3, 4}}});
  cases.add(op, "f64", {of_type(DType::kF64, x({2, 2, 3, 2}))});
}

void add_lp_normalization(GradientCases& cases) {
  const char* const op = "LpNormalization";
  cases.add(op, "the last axis", {x({3, 4})});
  cases.add(op, "axis 0", {x({3, 4})}, {{"axis", 0}});
  cases.add(op, "the middle axis", {x({2, 4, 3})}, {{"axis", 1}});
  cases.add(op, "an axis from the end", {x({2, 4, 3})}, {{"axis", -2}});
  cases.add(op, "p = 1", {x({3, 4})}, {{"p", 1}});
  cases.add(op, "p = 1, axis 0", {x({3, 4})}, {{"p", 1}, {"axis", 0}});
  cases.add(op, "a vector", {x({6})});
  cases.add(op, "rank 4", {x({2, 1, 3, 2})}, {{"axis", 2}});
  cases.add(op, "a symbolic batch", {x({"N", 4})});
  cases.add(op, "along a symbolic axis", {x({"N", 2})}, {{"axis", 0}});
  cases.add(op, "no elements", {x({0, 3})});
  cases.add(op, "f64", {of_type(DType::kF64, x({3, 4}))});
}

}  // namespace

void add_normalization_cases(GradientCases& cases) {
  add_lp_normalization(cases);
  add_softmax(cases, "Softmax");
  add_softmax(cases, "LogSoftmax");
  add_batch_norm(cases);
  add_batch_norm_in_training(cases);
  add_layer_norm(cases);
  add_rms_norm(cases);
  add_normalization_of_channels(cases, "InstanceNormalization", 0, 17);
  add_normalization_of_channels(cases, "GroupNormalization", 2, 21);
  add_group_norm_of_opset_18(cases);
  add_mean_variance_norm(cases);
}

}  // namespace hone::test
