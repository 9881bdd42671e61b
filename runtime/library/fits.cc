#include "runtime/library/fits.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/recurrent_cell.h"
#include "base/tensor.h"
#include "base/text.h"
#include "runtime/library/recurrent.h"

namespace hone::fits {

namespace {

using Sizes = std::vector<std::int64_t>;

constexpr DTypes kOnF32 = {DType::kF32};
constexpr DTypes kOnOneDnn = {DType::kF32, DType::kBF16};
constexpr DTypes kOnDevice = {DType::kF32, DType::kBF16, DType::kF16};
constexpr DTypes kHalves = {DType::kBF16, DType::kF16};
constexpr std::size_t kMostAxes = 12;  // of a tensor of oneDNN's

// oneDNN keeps numbers of windows in ints, adds and multiplies them there, and walks all of a window, wherever it lies.
constexpr std::int64_t kMostOfWindow = std::int64_t{1} << 24;
constexpr auto kEachAxis = AttributeRule::Count::kPerSpatialAxis;
constexpr AttributeRule kStrides = {.name = "strides", .count = kEachAxis, .least = 1, .most = kMostOfWindow};
constexpr AttributeRule kDilations = {.name = "dilations", .count = kEachAxis, .least = 1, .most = kMostOfWindow};
constexpr AttributeRule kPadsBegin = {.name = "pads_begin", .count = kEachAxis, .least = 0, .most = kMostOfWindow};
constexpr AttributeRule kKernel = {.name = "kernel", .count = kEachAxis, .least = 1, .most = kMostOfWindow, .required = true};
constexpr AttributeRule kGroups = {.name = "groups", .least = 1};
constexpr AttributeRule kChannelsLast = {.name = "channels_last", .least = 0, .most = 1};
constexpr AttributeRule kTf32 = {.name = "tf32", .least = 0, .most = 1};
constexpr AttributeRule kTa = {.name = "ta", .least = 0, .most = 1};
constexpr AttributeRule kTb = {.name = "tb", .least = 0, .most = 1};
constexpr AttributeRule kCausal = {.name = "causal", .least = 0, .most = 1};
constexpr AttributeRule kCell = {.name = "cell", .least = kFirstRecurrentCell, .most = kLastRecurrentCell, .required = true};
constexpr AttributeRule kGates = {.name = "gates", .count = AttributeRule::Count::kAny, .least = 0, .most = 3, .required = true};
constexpr AttributeRule kScaleBits = {.name = "scale_bits", .least = 0, .most = UINT32_MAX, .required = true};

constexpr TensorRule matrix(std::string_view name, const DTypes& types, int like = -1, bool or_f32 = false) {
  return {.name = name, .types = types, .like = like, .or_f32 = or_f32, .least_rank = 2, .most_rank = kMostAxes};
}
/// An activation, or a weight, of a convolution or pooling.
constexpr TensorRule spatial(std::string_view name, const DTypes& types, int like = -1, bool or_f32 = false) {
  return {.name = name, .types = types, .like = like, .or_f32 = or_f32, .least_rank = 3, .most_rank = 5, .rank_like = like};
}
/// [batches,heads,positions,..]
constexpr TensorRule of_heads(std::string_view name, const DTypes& types, int like = -1, bool optional = false) {
  return {.name = name, .types = types, .like = like, .least_rank = 4, .most_rank = 4, .optional = optional};
}
constexpr TensorRule in_f32(std::string_view name, std::size_t axes, bool optional = false) { return {.name = name, .types = kOnF32, .least_rank = axes, .most_rank = axes, .optional = optional}; }
constexpr TensorRule workspace(bool optional) { return {.name = "workspace", .optional = optional}; }

constexpr CallRules conv_rules(std::string_view first, std::string_view second, std::string_view result, const DTypes& types) {
  return {.operands = {spatial(first, types), spatial(second, types, 0)}, .results = {spatial(result, types, 0, true)}, .attributes = {kStrides, kDilations, kPadsBegin, kGroups, kChannelsLast, kTf32}};
}

std::int64_t count_of(const TensorType& type) { return checked_element_count(type.shape); }
std::int64_t flag(const LibrarySpec& spec, std::string_view name) { return attribute_or(spec, name, 0); }
bool is_empty(const TensorType& type) { return std::ranges::find(type.shape, 0) != type.shape.end(); }

/// Of the axes in front of the last two: each is y's, or 1, or missing.
std::string why_no_broadcast(std::string_view name, const Sizes& shape, const Sizes& y, std::size_t behind) {
  if (shape.size() > y.size()) return fmt::format("{} has {} axes, more than the result's {}", name, shape.size(), y.size());
  for (std::size_t i = behind + 1; i <= shape.size(); ++i)
    if (const std::int64_t extent = shape[shape.size() - i]; extent != 1 and extent != y[y.size() - i]) return fmt::format("{} has {} where the result has {}", name, extent, y[y.size() - i]);
  return "";
}

std::string product(const LibrarySpec& spec) {
  const Sizes &a = spec.operands[0]->shape, &b = spec.operands[1]->shape, &y = spec.results[0].shape;
  const auto at = [](const Sizes& shape, bool swapped, int from_end) { return shape[shape.size() - static_cast<std::size_t>(swapped ? 3 - from_end : from_end)]; };
  const bool ta = flag(spec, "ta") != 0, tb = flag(spec, "tb") != 0;
  if (at(a, ta, 1) != at(b, tb, 2)) return fmt::format("a has {} columns, and b {} rows", at(a, ta, 1), at(b, tb, 2));
  if (at(a, ta, 2) != at(y, false, 2)) return fmt::format("a has {} rows, and the result {}", at(a, ta, 2), at(y, false, 2));
  if (at(b, tb, 1) != at(y, false, 1)) return fmt::format("b has {} columns, and the result {}", at(b, tb, 1), at(y, false, 1));
  if (std::string why = why_no_broadcast("a", a, y, 2); not why.empty()) return why;
  return why_no_broadcast("b", b, y, 2);
}

/// Query, key and value first, the bias last, if there is one.
std::string attended(const LibrarySpec& spec, std::size_t bias, const Sizes& y, const Sizes& statistics) {
  const Sizes &query = spec.operands[0]->shape, &key = spec.operands[1]->shape, &value = spec.operands[2]->shape;
  const auto differ = [](std::string_view what, const Sizes& found, const Sizes& wanted) { return found == wanted ? "" : fmt::format("{} of {}, and not {}", what, shape_text(found), shape_text(wanted)); };
  if (std::string why = differ("keys", key, {query[0], query[1], key[2], query[3]}); not why.empty()) return why;
  if (std::string why = differ("values", value, {query[0], query[1], key[2], value[3]}); not why.empty()) return why;
  if (std::string why = differ("a result", y, {query[0], query[1], query[2], value[3]}); not why.empty()) return why;
  if (std::string why = differ("statistics", statistics, {query[0], query[1], query[2], 1}); not why.empty()) return why;
  if (spec.operands.size() <= bias or not spec.operands[bias]) return "";
  return why_no_broadcast("the bias", spec.operands[bias]->shape, {query[0], query[1], query[2], key[2]}, 0);
}

/// x, weights and states; behind these another group of them, if there are gradients of theirs. All are f32, so that sizes are all that there is to check.
std::string recurrent_layer(const LibrarySpec& spec, bool gradient) {
  const auto cell = static_cast<RecurrentCell>(spec.attributes.at("cell").front());
  const std::int64_t gates = gates_of(cell);
  Sizes places = spec.attributes.at("gates");
  std::ranges::sort(places);
  for (std::int64_t i = 0; i < gates; ++i)
    if (static_cast<std::int64_t>(places.size()) != gates or places[static_cast<std::size_t>(i)] != i) return fmt::format("gates at {}, and not each of {} at a place of its own", shape_text(spec.attributes.at("gates")), gates);
  const std::size_t states = states_of(cell);
  const Sizes &x = spec.operands[kRecurrentX]->shape, &r = spec.operands[kRecurrentR]->shape;
  const std::int64_t hidden = r[1];
  if (hidden > INT32_MAX / gates) return fmt::format("{} hidden features", hidden);
  const Sizes state = {x[1], hidden}, y = {x[0], x[1], hidden}, of_gates = {hidden * gates};
  std::vector<Sizes> wanted = {x, {of_gates[0], x[2]}, {of_gates[0], hidden}, of_gates, of_gates};
  std::vector<Sizes> results = wanted;
  if (gradient) wanted.push_back(y);
  else results = {y};
  wanted.insert(wanted.end(), (gradient ? 2 : 1) * states, state);
  results.insert(results.end(), states, state);
  if (spec.operands.size() != wanted.size() or spec.results.size() != results.size()) return fmt::format("{} operands and {} results, for a cell of {} states", spec.operands.size(), spec.results.size(), states);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (not spec.operands[i] or spec.operands[i]->shape != wanted[i]) return fmt::format("operand {} is not of {}", i, shape_text(wanted[i]));
  for (std::size_t i = 0; i < results.size(); ++i)
    if (spec.results[i].shape != results[i]) return fmt::format("result {} of {}, and not {}", i, shape_text(spec.results[i].shape), shape_text(results[i]));
  return "";
}

/// Windows of `kernel` over `input`, the attributes' way, that give `output`.
std::string why_no_windows(const LibrarySpec& spec, std::span<const std::int64_t> input, std::span<const std::int64_t> kernel, std::span<const std::int64_t> output) {
  const auto numbers = [&](std::string_view name, std::int64_t otherwise) { return attribute_or(spec, name, Sizes(input.size(), otherwise)); };
  const Sizes strides = numbers("strides", 1), dilations = numbers("dilations", 1), pads = numbers("pads_begin", 0);
  for (std::size_t i = 0; i < input.size(); ++i) {
    for (const std::int64_t extent : {input[i], kernel[i], output[i]})
      if (extent > kMostOfWindow) return fmt::format("an axis of {} elements", extent);
    const std::int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    const std::int64_t first_to_last = (output[i] - 1) * strides[i];
    if (std::max(reach, first_to_last) > kMostOfWindow or input[i] + pads[i] > kMostOfWindow) return fmt::format("{} windows of {} elements, {} apart, which reach too far", output[i], reach, strides[i]);
  }
  return "";
}

Sizes channels_first(const LibrarySpec& spec, const TensorType& type) {
  Sizes shape = type.shape;
  if (flag(spec, "channels_last") != 0) std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return shape;
}

std::string convolution(const LibrarySpec& spec, const TensorType& of_x, const TensorType& of_weight, const TensorType& of_y) {
  const Sizes x = channels_first(spec, of_x), y = channels_first(spec, of_y), &weight = of_weight.shape;
  const std::int64_t groups = attribute_or(spec, "groups", 1);
  if (x[0] != y[0]) return fmt::format("{} samples on one side, {} on the other", x[0], y[0]);
  if (weight[0] != y[1]) return fmt::format("{} filters for {} channels", weight[0], y[1]);
  if (weight[0] % groups != 0 or x[1] % groups != 0 or x[1] / groups != weight[1]) return fmt::format("filters over {} channels, in {} groups, for {}", weight[1], groups, x[1]);
  if (is_empty(of_x) or is_empty(of_weight) or is_empty(of_y)) return "";
  return why_no_windows(spec, std::span(x).subspan(2), std::span(weight).subspan(2), std::span(y).subspan(2));
}

std::string pooling(const LibrarySpec& spec, const TensorType& of_x, const TensorType& of_y) {
  const Sizes x = channels_first(spec, of_x), y = channels_first(spec, of_y);
  if (x[0] != y[0] or x[1] != y[1]) return fmt::format("{} samples of {} channels on one side, {} of {} on the other", x[0], x[1], y[0], y[1]);
  if (is_empty(of_x) or is_empty(of_y)) return "";
  return why_no_windows(spec, std::span(x).subspan(2), attribute_or(spec, "kernel", Sizes(x.size() - 2, 1)), std::span(y).subspan(2));
}

constexpr CallRules pool_rules(std::string_view operand, std::string_view result, const AttributeRule& last) {
  return {.operands = {spatial(operand, kOnF32)}, .results = {spatial(result, kOnF32, 0)}, .attributes = {kKernel, kStrides, kDilations, kPadsBegin, kChannelsLast, last}};
}

constexpr CallRules with_workspace(CallRules rules, FixedList<TensorRule, 10> operands, FixedList<TensorRule, 10> results) {
  rules.operands = operands;
  rules.results = results;
  return rules;
}

constexpr AttributeRule kCountPads = {.name = "count_pads", .least = 0, .most = 1};

}  // namespace

constinit const CallRules kMatmul = {.operands = {matrix("a", kOnOneDnn), matrix("b", kOnOneDnn, 0)}, .results = {matrix("y", kOnOneDnn, 0, true)}, .attributes = {kTa, kTb, kTf32}};
constinit const CallRules kConv = conv_rules("x", "w", "y", kOnOneDnn);
constinit const CallRules kConvInputGrad = conv_rules("dy", "w", "dx", kOnOneDnn);
constinit const CallRules kConvWeightGrad = conv_rules("x", "dy", "dw", kOnOneDnn);
constinit const CallRules kMaxPool = with_workspace(pool_rules("x", "y", kChannelsLast), {spatial("x", kOnF32)}, {spatial("y", kOnF32, 0), workspace(true)});
constinit const CallRules kMaxPoolGrad = with_workspace(pool_rules("dy", "dx", kChannelsLast), {spatial("dy", kOnF32), workspace(false)}, {spatial("dx", kOnF32, 0)});
constinit const CallRules kAvgPool = pool_rules("x", "y", kCountPads);
constinit const CallRules kAvgPoolGrad = pool_rules("dy", "dx", kCountPads);
constinit const CallRules kDeviceMatmul = {.operands = {matrix("a", kOnDevice), matrix("b", kOnDevice, 0)}, .results = {matrix("y", kOnDevice, 0, true)}, .attributes = {kTa, kTb, kTf32}};
constinit const CallRules kMatmulBias = {.operands = {matrix("a", kOnDevice), matrix("b", kOnDevice, 0), {.name = "bias", .types = kOnDevice}},
                                         .results = {matrix("y", kOnDevice, 0, true)},
                                         .attributes = {kTa, kTb, kTf32, {.name = "relu", .least = 0, .most = 1}}};
constinit const CallRules kMatmulBiasGrad = {.operands = {matrix("a", kOnDevice), matrix("b", kOnDevice, 0)},
                                             .results = {matrix("y", kOnDevice, 0, true), {.name = "bias gradient", .types = kOnDevice}},
                                             .attributes = {kTa, kTb, kTf32, {.name = "of", .least = 0, .most = 1}}};
constinit const CallRules kDeviceConv = conv_rules("x", "w", "y", kOnDevice);
constinit const CallRules kDeviceConvInputGrad = conv_rules("dy", "w", "dx", kOnDevice);
constinit const CallRules kDeviceConvWeightGrad = conv_rules("x", "dy", "dw", kOnDevice);

constinit const CallRules kAttention = {.operands = {of_heads("query", kHalves), of_heads("key", kHalves, 0), of_heads("value", kHalves, 0), of_heads("bias", kOnF32, -1, true)},
                                        .results = {of_heads("y", kHalves, 0), of_heads("statistics", kOnF32)},
                                        .attributes = {kCausal, kScaleBits}};
constinit const CallRules kAttentionGrad = {.operands = {of_heads("query", kHalves), of_heads("key", kHalves, 0), of_heads("value", kHalves, 0), of_heads("y", kHalves, 0), of_heads("dy", kHalves, 0),
                                                         of_heads("statistics", kOnF32), of_heads("bias", kOnF32, -1, true)},
                                            .results = {of_heads("dquery", kHalves, 0), of_heads("dkey", kHalves, 0), of_heads("dvalue", kHalves, 0)},
                                            .attributes = {kCausal, kScaleBits}};

constinit const CallRules kRecurrent = {.operands = {in_f32("x", 3), in_f32("w", 2), in_f32("r", 2), in_f32("bias", 1), in_f32("state bias", 1), in_f32("h", 2), in_f32("c", 2, true)},
                                        .results = {in_f32("y", 3), in_f32("last h", 2), in_f32("last c", 2, true)},
                                        .attributes = {kCell, kGates, kTf32}};
constinit const CallRules kRecurrentGrad = {.operands = {in_f32("x", 3), in_f32("w", 2), in_f32("r", 2), in_f32("bias", 1), in_f32("state bias", 1), in_f32("dy", 3), in_f32("first of the states and their gradients", 2),
                                                         in_f32("second of them", 2), in_f32("third of them", 2, true), in_f32("fourth of them", 2, true)},
                                            .results = {in_f32("dx", 3), in_f32("dw", 2), in_f32("dr", 2), in_f32("dbias", 1), in_f32("dstate_bias", 1), in_f32("dh", 2), in_f32("dc", 2, true)},
                                            .attributes = {kCell, kGates, kTf32}};

std::string matmul(const LibrarySpec& spec) { return product(spec); }

std::string matmul_bias(const LibrarySpec& spec) {
  if (std::string why = product(spec); not why.empty()) return why;
  const std::int64_t count = count_of(*spec.operands[2]), columns = spec.results[0].shape.back();
  return count == columns ? "" : fmt::format("a bias of {} elements for {} columns", count, columns);
}

std::string matmul_bias_grad(const LibrarySpec& spec) {
  if (std::string why = product(spec); not why.empty()) return why;
  const bool of_b = flag(spec, "of") != 0;
  const Sizes& summed = spec.operands[of_b ? 1 : 0]->shape;
  if (summed.size() != 2 or flag(spec, of_b ? "tb" : "ta") != (of_b ? 0 : 1)) return "the operand whose rows are summed is not stored row by row";
  const std::int64_t count = count_of(spec.results[1]);
  return count == summed[1] ? "" : fmt::format("a bias of {} elements for {} columns", count, summed[1]);
}

std::string conv(const LibrarySpec& spec) { return convolution(spec, *spec.operands[0], *spec.operands[1], spec.results[0]); }
std::string conv_input_grad(const LibrarySpec& spec) { return convolution(spec, spec.results[0], *spec.operands[1], *spec.operands[0]); }
std::string conv_weight_grad(const LibrarySpec& spec) { return convolution(spec, *spec.operands[0], spec.results[0], *spec.operands[1]); }
std::string attention(const LibrarySpec& spec) { return attended(spec, 3, spec.results[0].shape, spec.results[1].shape); }
std::string attention_grad(const LibrarySpec& spec) {
  for (std::size_t i = 0; i < spec.results.size(); ++i)
    if (spec.results[i].shape != spec.operands[i]->shape) return fmt::format("a gradient of {} for {}", shape_text(spec.results[i].shape), shape_text(spec.operands[i]->shape));
  if (spec.operands[3]->shape != spec.operands[4]->shape) return fmt::format("dy of {} for y of {}", shape_text(spec.operands[4]->shape), shape_text(spec.operands[3]->shape));
  return attended(spec, 6, spec.operands[3]->shape, spec.operands[5]->shape);
}
std::string recurrent(const LibrarySpec& spec) { return recurrent_layer(spec, false); }
std::string recurrent_grad(const LibrarySpec& spec) { return recurrent_layer(spec, true); }
std::string pool(const LibrarySpec& spec) { return pooling(spec, *spec.operands[0], spec.results[0]); }
std::string pool_grad(const LibrarySpec& spec) { return pooling(spec, spec.results[0], *spec.operands[0]); }

}  // namespace hone::fits
