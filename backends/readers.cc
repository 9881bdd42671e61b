#include "backends/readers.h"

namespace hone {

std::vector<std::vector<NodeId>> readers_of(const Graph& graph) {
  std::vector<std::vector<NodeId>> readers(graph.value_count());
  for (std::size_t i = 0; i < graph.node_count(); ++i)
    for (const ValueId operand : graph.node(NodeId(i)).operands)
      if (operand.valid()) readers[operand.index].emplace_back(i);
  return readers;
}

std::vector<bool> wanted_after_step(const Graph& graph) {
  std::vector<bool> wanted(graph.value_count());
  for (const Output& output : graph.outputs()) wanted[output.value.index] = true;
  for (const Alias& alias : graph.aliases()) wanted[alias.value.index] = true;
  return wanted;
}

}  // namespace hone
