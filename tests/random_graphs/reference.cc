#include "tests/random_graphs/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/op.h"
#include "ir/ops/ops.h"
#include "tests/random_graphs/random_choice.h"

namespace hone::test {

namespace {

constexpr int kRuns = 4, kMostRuns = 64;  // the latter before anything is called a difference
constexpr double kMargin = 4;             // times the largest movement seen

/// By how much, relatively, a node's result of this type may be off: the polynomials' 1e-6 for f32 (DESIGN.md, numerics), half a last place for what is rounded
/// to be stored.
double error_of(DType dtype) {
  switch (dtype) {
    case DType::kF64: return 4e-15;
    case DType::kF32: return 1e-6;
    case DType::kF16: return 0x1p-11;
    case DType::kBF16: return 0x1p-8;
    default: return is_float(dtype) ? 0x1p-2 : 0;  // the floats of 8 and 4 bits
  }
}

/// Other ops give elements of their operands, or whole numbers.
bool rounds(const OpDef& op) {
  static const std::vector<const OpDef*> kExact = {
      &op::neg,           &op::abs,      &op::sign,          &op::relu,       &op::maximum,          &op::minimum,   &op::clip,
      &op::stop_gradient, &op::where,    &op::floor,         &op::round,      &op::reshape,          &op::transpose, &op::broadcast_to,
      &op::concat,        &op::slice,    &op::pad,           &op::reduce_max, &op::reduce_min,       &op::gather,    &op::gather_elements,
      &op::gather_nd,     &op::max_pool, &op::max_pool_pick, &op::one_hot,    &op::reverse_sequence, &op::bit_cast};
  return std::find(kExact.begin(), kExact.end(), &op) == kExact.end();
}

/// By value: may it be off at all? Inputs are not, nor is what exact ops make of what is not.
std::vector<bool> rounded_values(const Graph& graph) {
  std::vector<bool> rounded(graph.value_count());
  for (const Node& node : graph.nodes()) {
    bool any = rounds(*node.op);
    for (const ValueId operand : node.operands) any = any or (operand.valid() and rounded[operand.index]);
    for (const ValueId result : node.results) rounded[result.index] = any;
  }
  return rounded;
}

bool is_among(const OpDef& op, std::initializer_list<const OpDef*> list) {
  return std::ranges::any_of(list, [&](const OpDef* one) { return *one == op; });
}

/// By value: what mixed precision may round: factors and results of products, where they come from and where they go as long as they are moved or added up.
std::vector<bool> narrow_values(const Graph& graph) {
  std::vector<bool> narrow(graph.value_count());
  const auto moves = [](const Node& node) { return is_among(*node.op, {&op::reshape, &op::transpose, &op::broadcast_to, &op::concat, &op::slice}); };
  const auto any = [&](const std::vector<ValueId>& values) { return std::ranges::any_of(values, [&](ValueId value) { return value.valid() and narrow[value.index]; }); };
  const auto mark = [&](const std::vector<ValueId>& values) {
    for (const ValueId value : values)
      if (value.valid() and graph.type(value).dtype == DType::kF32) narrow[value.index] = true;
  };
  for (const Node& node : graph.nodes())
    if (is_among(*node.op, {&op::matmul, &op::conv, &op::conv_input_grad, &op::conv_weight_grad})) mark(node.operands), mark(node.results);
  for (std::size_t i = graph.node_count(); i-- > 0;)
    if (const Node& node = graph.node(NodeId(i)); moves(node) and any(node.results)) mark(node.operands);
  for (const Node& node : graph.nodes())
    if ((moves(node) or *node.op == op::add) and any(node.operands)) mark(node.results);
  return narrow;
}

Tensor shaken(const Tensor& tensor, double error, RandomChoice& choice) {
  if (error == 0) return tensor;
  std::vector<double> values(static_cast<std::size_t>(tensor.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = tensor.at(static_cast<std::int64_t>(i)) * (1 + error * choice.signed_unit());
  return Tensor::of<double>(tensor.shape(), std::span<const double>(values)).cast(tensor.dtype());
}

/// With subnormal numbers as 0, which is what the processor takes them for while a plan runs.
Tensor flushed(const Tensor& tensor) {
  if (tensor.dtype() != DType::kF32) return tensor;
  const auto is_subnormal = [](float value) { return value != 0 and std::abs(value) < std::numeric_limits<float>::min(); };
  const auto from = tensor.data<float>();
  if (std::none_of(from.begin(), from.end(), is_subnormal)) return tensor;
  return Tensor::make(DType::kF32, tensor.shape(), [&](std::span<std::byte> bytes) {
    std::transform(from.begin(), from.end(), reinterpret_cast<float*>(bytes.data()), [&](float value) { return is_subnormal(value) ? 0.0f : value; });
  });
}

}  // namespace

Reference::Rounding Reference::rounding_of(const Graph& graph, Products products) {
  Rounding rounding{rounded_values(graph)};
  for (std::uint32_t i = 0; i < graph.value_count(); ++i) rounding.errors.push_back(error_of(graph.type(ValueId(i)).dtype));
  if (products == Products::kNarrow) {
    const std::vector<bool> narrow = narrow_values(graph);
    for (std::size_t i = 0; i < narrow.size(); ++i)
      if (narrow[i]) rounding.rounded[i] = true, rounding.errors[i] = error_of(DType::kBF16);
  }
  return rounding;
}

Reference::Reference(const Graph& graph, const Feeds& feeds, Products products) : graph_(graph), feeds_(feeds), interpreter_(graph, Precision::kFloat), results_(interpreter_.run(feeds)) {
  std::vector<const Graph*> graphs = {&graph};
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    roundings_.emplace(graphs[i], rounding_of(*graphs[i], products));
    for (const Node& node : graphs[i]->nodes())
      for (const auto& body : node.bodies) graphs.push_back(&*body);
  }
  for (const auto* list : {&results_.outputs, &results_.states})
    for (const NamedTensor& result : *list) {
      const auto count = static_cast<std::size_t>(result.value.element_count());
      ranges_.emplace_back(result.name, Range{std::vector<double>(count, HUGE_VAL), std::vector<double>(count, -HUGE_VAL), std::vector<bool>(count)});
      widen(ranges_.back().second, result.value, false);
    }
  shake(kRuns);
}

void Reference::widen(Range& range, const Tensor& values, bool numbers_only) const {
  for (std::size_t i = 0; i < range.low.size(); ++i) {
    const double value = values.at(static_cast<std::int64_t>(i));
    if (numbers_only and not std::isfinite(value)) continue;
    range.is_nan[i] = range.is_nan[i] or std::isnan(value);
    range.low[i] = std::fmin(range.low[i], value), range.high[i] = std::fmax(range.high[i], value);
  }
}

void Reference::shake(int runs) {
  // In every second run a value is off by the same wherever it is read, as it is in memory: what is equal stays equal. In the others each reader sees another
  // value, as where a product is not rounded before it is added; but no number that is there becomes NaN by that.
  for (int run = 0; run < runs; ++run) {
    const bool by_reader = runs_ % 2 == 1, flushes = runs_ % 4 >= 2;
    RandomChoice choice(runs_++);
    const auto before = [&](const Graph& graph, const Node& node, std::vector<Tensor>& operands) {
      const Rounding& rounding = roundings_.at(&graph);
      const bool sums = node.op->scalar == nullptr and rounds(*node.op);  // where partial sums are rounded, whatever the terms are
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (not node.operands[i].valid()) continue;
        const std::size_t value = node.operands[i].index;
        if (sums or (by_reader and rounding.rounded[value])) operands[i] = shaken(operands[i], rounding.errors[value], choice);
        if (flushes) operands[i] = flushed(operands[i]);
      }
    };
    const auto after = [&](const Graph& graph, const Node& node, std::vector<Tensor>& results) {
      const Rounding& rounding = roundings_.at(&graph);
      for (std::size_t k = 0; k < results.size() and not by_reader; ++k) {
        const std::size_t value = node.results[k].index;
        const bool is_off = rounds(*node.op) or rounding.errors[value] > error_of(results[k].dtype());  // what is narrow is rounded where it is moved, too
        if (is_off) results[k] = shaken(results[k], rounding.errors[value], choice);
      }
    };
    const GraphResults found = interpreter_.run(feeds_, results_.bindings, NodeHooks{before, after});
    std::size_t next = 0;
    for (const auto* list : {&found.outputs, &found.states})
      for (const NamedTensor& result : *list) widen(ranges_[next++].second, result.value, by_reader);
  }
}

Reference::Range& Reference::range_of(const std::string& name) {
  for (auto& [other, range] : ranges_)
    if (other == name) return range;
  HONE_CHECK(false, "no such result: " + name);
}

std::string Reference::difference(const NamedTensor& found) {
  const Tensor& wanted = results_[found.name];
  if (found.value.dtype() != wanted.dtype() or found.value.shape() != wanted.shape()) return found.name + " has another type or shape";
  Range& range = range_of(found.name);
  const double error = error_of(wanted.dtype());
  const auto is_explained = [&](std::size_t i) {
    const double value = found.value.at(static_cast<std::int64_t>(i)), low = range.low[i], high = range.high[i];
    if (std::isnan(value)) return bool(range.is_nan[i]);
    if (low > high) return false;  // never a number
    if (std::isinf(low) or std::isinf(high)) return std::isinf(value) ? value == low or value == high : value >= std::fmin(low, 0) or low != high;
    const double slack = kMargin * (high - low) + error * std::fmax(std::abs(low), std::abs(high)) + 1e-30;  // numbers that small may be flushed to 0
    return low - slack <= value and value <= high + slack;
  };
  for (std::size_t i = 0; i < range.low.size(); ++i) {
    while (not is_explained(i)) {
      if (runs_ >= kMostRuns)
        return fmt::format("{}: element {} is {}, the interpreter has {}, and rounding gives {} to {}", found.name, i, found.value.at(static_cast<std::int64_t>(i)),
                           wanted.at(static_cast<std::int64_t>(i)), range.low[i], range.high[i]);
      shake(kRuns);
    }
  }
  return "";
}

}  // namespace hone::test
