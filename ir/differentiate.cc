#include "ir/differentiate.h"

#include <fmt/format.h>

#include "ir/op.h"

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

/// Half floats are added as f32, and their sum rounded once.
Val total(const std::vector<Val>& parts) {
  if (parts.size() == 1) return parts[0];
  const DType dtype = parts[0].dtype(), wide = info(dtype).arithmetic;
  Val sum = cast(parts[0], wide);
  for (std::size_t i = 1; i < parts.size(); ++i) sum = sum + cast(parts[i], wide);
  return cast(sum, dtype);
}

}  // namespace

std::vector<ValueId> differentiate(Builder& builder, std::span<const Seed> seeds, std::span<const ValueId> wrt) {
  const Graph& graph = builder.graph();
  const std::vector<bool> depends = find_dependents(graph, wrt);
  const std::size_t forward_nodes = graph.node_count();  // what is appended from here on is not walked
  std::vector<std::vector<Val>> flows(graph.value_count());  // by value: what flows into it
  for (const Seed& seed : seeds)
    if (depends[seed.of.index]) flows[seed.of.index].push_back(builder.val(seed.gradient));
  Diags problems;
  for (std::size_t i = forward_nodes; i-- > 0;) {
    const Node& node = graph.node(NodeId(i));
    std::vector<bool> wanted(node.operands.size());
    bool any = false, reached = false;
    for (std::size_t k = 0; k < wanted.size(); ++k) any |= wanted[k] = node.operands[k].valid() and depends[node.operands[k].index];
    for (const ValueId result : node.results) reached = reached or not flows[result.index].empty();
    if (not any or not reached or not node.op->grad.reason.empty()) continue;
    if (node.op->grad.formula == nullptr) {
      problems.error(Code::kNoGradient, fmt::format("{} has no gradient", node.op->name), node.loc, {"freeze the weights before it, or replace the operator"});
      continue;
    }
    const Builder::Scope scope(builder, derived_from(node.loc, "gradient"), Part::kBackward);
    std::vector<Val> dys;
    for (const ValueId result : node.results) dys.push_back(flows[result.index].empty() ? Val{} : total(flows[result.index]));
    Grad grad(builder, node, dys, wanted);
    node.op->grad.formula(grad);
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      if (not wanted[k]) continue;
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

std::vector<ValueId> differentiate(Graph& graph, ValueId of, std::span<const ValueId> wrt) {
  Builder builder(graph);
  Seed seed{of, {}};
  {
    const Builder::Scope scope(builder, Loc{.derived = "start of the backward pass"}, Part::kBackward);
    seed.gradient = full(builder, 1, graph.type(of).dtype, graph.type(of).shape).id();
  }
  return differentiate(builder, std::span(&seed, 1), wrt);
}

}  // namespace hone
