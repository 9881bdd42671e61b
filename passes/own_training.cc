// For models that say themselves how they are trained.
#include <fmt/format.h>

#include <set>

#include "ir/kernel/interpret.h"
#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

namespace {

/// It is run while compiling: what it may cost is limited.
void require_small(const Graph& graph) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 28;
  for (const Node& node : graph.nodes()) {
    if (node.op->region != Region::kNone or node.op->binds)
      throw Error(Code::kDynamic, "the initialization graph has a loop, a branch or a size that is known only when it runs", node.loc,
                  {"it is run when compiling, and holds nodes of fixed sizes only"});
    for (const ValueId result : node.results)
      if (const Shape& shape = graph.type(result).shape; not is_constant(shape) or element_count(shape).value() > kMostElements)
        throw Error(Code::kTooLarge, fmt::format("the initialization graph makes {}; the limit is 2^28 elements", to_string(graph.type(result))), node.loc);
  }
}

}  // namespace

void add_gradient_norms(Graph& graph) {
  Builder builder(graph);
  std::set<ValueId> updated, done;
  for (const Alias& alias : graph.aliases()) updated.insert(alias.state);
  const std::size_t nodes = graph.node_count();
  for (std::size_t n = 0; n < nodes; ++n) {
    const Node& node = graph.node(NodeId(n));
    if (*node.op != op::gradient) continue;
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      const ValueId x = node.operands[i + 1];
      if (not updated.contains(x) or not done.insert(x).second) continue;
      const Input& weight = *graph.input_of(x);
      const Builder::Scope scope(builder, Loc{.derived = "update of " + weight.name}, Part::kUpdate);
      builder.output("grad_norm:" + weight.name, cast(op::sqrt(sum_all(square(builder.val(node.results[i])))), DType::kF32));
    }
  }
}

std::vector<std::pair<std::string, Tensor>> first_values(const Graph& initialization, std::int64_t seed) {
  Graph graph = initialization.clone();
  (void)key_random(graph, seed, 0);
  (void)expand(graph);
  require_small(graph);
  std::vector<std::pair<std::string, Tensor>> values;
  for (NamedTensor& output : interpret(graph, {}).outputs) values.emplace_back(std::move(output.name), std::move(output.value));
  return values;
}

}  // namespace hone
