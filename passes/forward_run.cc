#include "passes/forward_run.h"

#include <algorithm>
#include <cmath>

#include "base/bind_symbols.h"
#include "base/philox.h"
#include "ir/op.h"

namespace hone {

namespace {

/// `element(i)` for every element, as f64.
template <typename Element>
Tensor filled_f64(const std::vector<std::int64_t>& shape, Element&& element) {
  std::vector<double> values(static_cast<std::size_t>(checked_element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element(static_cast<std::int64_t>(i));
  return Tensor::of<double>(shape, std::span<const double>(values));
}

/// Everything but f16 and bf16, which stay storage formats, is f64 where it was f32.
DType stored_type(const Type& type) { return storage_type(type.dtype, Precision::kDouble); }

Tensor made_up(const Input& input, const Type& type, std::uint64_t seed, const DimBindings& sizes, MadeUp kind) {
  const std::vector<std::int64_t> shape = evaluate(type.shape, sizes);
  if (is_float(type.dtype)) {
    const Tensor random = random_direction(shape, seed);
    const auto positive = [&](std::int64_t i) { return 0.625 + 0.375 * random.at(i); };
    return (kind == MadeUp::kPositive ? filled_f64(shape, positive) : random).cast(stored_type(type));
  }
  double low = 0, high = 2;
  if (input.bounds) {
    low = static_cast<double>(input.bounds->first.evaluate(sizes));
    high = static_cast<double>(input.bounds->second.evaluate(sizes));
  }
  const auto pick = [&](std::int64_t i) { return low + std::floor((high - low) * philox_uniform(seed, 1, static_cast<std::uint64_t>(i)).first); };
  return filled_f64(shape, pick).cast(type.dtype);
}

}  // namespace

Tensor random_direction(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  return filled_f64(shape, [&](std::int64_t i) { return 2 * philox_uniform(seed, 0, static_cast<std::uint64_t>(i)).first - 1; });
}

Tensor moved(const Tensor& x, const Tensor& direction, double step) {
  return filled_f64(x.shape(), [&](std::int64_t i) { return x.at(i) + step * direction.at(i); });
}

ForwardRun::ForwardRun(const Graph& graph, std::int64_t size, MadeUp inputs) : graph_(graph), interpreter_(graph, Precision::kDouble), values_(graph.value_count()) {
  for (const Input& input : graph.inputs())
    for (const Dim& dim : graph.type(input.value).shape)
      for (const std::string& symbol : dim.symbols()) sizes_.try_emplace(symbol, size);
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const Input& input = graph.inputs()[i];
    const Type& type = graph.type(input.value);
    values_[input.value.index] = input.data ? input.data->cast(stored_type(type)) : made_up(input, type, 100 + i, sizes_, inputs);
  }
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    std::vector<Tensor> results = run(NodeId(i), operands_of(node));
    for (std::size_t k = 0; k < results.size(); ++k) values_[node.results[k].index] = std::move(results[k]);
  }
}

std::vector<Tensor> ForwardRun::operands_of(const Node& node) const {
  std::vector<Tensor> operands;
  for (const ValueId operand : node.operands) operands.push_back(operand.valid() ? values_[operand.index] : Tensor());
  return operands;
}

double ForwardRun::value_with(ValueId result, ValueId input, Tensor data) {
  std::vector<Tensor> before = values_;  // tensors share their bytes
  std::vector<bool> changed(values_.size());
  values_[input.index] = std::move(data);
  changed[input.index] = true;
  for (std::size_t i = 0; i < graph_.node_count(); ++i) {
    const Node& node = graph_.node(NodeId(i));
    if (std::none_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return operand.valid() and changed[operand.index]; })) continue;
    std::vector<Tensor> results = run(NodeId(i), operands_of(node));
    for (std::size_t k = 0; k < results.size(); ++k) {
      values_[node.results[k].index] = std::move(results[k]);
      changed[node.results[k].index] = true;
    }
  }
  const double value = values_[result.index].at(0);
  values_ = std::move(before);
  return value;
}

}  // namespace hone
