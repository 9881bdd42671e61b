// Layers that carry a state from step to step: linear attention and causal convolution.
#include <fmt/format.h>

#include <cmath>

#include "frontend/onnx/ops.h"
#include "ir/ops/formulas.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

std::int64_t number_of(const ImportNode& node, const Dim& extent, std::string_view what) {
  if (not extent.is_constant()) node.fail(Code::kDynamic, fmt::format("{} must be known when compiling, and is {}", what, extent.text()));
  return extent.value();
}

/// A depthwise convolution over the last `k` positions: what came before is the past state, else zeros; the last k - 1 positions go on to the next step.
std::vector<Val> import_causal_conv(const ImportNode& node) {
  const Val x = node.x(0), weight = node.x(1);
  node.require(x.rank() == 3 and weight.rank() == 3, Code::kShape, "needs input [batch, channels, length] and weight [channels, 1, k]");
  const std::int64_t channels = number_of(node, weight.shape()[0], "the number of channels"), k = number_of(node, weight.shape()[2], "the window");
  node.require(k >= 1, Code::kShape, "the window has no elements");
  Shape padded = x.shape();
  padded[2] = padded[2] + (k - 1);
  const Val before = node.has(3) ? op::concat(node.x(3), x, {kAxis = 2}) : op::pad(x, {kStarts = Shape{0, 0, k - 1}, kSizes = padded, kSteps = Ints(3, 1)});
  Val y = op::conv(before, weight, {kStrides = Ints{1}, kDilations = Ints{1}, kPadsBegin = Shape{0}, kPadsEnd = Shape{0}, kGroups = channels});
  if (node.has(2)) y = y + per_channel(node.x(2), 3);
  const std::string activation = node.text("activation", "none");
  node.require(activation == "none" or activation == "silu" or activation == "swish", Code::kBadAttribute,
               fmt::format("activation = \"{}\"; there are none, silu and swish", activation));
  if (activation != "none") y = y * op::sigmoid(y);
  return {y, part_of(before, 2, x.shape()[2], k - 1)};
}

/// One step of linear attention; every operand is of this step alone.
struct Step {
  Val query;  ///< [B,G,R,K]: R queries share a head of the G
  Val key;    ///< [B,G,K,1]
  Val value;  ///< [B,G,1,V]
  Val decay;  ///< [B,G,K or 1,1]; invalid: none
  Val rate;   ///< [B,G or 1,1,1]; invalid: the plain rule
};

/// Moves the state [B,G,K,V] by one step.
Val next_state(Val state, const Step& step) {
  if (step.decay.valid()) state = state * op::exp(step.decay);
  Val value = step.value;
  if (step.rate.valid()) value = step.rate * (value - op::matmul(step.key, state, {kTransA = true}));
  return state + step.key * value;
}

struct Rule {
  bool decays, corrects;
};

Rule rule_of(const ImportNode& node) {
  const std::string rule = node.text("update_rule", "gated_delta");
  node.require(rule == "linear" or rule == "gated" or rule == "delta" or rule == "gated_delta", Code::kBadAttribute,
               fmt::format("update_rule = \"{}\"; there are linear, gated, delta and gated_delta", rule));
  const Rule found{rule.starts_with("gated"), rule.ends_with("delta")};
  node.require(node.has(4) == found.decays, Code::kBadGraph, fmt::format("update_rule {} {} a decay", rule, found.decays ? "needs" : "has no"));
  node.require(node.has(5) == found.corrects, Code::kBadGraph, fmt::format("update_rule {} {} a beta", rule, found.corrects ? "needs" : "has no"));
  return found;
}

class LinearAttention {
 public:
  explicit LinearAttention(const ImportNode& node) : node_(node), rule_(rule_of(node)), heads_(node.integer("q_num_heads", 0)), groups_(node.integer("kv_num_heads", 0)) {
    node.require(groups_ >= 1 and heads_ >= 1 and heads_ % groups_ == 0, Code::kBadAttribute, fmt::format("{} query heads for {} key heads", heads_, groups_));
    for (const std::size_t i : {0, 1, 2}) node.require(node.x(i).rank() == 3, Code::kShape, "query, key and value need three axes: [batch, positions, heads * features]");
    dtype_ = size_of(node.x(0).dtype()) < size_of(DType::kF32) ? DType::kF32 : node.x(0).dtype();
    keys_ = number_of(node, node.x(0).shape()[2], "the query's last axis") / heads_;
    values_ = floordiv(node.x(2).shape()[2], groups_);
  }

  std::vector<Val> run() {
    const Dim batch = node_.x(0).shape()[0];
    const std::int64_t steps = number_of(node_, node_.x(0).shape()[1], "the number of positions");
    Val state = node_.has(3) ? cast(node_.x(3), dtype_) : full(node_.builder(), 0, dtype_, {batch, groups_, keys_, values_});
    std::vector<Val> outputs;
    for (std::int64_t t = 0; t < steps; ++t) {
      const Step step = step_at(t);
      state = next_state(state, step);
      outputs.push_back(reshape(op::matmul(step.query, state) * scale(), {batch, 1, values_ * heads_}));
    }
    node_.require(not outputs.empty(), Code::kShape, "has no positions");
    const Val output = outputs.size() == 1 ? outputs[0] : op::concat.build(outputs, {kAxis = 1});
    return {cast(output, node_.x(0).dtype()), cast(state, node_.has(3) ? node_.x(3).dtype() : node_.x(0).dtype())};
  }

 private:
  double scale() const {
    const double stated = node_.real("scale", 0);
    return stated == 0 ? 1 / std::sqrt(static_cast<double>(keys_)) : stated;
  }

  /// Operand `i` at position `t`, its last axis as `rest`.
  Val at(std::size_t i, std::int64_t t, Shape rest) const {
    rest.insert(rest.begin(), node_.x(0).shape()[0]);
    return reshape(cast(part_of(node_.x(i), 1, t, 1), dtype_), rest);
  }

  Step step_at(std::int64_t t) const {
    Step step{at(0, t, {groups_, heads_ / groups_, keys_}), at(1, t, {groups_, keys_, 1}), at(2, t, {groups_, 1, values_}), {}, {}};
    if (rule_.decays) step.decay = at(4, t, {groups_, node_.x(4).shape()[2].is_constant(groups_) ? 1 : keys_, 1});
    if (rule_.corrects) step.rate = at(5, t, {node_.x(5).shape()[2], 1, 1});
    return step;
  }

  const ImportNode& node_;
  Rule rule_;
  std::int64_t heads_, groups_, keys_ = 0;
  Dim values_ = 0;
  DType dtype_ = DType::kF32;
};

constinit const Importer kLinearAttentionOps[] = {
    {"CausalConvWithState", import_causal_conv, {1, 2}},
    {"LinearAttention", [](const ImportNode& node) { return LinearAttention(node).run(); }},
};

}  // namespace

std::span<const Importer> linear_attention_importers() { return kLinearAttentionOps; }

}  // namespace hone::onnx
