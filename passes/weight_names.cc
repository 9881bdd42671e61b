#include "passes/weight_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/module_names.h"
#include "base/patterns.h"
#include "ir/ops/ops.h"

namespace hone {

namespace {

bool is_path(const std::string& name) { return name.find_first_of("./") != std::string::npos; }

/// Does the node hand on what it reads, in another form?
bool hands_on(const Node& node) { return *node.op == op::transpose or *node.op == op::reshape or *node.op == op::cast or *node.op == op::broadcast_to; }

}  // namespace

WeightNames::WeightNames(const Graph& graph) {
  std::vector<const Input*> weight_in(graph.value_count());  // by value
  for (const Input& input : graph.inputs())
    if (input.data and not input.name.empty() and not is_path(input.name)) weight_in[input.value.index] = &input;
  for (const Node& node : graph.nodes()) {
    for (const ValueId operand : node.operands) {
      const Input* weight = operand.valid() ? weight_in[operand.index] : nullptr;
      if (weight == nullptr) continue;
      if (hands_on(node)) {
        weight_in[node.results[0].index] = weight;
        break;
      }
      if (node.loc.layer.empty()) continue;
      const char* leaf = *node.op == op::add ? "bias" : "weight";
      std::vector<std::string>& names = names_[weight->name];
      for (std::string name : {fmt::format("{}.{}", module_name(node.loc.layer), leaf), fmt::format("{}/{}", node.loc.layer, leaf)})
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    }
  }
}

const std::vector<std::string>& WeightNames::also_called(const std::string& weight) const {
  static const std::vector<std::string> none;
  const auto found = names_.find(weight);
  return found == names_.end() ? none : found->second;
}

bool matches_weight(const std::string& pattern, const std::string& name, std::span<const std::string> also_called) {
  return matches_name(pattern, name) or
         std::any_of(also_called.begin(), also_called.end(), [&](const std::string& other) { return matches_name(pattern, other); });
}

bool matches_weight(std::span<const std::string> patterns, const std::string& name, std::span<const std::string> also_called) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) { return matches_weight(pattern, name, also_called); });
}

}  // namespace hone
