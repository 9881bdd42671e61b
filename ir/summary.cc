#include "ir/summary.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "ir/op.h"
#include "ir/ops/ops.h"

namespace hone {

namespace {

/// "1,234,567"
std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string keras_shape(const Type& type) {
  std::string text;
  for (const Dim& dim : type.shape) text += (text.empty() ? "" : ", ") + (dim.is_symbol() ? "None" : dim.text());
  return "(" + text + ")";
}

struct Count {
  std::int64_t trainable = 0, fixed = 0;
};

struct Row {
  std::string name, shape;
  std::int64_t parameters;
};

std::string cut(const std::string& text, std::size_t width) { return text.size() <= width ? text : text.substr(0, width - 3) + "..."; }

/// A reshape or add of a bias is no layer of its own to a person, unless it carries weights or is named.
bool is_shape_arithmetic(const Graph& graph, const Node& node) { return not is_float(graph.type(node.results[0]).dtype); }

}  // namespace

std::string model_summary(const Graph& graph) {
  Count total;
  std::set<ValueId> counted;
  std::vector<Row> rows;
  for (const Input& input : graph.inputs())
    if (input.role == Role::kInput) rows.push_back({input.name + " (input)", keras_shape(graph.type(input.value)), 0});
  // A reshaped weight is still that weight: parameters travel through nodes that read nothing else.
  std::vector<Count> carried(graph.value_count());
  for (const Input& input : graph.inputs())
    if (input.role == Role::kWeight) carried[input.value.index].trainable = element_count(graph.type(input.value).shape).value();
  for (const Node& node : graph.nodes()) {
    Count own;
    bool reads_data = false;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId operand = node.operands[i];
      if (not operand.valid()) continue;
      const std::int64_t count = carried[operand.index].trainable;
      reads_data = reads_data or (count == 0 and graph.constant_of(operand) == nullptr);
      if (count == 0 or not counted.insert(operand).second) continue;
      (*node.op == op::batch_norm and i >= 3 ? own.fixed : own.trainable) += count;
    }
    if (not reads_data and not node.results.empty()) {
      carried[node.results[0].index] = own;
      continue;
    }
    total.trainable += own.trainable;
    total.fixed += own.fixed;
    if (is_shape_arithmetic(graph, node)) continue;
    const std::string& value_name = graph.value(node.results[0]).name;
    const std::string& name = not node.loc.node.empty() ? node.loc.node : value_name;
    rows.push_back({fmt::format("{} ({})", printable(name), node.op->name), keras_shape(graph.type(node.results[0])), own.trainable + own.fixed});
  }
  const std::string line(88, '_');
  std::string text = fmt::format("Model: \"{}\"\n{}\n {:<50}{:<24}{:<12}\n{}\n", printable(graph.name), line, "Layer (type)", "Output Shape", "Param #", std::string(88, '='));
  for (const Row& row : rows) text += fmt::format(" {:<50}{:<24}{:<12}\n", cut(row.name, 49), cut(row.shape, 23), grouped(row.parameters));
  text += fmt::format("{}\nTotal params: {}\nTrainable params: {}\nNon-trainable params: {}\n{}\n", std::string(88, '='), grouped(total.trainable + total.fixed), grouped(total.trainable), grouped(total.fixed), line);
  return text;
}

}  // namespace hone
