// Softmax, and normalization over a batch or within a sample.
#include <fmt/format.h>

#include "frontend/onnx/ops.h"
#include "frontend/onnx/versions.h"
#include "ir/ops/formulas.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

using AlongAxis = Val (*)(Val x, std::int64_t axis);

/// Old versions took the softmax over all axes from `axis` on, as one.
std::vector<Val> import_softmax(const ImportNode& node, AlongAxis softmax) {
  const Val x = node.x(0);
  if (x.rank() == 0) return {reshape(softmax(reshape(x, {1}), 0), {})};
  const std::size_t axis = node.axis(node.integer("axis", -1), x.rank());
  if (not node.flag(kOverAllAxesFrom, false) or axis + 1 == x.rank()) return {softmax(x, static_cast<std::int64_t>(axis))};
  const auto middle = x.shape().begin() + static_cast<std::ptrdiff_t>(axis);
  const Val matrix = reshape(x, {element_count(Shape(x.shape().begin(), middle)), element_count(Shape(middle, x.shape().end()))});
  return {reshape(softmax(matrix, 1), x.shape())};
}

/// 1 at the first largest element along the axis, else 0.
Val hardmax(Val x, std::int64_t axis) {
  const auto along = static_cast<std::size_t>(axis);
  Shape kept = x.shape(), line(x.rank(), Dim(1));
  kept[along] = 1;
  line[along] = x.shape()[along];
  const Val position = x.builder().add(op::iota, {}, {kShape = line, kAxis = axis})[0];
  return cast(op::equal(position, reshape(op::argmax(x, {kAxis = axis}), kept)), x.dtype());
}

/// training_mode says what the model's outputs mean; how the training step normalizes is the recipe's choice (passes/batch_norm.cc).
std::vector<Val> import_batch_norm(const ImportNode& node) {
  std::vector<Val> operands = node.rest(0);
  node.require(operands.size() == 5, Code::kBadGraph, fmt::format("has {} inputs, and needs 5", operands.size()));
  for (std::size_t i = 3; i < node.result_count(); ++i)
    if (node.wants(i)) node.fail(Code::kUnknownOp, fmt::format("its result {} (a batch statistic) cannot be used", i));
  const Shape shape = operands[0].shape();
  const DType dtype = operands[0].dtype(), scale = operands[1].dtype(), statistics = operands[3].dtype();
  if (dtype != scale or dtype != statistics)  // a half beside f32, as mixed precision has it: then all of it is f32
    for (Val& operand : operands) operand = cast(operand, DType::kF32);
  if (shape.size() == 1) operands[0] = reshape(operands[0], {shape[0], 1});  // one channel
  Attrs attrs = {kEpsilon = node.real("epsilon", 1e-5), kMomentum = node.real("momentum", 0.9)};
  if (not node.flag("training_mode", false)) return {cast(reshape(op::batch_norm.build(operands, attrs), shape), dtype), cast(operands[3], statistics), cast(operands[4], statistics)};
  attrs.set(kKeras = true);  // the biased variance is the one that runs
  std::vector<Val> results = op::batch_norm_train.build_all(operands, attrs);
  return {cast(reshape(results[0], shape), dtype), cast(results[1], statistics), cast(results[2], statistics)};
}

/// The type that the first stage of a normalization computes in.
DType stash_type(const ImportNode& node) { return node.has_attribute("stash_type") ? node.dtype("stash_type") : DType::kF32; }

/// The normalized x; scale and bias are the second stage, in x's own type.
Val scaled(Val normalized, Val scale, Val bias, DType dtype) {
  Val y = cast(normalized, dtype);
  if (scale.valid()) y = y * scale;
  return bias.valid() ? y + bias : y;
}

std::vector<Val> import_layer_norm(const ImportNode& node) {
  const Val x = node.x(0), wide = cast(x, stash_type(node)), scale = node.x(1), bias = node.has(2) ? node.x(2) : Val{};
  const std::size_t axis = node.axis(node.integer("axis", -1), x.rank());
  const Attrs attrs = {kAxis = static_cast<std::int64_t>(axis), kEpsilon = node.real("epsilon", 1e-5)};
  const Val y = wide.dtype() == x.dtype() ? op::layer_norm.build({x, scale, bias}, attrs) : scaled(op::layer_norm(wide, attrs), scale, bias, x.dtype());
  if (not node.wants(1) and not node.wants(2)) return {y};
  Ints axes = all_axes(x.rank());
  axes.erase(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(axis));
  const Moments m = moments(wide, axes, attrs[kEpsilon]);
  return {y, m.mean, m.inverse};
}

std::vector<Val> import_rms_norm(const ImportNode& node) {
  const Val x = node.x(0), wide = cast(x, stash_type(node)), scale = node.x(1);
  const Attrs attrs = {kAxis = static_cast<std::int64_t>(node.axis(node.integer("axis", -1), x.rank())), kEpsilon = node.real("epsilon", 1e-5)};
  return {wide.dtype() == x.dtype() ? op::rms_norm(x, scale, attrs) : scaled(op::rms_norm(wide, attrs), scale, {}, x.dtype())};
}

/// Normalizes each of `groups` parts of a sample's channels as one, then scales and shifts each channel.
std::vector<Val> normalize_groups(const ImportNode& node, Dim groups, DType stash) {
  const Val x = node.x(0), scale = node.x(1), bias = node.x(2);
  node.require(x.rank() >= 2, Code::kShape, "the input needs two axes or more: [N,C,...]");
  for (const Val& one : {scale, bias}) {
    const Dim given = one.rank() == 1 ? one.shape()[0] : Dim(0);
    node.require(one.rank() == 1 and (given == x.shape()[1] or not given.is_constant() or not x.shape()[1].is_constant()), Code::kShape,
                 "scale and bias are vectors with one element a channel");
  }
  const Dim rest = floordiv(element_count(Shape(x.shape().begin() + 1, x.shape().end())), groups);
  const Val parts = cast(reshape(x, {x.shape()[0], groups, rest}), stash);
  const Val normalized = reshape(op::layer_norm(parts, {kAxis = 2, kEpsilon = node.real("epsilon", 1e-5)}), x.shape());
  return {scaled(normalized, per_channel(scale, x.rank()), per_channel(bias, x.rank()), x.dtype())};
}

std::vector<Val> import_group_norm(const ImportNode& node) {
  const std::int64_t groups = node.integer("num_groups", 0);
  const Dim channels = node.x(0).rank() >= 2 ? node.x(0).shape()[1] : Dim(0);
  node.require(groups >= 1 and (not channels.is_constant() or channels.value() % groups == 0), Code::kBadAttribute,
               fmt::format("{} channels do not fall into num_groups = {} groups", channels.text(), groups));
  return normalize_groups(node, groups, stash_type(node));
}

std::vector<Val> import_instance_norm(const ImportNode& node) {
  const Val x = node.x(0);
  return normalize_groups(node, x.rank() >= 2 ? x.shape()[1] : Dim(1), x.dtype());
}

/// (x - mean) / (standard deviation + 1e-9), as the operator's description has it.
std::vector<Val> import_mean_variance_norm(const ImportNode& node) {
  const Val x = node.x(0);
  const Ints axes = node.axes(node.integers("axes").value_or(Ints{0, 2, 3}), x.rank());
  const Val deviation = x - mean_over(x, axes);
  return {deviation / (op::sqrt(mean_over(square(deviation), axes)) + 1e-9)};
}

constinit const Importer kNormalizationOps[] = {
    {"Softmax", [](const ImportNode& node) { return import_softmax(node, [](Val x, std::int64_t axis) { return op::softmax(x, {kAxis = axis}); }); }},
    {"LogSoftmax", [](const ImportNode& node) { return import_softmax(node, [](Val x, std::int64_t axis) { return op::log_softmax(x, {kAxis = axis}); }); }},
    {"Hardmax", [](const ImportNode& node) { return import_softmax(node, hardmax); }},
    {"BatchNormalization", import_batch_norm, {1, 2, 3, 4}},
    {"LayerNormalization", import_layer_norm, {1, 2}},
    {"RMSNormalization", import_rms_norm, {1}},
    {"GroupNormalization", import_group_norm, {1, 2}},
    {"InstanceNormalization", import_instance_norm, {1, 2}},
    {"MeanVarianceNormalization", import_mean_variance_norm},
};

}  // namespace

std::span<const Importer> normalization_importers() { return kNormalizationOps; }

}  // namespace hone::onnx
