#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/op.h"
#include "ir/ops/ops.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "passes/target.h"

namespace hone {

namespace {

/// By its place in the op's list; of any number at its end, each has a number.
std::string name_at(std::span<const std::string_view> names, std::size_t i) {
  const std::string_view name = names[std::min(i, names.size() - 1)];
  return name.ends_with("...") ? fmt::format("{}.{}", name.substr(0, name.size() - 3), i + 1 - names.size()) : std::string(name);
}

/// What the node lowers to, as a graph of its own.
std::unique_ptr<Graph> body_of(const Graph& graph, const Node& node) {
  auto body = std::make_unique<Graph>();
  body->name = node.op->name;
  Builder builder(*body);
  const Builder::Scope scope(builder, derived_from(node.loc, "part of " + std::string(node.op->name)), node.part);
  Lower lower{builder, node, node.attrs, {}};
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    lower.operands.push_back(node.operands[i].valid() ? builder.input(Role::kInput, name_at({node.op->inputs.begin(), node.op->inputs.end()}, i), graph.type(node.operands[i])) : Val());
  const std::vector<Val> results = node.op->lower(lower);
  for (std::size_t i = 0; i < results.size(); ++i) builder.output(name_at({node.op->results.begin(), node.op->results.end()}, i), results[i]);
  (void)expand(*body);
  optimize(*body);  // because nobody has looked at it yet
  return body;
}

/// The node's, of which rows are given those that are whole numbers.
Attrs attributes_of(const Node& node, std::string row) {
  Attrs attrs;
  for (const auto& [name, attr] : node.attrs)
    if (attr.spec->kind != AttrKind::kFloat and attr.spec->kind != AttrKind::kDType) attrs.set(attr);
  attrs.set(kRow = std::move(row));
  if (std::ranges::any_of(node.op->attrs, [](const AttrRef& attr) { return attr.spec->name == kScale.name; })) attrs.set(kScaleBits = static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(static_cast<float>(node.attrs[kScale]))));
  return attrs;
}

/// Nodes that are whole for a row's sake become its calls, with what they lower to beside them.
Changed make_calls(Graph& graph, const Target& target) {
  return Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (not node.op->whole) return false;
    RowChoice choice = target.choose_row(rewriter.old(), id);
    if (choice.row.empty()) return false;
    std::vector<Val> operands;
    for (const ValueId operand : node.operands)
      if (operand.valid()) operands.push_back(rewriter.mapped(operand));
    std::vector<std::unique_ptr<Graph>> bodies;
    bodies.push_back(body_of(rewriter.old(), node));
    const std::vector<Val> results = rewriter.builder().add(op::library_call, operands, attributes_of(node, std::move(choice.row)), std::move(bodies));
    for (std::size_t i = 0; i < results.size(); ++i) rewriter.replace(node.results[i], results[i]);
    return true;
  });
}

}  // namespace

Changed select_library(Graph& graph, const Target& target) {
  const Changed calls = make_calls(graph, target), others = expand(graph);
  const Changed inside = Rewriter::in_bodies(graph, [&target](Graph& body) { return select_library(body, target); });
  return calls | others | inside | Rewriter::rewrite(graph, [&](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    RowChoice choice = target.choose_row(rewriter.old(), id);
    if (choice.row.empty()) return false;
    std::vector<Val> operands;
    for (const ValueId operand : node.operands) operands.push_back(rewriter.mapped(operand));
    Attrs attrs = node.attrs;
    attrs.set(kRow = std::move(choice.row));
    const std::vector<Val> results = node.op->build_all(std::move(operands), std::move(attrs));
    for (std::size_t i = 0; i < results.size(); ++i) rewriter.replace(node.results[i], results[i]);
    return true;
  });
}

Changed inline_calls(Graph& graph) {
  const Changed inside = Rewriter::in_bodies(graph, inline_calls);
  return inside | Rewriter::rewrite(graph, [](Rewriter& rewriter, NodeId id) {
    const Node& node = rewriter.node(id);
    if (node.op->region != Region::kCall) return false;
    std::vector<Val> operands;
    for (const ValueId operand : node.operands) operands.push_back(rewriter.mapped(operand));
    const std::vector<Val> results = append_graph(rewriter.builder(), *node.bodies[0], operands);
    for (std::size_t i = 0; i < results.size(); ++i) rewriter.replace(node.results[i], results[i]);
    return true;
  });
}

}  // namespace hone
