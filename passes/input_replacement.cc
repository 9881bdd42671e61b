#include "passes/input_replacement.h"

#include <memory>
#include <utility>
#include <vector>

namespace hone {

Graph InputReplacement::replaced() {
  std::map<std::uint32_t, Val> map;
  for (const Input& input : graph_.inputs()) {
    const Val other = replacement(input);
    map[input.value.index] = other.valid() ? other : copied(input);
  }
  for (const Node& node : graph_.nodes()) {
    std::vector<Val> operands;
    for (const ValueId operand : node.operands) operands.push_back(operand.valid() ? map.at(operand.index) : Val{});
    std::vector<std::unique_ptr<Graph>> bodies;
    for (const auto& body : node.bodies) bodies.push_back(std::make_unique<Graph>(body->clone()));
    const Builder::Scope scope(builder_, node.loc, node.part);
    const std::vector<Val> results = builder_.add(*node.op, operands, node.attrs, std::move(bodies));
    for (std::size_t i = 0; i < results.size(); ++i) {
      builder_.set_name(results[i], graph_.value(node.results[i]).name);
      map[node.results[i].index] = results[i];
    }
  }
  for (const Output& output : graph_.outputs()) builder_.output(output.name, map.at(output.value.index));
  for (const auto& [a, b] : graph_.equations()) builder_.equate(a, b);
  return std::move(made_);
}

Val InputReplacement::copied(const Input& input) {
  const Val same = builder_.input(input.role, input.name, graph_.type(input.value), input.data);
  if (input.bounds) builder_.set_bounds(same.id(), input.bounds->first, input.bounds->second);
  builder_.remember_scalar(same.id());
  return same;
}

}  // namespace hone
