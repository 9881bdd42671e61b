#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/patterns.h"
#include "base/text.h"
#include "ir/ops/ops.h"
#include "passes/passes.h"
#include "passes/weight_names.h"

namespace hone {

namespace {

/// Mean and variance of batch normalizations: moved by the forward pass, never by a gradient.
std::set<std::string> running_statistics(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (*node.op != op::batch_norm and *node.op != op::batch_norm_train) continue;
    for (const std::size_t i : {3, 4})
      if (const Input* input = graph.input_of(node.operands[i])) names.insert(input->name);
  }
  return names;
}

/// Is it multiplied or added along one axis at most, wherever it is read? Exporters store biases and scales as [C,1,1]; a layer with one output has a matrix of that shape.
bool is_bias_or_scale(const Graph& graph, ValueId weight) {
  const Shape& shape = graph.type(weight).shape;
  if (std::ranges::count_if(shape, [](const Dim& dim) { return not dim.is_constant(1); }) > 1) return false;
  std::set<ValueId> forms = {weight};  // it, and what moves its elements
  for (const Node& node : graph.nodes())
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      if (not node.operands[i].valid() or not forms.contains(node.operands[i])) continue;
      const std::string_view role = node.op->inputs[std::min(i, node.op->inputs.size() - 1)];
      const bool moves = *node.op == op::reshape or *node.op == op::transpose or *node.op == op::broadcast_to or *node.op == op::slice or *node.op == op::cast;
      if (moves) forms.insert(node.results[0]);
      else if (node.op->scalar == nullptr and not role.starts_with("scale") and role.find("bias") == std::string_view::npos) return false;
    }
  return true;
}

bool is_matrix(const Graph& graph, ValueId weight) { return graph.type(weight).shape.size() >= 2 and not is_bias_or_scale(graph, weight); }

/// Do products read it as it is, as their second factor?
bool has_outputs_last(const Graph& graph, ValueId weight) {
  return graph.type(weight).shape.size() == 2 and std::ranges::any_of(graph.nodes(), [&](const Node& node) { return *node.op == op::matmul and node.operands[1] == weight and not node.attrs[kTransB]; });
}

struct Pattern {
  std::string name, part;
};

/// "NAME[:, 0:80]" in two.
Pattern name_and_part(const std::string& text) {
  const std::size_t bracket = text.ends_with("]") ? text.rfind('[') : std::string::npos;
  if (bracket == std::string::npos or text.find_first_not_of("0123456789:, ", bracket + 1) != text.size() - 1) return {text, ""};
  return {text.substr(0, bracket), text.substr(bracket)};
}

std::vector<std::string> names_of(const std::vector<const Input*>& inputs) {
  std::vector<std::string> names;
  for (const Input* input : inputs) names.push_back(input->name);
  return names;
}

[[noreturn]] void nothing_matches(const char* key, const std::string& pattern, const std::vector<const Input*>& inputs, const WeightNames& names) {
  std::vector<std::string> known = names_of(inputs);
  for (const Input* input : inputs) known.insert(known.end(), names.also_called(input->name).begin(), names.also_called(input->name).end());
  refuse_pattern(key, pattern, "weight of the model", "the model's weights", known);
}

}  // namespace

std::vector<TrainedWeight> select_weights(Graph& graph, const Recipe& recipe) {
  const std::set<std::string> statistics = running_statistics(graph);
  const auto& only = recipe.model.train_only;
  std::vector<const Input*> candidates;
  for (const Input& input : graph.inputs()) {
    if (not input.data or input.name.empty() or not is_float(graph.type(input.value).dtype)) continue;
    const bool is_weight = input.role == Role::kWeight and not statistics.contains(input.name);
    const bool is_named = std::find(only.begin(), only.end(), input.name) != only.end();  // train_only may name rank-0 parameters
    if (is_weight or is_named) candidates.push_back(&input);
  }
  const WeightNames names(graph);
  std::vector<TrainedWeight> weights;
  const auto add = [&](const Input& input, std::string part) { weights.push_back({input.value, input.name, std::move(part), names.also_called(input.name), is_matrix(graph, input.value), has_outputs_last(graph, input.value)}); };
  std::set<std::string> chosen;
  if (only.empty()) {
    for (const Input* input : candidates) add(*input, "");
  }
  for (const std::string& text : only) {
    const bool whole = std::any_of(candidates.begin(), candidates.end(), [&](const Input* input) { return input->name == text; });
    const Pattern pattern = whole ? Pattern{text, ""} : name_and_part(text);
    bool any = false;
    for (const Input* input : candidates) {
      if (not matches_weight(pattern.name, input->name, names.also_called(input->name))) continue;
      any = true;
      if (chosen.insert(input->name).second) add(*input, pattern.part);
    }
    for (const Input& input : graph.inputs()) {  // a pattern for rank-0 parameters alone
      const bool matches = not any and input.data and not input.name.empty() and is_float(graph.type(input.value).dtype) and glob_match(pattern.name, input.name);
      if (matches and not statistics.contains(input.name) and chosen.insert(input.name).second) add(input, pattern.part);
    }
    any = any or std::any_of(weights.begin(), weights.end(), [&](const TrainedWeight& weight) { return glob_match(pattern.name, weight.name); });
    if (not any) nothing_matches("model.train_only", text, candidates, names);
  }
  const auto is_constant = [&](const std::string& pattern) {  // a buffer, say: it is not trained anyway
    return std::any_of(graph.inputs().begin(), graph.inputs().end(), [&](const Input& input) { return input.data and not input.name.empty() and matches_name(pattern, input.name); });
  };
  for (const std::string& pattern : recipe.model.freeze) {
    if (not is_constant(pattern) and std::none_of(candidates.begin(), candidates.end(), [&](const Input* input) { return matches_weight(pattern, input->name, names.also_called(input->name)); }))
      nothing_matches("model.freeze", pattern, candidates, names);
    std::erase_if(weights, [&](const TrainedWeight& weight) { return matches_weight(pattern, weight.name, weight.also_called); });
  }
  if (weights.empty() and not candidates.empty())
    throw Error(Code::kRecipeModel, "model.freeze names all weights: nothing is left to train", {}, {"the model's weights: " + quoted_list(names_of(candidates))});
  Builder builder(graph);
  for (const TrainedWeight& weight : weights) builder.set_role(weight.value, Role::kWeight);
  return weights;
}

}  // namespace hone
