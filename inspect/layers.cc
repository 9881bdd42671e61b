#include "inspect/layers.h"

#include <algorithm>
#include <set>

#include "ir/op.h"
#include "ir/ops/ops.h"

namespace hone {

namespace {

class Counter {
 public:
  explicit Counter(const Graph& graph) : graph_(graph), carried_(graph.value_count()) {
    for (const Input& input : graph.inputs()) {
      if (input.role == Role::kInput) layers_.list.push_back({input.name, {}, graph.type(input.value), 0});
      if (input.role == Role::kWeight) carried_[input.value.index].trainable = element_count(graph.type(input.value).shape).value();
    }
    for (const Node& node : graph.nodes())
      if (not node.results.empty()) add(node);
  }
  Layers take() && { return std::move(layers_); }

 private:
  struct Count {
    std::int64_t trainable = 0, fixed = 0;
  };

  /// A reshaped weight is still that weight: parameters travel through nodes that read nothing else.
  void add(const Node& node) {
    Count own;
    bool reads_data = false;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId operand = node.operands[i];
      if (not operand.valid()) continue;
      const std::int64_t count = carried_[operand.index].trainable;
      reads_data = reads_data or (count == 0 and graph_.constant_of(operand) == nullptr);
      if (count == 0 or not counted_.insert(operand).second) continue;
      (*node.op == op::batch_norm and i >= 3 ? own.fixed : own.trainable) += count;
    }
    if (not reads_data) {
      carried_[node.results[0].index] = own;
      return;
    }
    layers_.trainable += own.trainable;
    layers_.fixed += own.fixed;
    if (is_float(graph_.type(node.results[0]).dtype)) add_to_layer(node, own.trainable + own.fixed);
  }

  void add_to_layer(const Node& node, std::int64_t parameters) {
    const std::string name = layer_of(graph_, node);
    if (layers_.list.empty() or layers_.list.back().node != name or layers_.list.back().ops.empty()) layers_.list.push_back({name, {}, {}, 0});
    Layer& layer = layers_.list.back();
    if (std::ranges::find(layer.ops, node.op->name) == layer.ops.end()) layer.ops.emplace_back(node.op->name);
    layer.type = graph_.type(node.results[0]);
    layer.parameters += parameters;
  }

  const Graph& graph_;
  Layers layers_;
  std::vector<Count> carried_;  // by value
  std::set<ValueId> counted_;
};

}  // namespace

std::string layer_of(const Graph& graph, const Node& node) { return node.loc.node.empty() and not node.results.empty() ? graph.value(node.results[0]).name : node.loc.node; }

Layers layers_of(const Graph& graph) { return Counter(graph).take(); }

}  // namespace hone
