#include "frontend/onnx/constant_value.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "ir/kernel/interpret.h"
#include "ir/op.h"

namespace hone::onnx {

namespace {

constexpr std::int64_t kMostElements = 64;
constexpr std::size_t kMostNodes = 64;

bool is_small(const Type& type) {
  std::int64_t count = 1;
  for (const Dim& extent : type.shape) {
    if (not extent.is_constant() or extent.value() < 0 or extent.value() > kMostElements) return false;
    count *= std::max<std::int64_t>(extent.value(), 1);
    if (count > kMostElements) return false;
  }
  return true;
}

bool can_run(const Graph& graph, const Node& node) {
  return (node.op->scalar != nullptr or node.op->compute != nullptr) and
         std::all_of(node.results.begin(), node.results.end(), [&](ValueId id) { return is_small(graph.type(id)); });
}

/// The nodes that `value` is computed by, in order; nothing if they need more than constants.
std::optional<std::set<NodeId>> nodes_behind(const Graph& graph, ValueId value) {
  std::set<NodeId> nodes;
  std::vector<ValueId> open = {value};
  while (not open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (const Tensor* constant = graph.constant_of(id)) {
      if (constant->element_count() > kMostElements) return std::nullopt;
      continue;
    }
    const NodeId producer = graph.value(id).producer;
    if (not producer.valid() or not can_run(graph, graph.node(producer)) or nodes.size() >= kMostNodes) return std::nullopt;
    if (nodes.insert(producer).second)
      for (const ValueId operand : graph.node(producer).operands)
        if (operand.valid()) open.push_back(operand);
  }
  return nodes;
}

}  // namespace

std::optional<Tensor> constant_value(const Graph& graph, ValueId value) {
  if (const Tensor* constant = graph.constant_of(value)) return *constant;
  if (not is_small(graph.type(value))) return std::nullopt;
  const auto nodes = nodes_behind(graph, value);
  if (not nodes) return std::nullopt;
  Interpreter interpreter(graph);
  std::map<ValueId, Tensor> values;
  for (const NodeId id : *nodes) {
    const Node& node = graph.node(id);
    std::vector<Tensor> operands;
    for (const ValueId operand : node.operands) {
      const Tensor* constant = operand.valid() ? graph.constant_of(operand) : nullptr;
      operands.push_back(constant != nullptr ? *constant : operand.valid() ? values.at(operand) : Tensor());
    }
    const std::vector<Tensor> results = interpreter.run_node(id, operands, {});
    for (std::size_t i = 0; i < results.size(); ++i) values.insert_or_assign(node.results[i], results[i]);
  }
  return values.at(value);
}

}  // namespace hone::onnx
