// Elementwise operators that need more than another name. The others carry their ONNX name in their OpDef.
#include <fmt/format.h>

#include <limits>

#include "frontend/onnx/constant_value.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops/activation_formulas.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// The operands joined from the left by a two-operand op.
std::vector<Val> fold(const ImportNode& node, const OpDef& op) {
  node.require(node.count() > 0, Code::kBadGraph, "needs at least one input");
  Val result = node.x(0);
  for (std::size_t i = 1; i < node.count(); ++i) result = op(result, node.x(i));
  return {result};
}

std::vector<Val> import_mean(const ImportNode& node) {
  const Val total = fold(node, op::add)[0];
  return {node.count() == 1 ? total : total / static_cast<double>(node.count())};
}

/// The result has the base's type whatever the exponent's; a whole base with a float exponent is raised as float.
std::vector<Val> import_pow(const ImportNode& node) {
  const Val base = node.x(0), exponent = node.x(1);
  if (is_float(base.dtype()) or not is_float(exponent.dtype())) return {op::pow(base, cast(exponent, base.dtype()))};
  return {cast(op::pow(cast(base, exponent.dtype()), exponent), base.dtype())};
}

/// A bound that is left out bounds nothing; exporters write them as [1], too.
/// x between two bounds, either of which may be invalid: there is none.
Val bounded(Val x, Val low, Val high) {
  if (not is_float(x.dtype()) and not high.valid()) return op::maximum(x, low);
  if (not is_float(x.dtype()) and not low.valid()) return op::minimum(x, high);
  const Val infinity = x.builder().scalar(std::numeric_limits<double>::infinity(), x.dtype());
  return op::clip(x, low.valid() ? low : -infinity, high.valid() ? high : infinity);
}

std::vector<Val> import_clip(const ImportNode& node) {
  const auto bound = [&](std::size_t i) { return node.has(i) ? reshape(node.x(i), {}) : Val(); };
  const Val low = bound(1), high = bound(2);
  return {low.valid() or high.valid() ? bounded(node.x(0), low, high) : node.x(0)};
}

/// Max and Min. Of x and a constant number they bound x: PyTorch's newer exporter writes clamp(min=0) so, jax2onnx relu, and neither has a gradient at the bound.
std::vector<Val> import_extremum(const ImportNode& node, const OpDef& op) {
  for (std::size_t i = 0; node.count() == 2 and i < 2; ++i) {
    const Val x = node.x(1 - i), bound = node.x(i);
    if (not is_float(x.dtype()) or bound.rank() > x.rank() or not element_count(bound.shape()).is_constant(1) or not constant_value(bound.builder().graph(), bound.id())) continue;
    return {&op == &op::maximum ? bounded(x, reshape(bound, {}), Val()) : bounded(x, Val(), reshape(bound, {}))};
  }
  return fold(node, op);
}

/// Several ops instead of one: half floats are rounded once, behind the last.
template <typename Formula>
std::vector<Val> compose(const ImportNode& node, Formula&& formula) {
  const Val x = node.x(0);
  const bool is_half = x.dtype() == DType::kF16 or x.dtype() == DType::kBF16;
  return {cast(formula(is_half ? cast(x, DType::kF32) : x), x.dtype())};
}

std::vector<Val> import_leaky_relu(const ImportNode& node) {
  const Val x = node.x(0);
  return {above_zero(x, x * node.real("alpha", 0.01))};
}

std::vector<Val> import_prelu(const ImportNode& node) {
  const Val x = node.x(0);
  return {above_zero(x, x * node.x(1))};
}

std::vector<Val> import_elu(const ImportNode& node) {
  return compose(node, [&](Val x) { return elu(x, node.real("alpha", 1)); });
}

std::vector<Val> import_selu(const ImportNode& node) {
  return compose(node, [&](Val x) { return elu(x, node.real("alpha", 1.6732632423543772)) * node.real("gamma", 1.0507009873554805); });
}

std::vector<Val> import_thresholded_relu(const ImportNode& node) {
  const Val x = node.x(0);
  return {thresholded_relu(x, node.real("alpha", 1))};
}

std::vector<Val> import_hard_sigmoid(const ImportNode& node) {
  return compose(node, [&](Val x) { return hard_sigmoid(x, node.real("alpha", 0.2), node.real("beta", 0.5)); });
}

std::vector<Val> import_hard_swish(const ImportNode& node) {
  return compose(node, [](Val x) { return x * hard_sigmoid(x, 1.0 / 6, 0.5); });
}

std::vector<Val> import_softsign(const ImportNode& node) {
  return compose(node, [](Val x) { return x / (op::abs(x) + 1.0); });
}

/// alpha (e^(x / alpha) - 1) below 0: its slope at 0 is 1 on both sides.
std::vector<Val> import_celu(const ImportNode& node) {
  const double alpha = node.real("alpha", 1);
  node.require(alpha != 0, Code::kBadAttribute, "alpha is 0");
  return compose(node, [&](Val x) { return above_zero(x, exp_below_zero(x, alpha) * alpha); });
}

std::vector<Val> import_shrink(const ImportNode& node) {
  const double threshold = node.real("lambd", 0.5), bias = node.real("bias", 0);
  return compose(node, [&](Val given) {
    const Val x = is_float(given.dtype()) ? given : cast(given, DType::kF64);  // of which lambd and bias are no integers
    const Val above = op::greater(x, x.builder().scalar(threshold, x.dtype())), below = op::less(x, x.builder().scalar(-threshold, x.dtype()));
    return op::where(above, x - bias, op::where(below, x + bias, zero_like(x)));
  });
}

Val swish(Val x, double alpha) { return x * op::sigmoid(alpha == 1 ? x : x * alpha); }

std::vector<Val> import_swish(const ImportNode& node) {
  return compose(node, [&](Val x) { return swish(x, node.real("alpha", 1)); });
}

std::vector<Val> import_swiglu(const ImportNode& node) {
  return compose(node, [&](Val x) { return swish(x, node.real("alpha", 1)) * cast(node.x(1), x.dtype()); });
}

std::vector<Val> import_mish(const ImportNode& node) {
  return compose(node, [](Val x) { return x * op::tanh(op::softplus(x)); });
}

std::vector<Val> import_gelu(const ImportNode& node) {
  const std::string form = node.text("approximate", "none");
  node.require(form == "none" or form == "tanh", Code::kBadAttribute, fmt::format("approximate = \"{}\"", form));
  return compose(node, [&](Val x) { return form == "tanh" ? op::gelu(x, {kTanhForm = true}) : op::gelu(x); });
}

std::vector<Val> import_mod(const ImportNode& node) { return {(node.flag("fmod", false) ? op::trunc_mod : op::floor_mod)(node.x(0), node.x(1))}; }

std::vector<Val> import_is_inf(const ImportNode& node) {
  const Val x = node.x(0), infinity = x.builder().scalar(std::numeric_limits<double>::infinity(), x.dtype());
  const bool positive = node.flag("detect_positive", true), negative = node.flag("detect_negative", true);
  if (not positive and not negative) return {full(node.builder(), 0, DType::kBool, x.shape())};
  return {op::equal(positive and negative ? op::abs(x) : negative ? -x : x, infinity)};
}

std::vector<Val> import_is_nan(const ImportNode& node) { return {op::logical_not(op::equal(node.x(0), node.x(0)))}; }

std::vector<Val> import_xor(const ImportNode& node) {
  const Val a = node.x(0), b = node.x(1);
  node.require(a.dtype() == DType::kBool and b.dtype() == DType::kBool, Code::kType, "needs bool operands");
  return {op::logical_not(op::equal(a, b))};
}

constinit const Importer kElementwiseOps[] = {
    {"Max", [](const ImportNode& node) { return import_extremum(node, op::maximum); }},
    {"Min", [](const ImportNode& node) { return import_extremum(node, op::minimum); }},
    {"Sum", [](const ImportNode& node) { return fold(node, op::add); }},
    {"Mean", import_mean},
    {"Pow", import_pow},
    {"Clip", import_clip},
    {"Reciprocal", [](const ImportNode& node) { return std::vector<Val>{1.0 / node.x(0)}; }},
    {"Ceil", [](const ImportNode& node) { return std::vector<Val>{-op::floor(-node.x(0))}; }},
    {"LeakyRelu", import_leaky_relu},
    {"PRelu", import_prelu, {1}},
    {"Elu", import_elu},
    {"Selu", import_selu},
    {"ThresholdedRelu", import_thresholded_relu},
    {"HardSigmoid", import_hard_sigmoid},
    {"HardSwish", import_hard_swish},
    {"Softsign", import_softsign},
    {"Celu", import_celu},
    {"Shrink", import_shrink},
    {"Swish", import_swish},
    {"SwiGLU", import_swiglu},
    {"Mish", import_mish},
    {"Gelu", import_gelu},
    {"Mod", import_mod},
    {"IsInf", import_is_inf},
    {"IsNaN", import_is_nan},
    {"Xor", import_xor},
};

}  // namespace

std::span<const Importer> elementwise_importers() { return kElementwiseOps; }

}  // namespace hone::onnx
