#include "ir/dot.h"

#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "ir/op.h"

namespace hone {

namespace {

/// Quotes, backslashes and control characters cannot end a DOT string.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : printable(text, 120)) safe += (c == '"' or c == '\\' or c == '<' or c == '>' or c == '{' or c == '}' or c == '|') ? std::string("\\") + c : std::string(1, c);
  return safe;
}

std::string input_box(const Graph& graph, const Input& input) {
  return fmt::format("  v{} [shape=box, style=\"rounded,filled\", fillcolor=\"{}\", label=\"{}\\n{}\"];\n", input.value.index, input.role == Role::kInput ? "#ffffff" : "#e5e7eb",
                     escaped(input.name.empty() ? to_string(input.role) : input.name), escaped(to_string(graph.type(input.value))));
}

}  // namespace

std::string to_dot(const Graph& graph) {
  std::string text = fmt::format("digraph \"{}\" {{\n  rankdir=TB;\n  node [fontname=\"Helvetica\", fontsize=10];\n  edge [fontname=\"Helvetica\", fontsize=8];\n", escaped(graph.name));
  const auto is_number = [&](ValueId value) { return graph.scalar_constant(value).has_value(); };
  for (const Input& input : graph.inputs())
    if (not is_number(input.value)) text += input_box(graph, input);
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    std::string label = escaped(node.op->name);
    for (const ValueId operand : node.operands)
      if (operand.valid() and is_number(operand)) label += fmt::format(" {}", *graph.scalar_constant(operand));
    if (not node.attrs.empty()) label += "\\n" + escaped(node.attrs.text());
    if (not node.loc.empty()) label += "\\n" + escaped(to_string(node.loc));
    text += fmt::format("  n{} [shape=box, style=filled, fillcolor=\"{}\", label=\"{}\"];\n", i, kPartColours[static_cast<int>(node.part)], label);
    for (const ValueId operand : node.operands) {
      if (not operand.valid() or is_number(operand)) continue;
      const Value& value = graph.value(operand);
      const std::string from = value.producer.valid() ? fmt::format("n{}", value.producer.index) : fmt::format("v{}", operand.index);
      text += fmt::format("  {} -> n{} [label=\"{}\"];\n", from, i, value.producer.valid() ? escaped(to_string(value.type)) : "");
    }
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const Output& output = graph.outputs()[i];
    const Value& value = graph.value(output.value);
    text += fmt::format("  o{} [shape=ellipse, label=\"{}\"];\n  {}{} -> o{};\n", i, escaped(output.name), value.producer.valid() ? "n" : "v",
                        value.producer.valid() ? value.producer.index : output.value.index, i);
  }
  for (const Alias& alias : graph.aliases()) {
    const Value& value = graph.value(alias.value);
    text += fmt::format("  {}{} -> v{} [style=dashed, constraint=false, color=\"#16a34a\"];\n", value.producer.valid() ? "n" : "v",
                        value.producer.valid() ? value.producer.index : alias.value.index, alias.state.index);
  }
  return text + "}\n";
}

}  // namespace hone
