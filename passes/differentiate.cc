// Reverse-mode differentiation over the whole graph: one walk backwards, each op's gradient formula appended as ordinary nodes.
#include <fmt/format.h>

#include "ir/op.h"
#include "passes/passes.h"

namespace hone {

namespace {

/// For each value: does it depend on one of `wrt` through floats?
std::vector<bool> find_dependents(const Graph& graph, std::span<const ValueId> wrt) {
  std::vector<bool> depends(graph.value_count());
  for (const ValueId value : wrt) depends[value.index] = true;
  for (const Node& node : graph.nodes()) {
    bool any = false;
    for (const ValueId operand : node.operands) any = any or (operand.valid() and depends[operand.index]);
    for (const ValueId result : node.results) depends[result.index] = depends[result.index] or (any and is_float(graph.type(result).dtype));
  }
  return depends;
}

Val total(const std::vector<Val>& parts) {
  Val sum = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) sum = sum + parts[i];
  return sum;
}

}  // namespace

std::vector<ValueId> differentiate(Graph& graph, ValueId of, std::span<const ValueId> wrt) {
  const std::vector<bool> depends = find_dependents(graph, wrt);
  const std::size_t forward_nodes = graph.node_count();  // what is appended from here on is not walked
  Builder builder(graph);
  std::vector<std::vector<Val>> flows(graph.value_count());  // by value: what flows into it
  if (depends[of.index]) {
    const Builder::Scope scope(builder, Loc{.derived = "start of the backward pass"}, Part::kBackward);
    flows[of.index].push_back(full(builder, 1, graph.type(of).dtype, graph.type(of).shape));
  }
  Diags problems;
  for (std::size_t i = forward_nodes; i-- > 0;) {
    const Node& node = graph.node(NodeId(i));
    bool wanted = false, reached = false;
    for (const ValueId operand : node.operands) wanted = wanted or (operand.valid() and depends[operand.index]);
    for (const ValueId result : node.results) reached = reached or not flows[result.index].empty();
    if (not wanted or not reached or not node.op->grad.reason.empty()) continue;
    if (node.op->grad.formula == nullptr) {
      problems.error(Code::kNoGradient, fmt::format("{} has no gradient", node.op->name), node.loc, {"freeze the weights before it, or replace the operator"});
      continue;
    }
    const Builder::Scope scope(builder, derived_from(node.loc, "gradient"), Part::kBackward);
    std::vector<Val> dys;
    for (const ValueId result : node.results) dys.push_back(flows[result.index].empty() ? Val{} : total(flows[result.index]));
    Grad grad(builder, node, dys);
    node.op->grad.formula(grad);
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      if (not node.operands[k].valid() or not depends[node.operands[k].index]) continue;
      auto& into = flows[node.operands[k].index];
      into.insert(into.end(), grad.flows()[k].begin(), grad.flows()[k].end());
    }
    for (const ValueId result : node.results) flows[result.index].clear();
  }
  problems.throw_if_errors();
  std::vector<ValueId> gradients;
  for (const ValueId value : wrt) {
    const Builder::Scope scope(builder, Loc{.derived = "gradient of " + graph.value(value).name}, Part::kBackward);
    gradients.push_back(flows[value.index].empty() ? ValueId{} : total(flows[value.index]).id());
  }
  return gradients;
}

}  // namespace hone
