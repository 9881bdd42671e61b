#include "frontend/onnx/constant_value.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "ir/kernel/interpret.h"
#include "ir/op.h"
#include "ir/ops/random.h"

namespace hone::onnx {

namespace {

constexpr std::int64_t kMostFoldedElements = 64;
constexpr std::size_t kMostNodes = 64;

bool is_small(const Type& type) {
  std::int64_t count = 1;
  for (const Dim& extent : type.shape) {
    if (not extent.is_constant() or extent.value() < 0 or extent.value() > kMostFoldedElements) return false;
    count *= std::max<std::int64_t>(extent.value(), 1);
    if (count > kMostFoldedElements) return false;
  }
  return true;
}

bool has_symbols(const Attrs& attrs) {
  return std::any_of(attrs.begin(), attrs.end(), [](const auto& attr) {
    const Shape* shape = std::get_if<Shape>(&attr.second.value);
    return shape != nullptr and not is_constant(*shape);
  });
}

/// What is drawn is no constant, although nothing is read for it.
bool can_run(const Graph& graph, const Node& node) {
  return not draws(*node.op) and (node.op->scalar != nullptr or node.op->compute != nullptr or node.op->host != nullptr) and not has_symbols(node.attrs) and
         std::all_of(node.results.begin(), node.results.end(), [&](ValueId id) { return is_small(graph.type(id)); });
}

/// What is known of `value` without running anything.
std::optional<Tensor> given(const Graph& graph, ValueId id) {
  if (const Tensor* constant = graph.constant_of(id)) return *constant;
  const Value& value = graph.value(id);
  if (not value.known or not std::all_of(value.known->begin(), value.known->end(), [](const Dim& dim) { return dim.is_constant(); })) return std::nullopt;
  const Ints numbers = constant_shape(*value.known);
  return Tensor::of<std::int64_t>(constant_shape(value.type.shape), std::span(numbers)).cast(value.type.dtype);
}

/// What `wanted` is computed from, and by which nodes.
struct Computation {
  std::map<ValueId, Tensor> values;
  std::set<NodeId> nodes;  // their order is the graph's
};

/// Nothing if it takes more than constants.
std::optional<Computation> computation_of(const Graph& graph, ValueId wanted) {
  Computation computation;
  std::vector<ValueId> open = {wanted};
  while (not open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (auto tensor = given(graph, id)) {
      if (tensor->element_count() > kMostFoldedElements) return std::nullopt;
      computation.values.insert_or_assign(id, *std::move(tensor));
      continue;
    }
    const NodeId producer = graph.value(id).producer;
    if (not producer.valid() or not can_run(graph, graph.node(producer)) or computation.nodes.size() >= kMostNodes) return std::nullopt;
    if (computation.nodes.insert(producer).second)
      for (const ValueId operand : graph.node(producer).operands)
        if (operand.valid()) open.push_back(operand);
  }
  return computation;
}

}  // namespace

std::optional<Tensor> constant_value(const Graph& graph, ValueId value) {
  if (auto tensor = given(graph, value)) return tensor;
  if (not is_small(graph.type(value))) return std::nullopt;
  auto computation = computation_of(graph, value);
  if (not computation) return std::nullopt;
  Interpreter interpreter(graph);
  for (const NodeId id : computation->nodes) {
    const Node& node = graph.node(id);
    std::vector<Tensor> operands;
    for (const ValueId operand : node.operands) operands.push_back(operand.valid() ? computation->values.at(operand) : Tensor());
    const std::vector<Tensor> results = interpreter.run_node(id, operands, {});
    for (std::size_t i = 0; i < results.size(); ++i) computation->values.insert_or_assign(node.results[i], results[i]);
  }
  return computation->values.at(value);
}

}  // namespace hone::onnx
