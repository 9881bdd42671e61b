#include "tests/passes/pass_case.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace hone::test {

Graph small_graph(std::string_view inputs, std::string_view statements) {
  std::string lines(statements);
  for (std::size_t at; (at = lines.find("; ")) != std::string::npos;) lines.replace(at, 2, "\n");
  return parse_graph(fmt::format("graph g({}) {{\n{}\noutput \"y\" %y\n}}\n", inputs, lines));
}

std::string expression(const Graph& graph, ValueId value) {
  if (not value.valid()) return "-";
  if (const auto number = graph.scalar_constant(value)) return fmt::format("{}", *number);
  if (const Input* input = graph.input_of(value)) return input->role == Role::kConstant ? "constant" : input->name;
  const Node& node = graph.producer(value);
  std::string text(node.op->name);
  for (std::size_t i = 0; i < node.operands.size(); ++i) text += (i == 0 ? "(" : ", ") + expression(graph, node.operands[i]);
  text += (node.operands.empty() ? "()" : ")") + node.attrs.text();
  const std::uint32_t result = graph.value(value).result;
  return result == 0 ? text : fmt::format("{}.{}", text, result);
}

std::string expression(const Graph& graph) { return expression(graph, graph.find_output("y")->value); }

void expect_pass(Pass pass, const PassCase& pass_case) {
  SCOPED_TRACE(pass_case.says);
  Graph graph = small_graph(pass_case.inputs, pass_case.statements);
  const std::string before = print(graph);
  const Changed changed = pass(graph);
  verify(graph);
  if (pass_case.becomes.empty()) {
    EXPECT_EQ(print(graph), before);
    EXPECT_EQ(changed, Changed::kNo);
    return;
  }
  EXPECT_EQ(expression(graph), pass_case.becomes);
  EXPECT_EQ(changed, Changed::kYes);
  EXPECT_EQ(pass(graph), Changed::kNo) << "a second run changes something again";
}

}  // namespace hone::test
