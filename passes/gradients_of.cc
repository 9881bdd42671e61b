#include "passes/gradients_of.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diag.h"
#include "base/text.h"
#include "ir/differentiate.h"
#include "ir/ops/formulas.h"
#include "ir/ops/ops.h"
#include "passes/adapters.h"
#include "passes/passes.h"

namespace hone {

namespace {

/// The names of the graph's inputs and weights that gradients may be asked for.
std::vector<std::string> float_inputs(const Graph& graph) {
  std::vector<std::string> names;
  for (const Input& input : graph.inputs())
    if (is_float(graph.type(input.value).dtype) and (input.role == Role::kInput or input.role == Role::kWeight)) names.push_back(input.name);
  return names;
}

void check_input(const Graph& graph, const std::string& name) {
  const std::vector<std::string> names = float_inputs(graph);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  const Input* input = graph.find_input(name);
  std::vector<std::string> notes = {"there are " + quoted_list(names)};
  if (std::string hint = did_you_mean(name, names); not hint.empty()) notes.insert(notes.begin(), std::move(hint));
  const std::string why = input == nullptr                                   ? "the model has no such input or weight"
                          : not is_float(graph.type(input->value).dtype)     ? fmt::format("it is {}, and only floats have gradients", to_string(graph.type(input->value)))
                                                                             : "it is a constant of the model, as initializers of one number are, and no weight";
  throw Error(Code::kUsage, fmt::format("--wrt {}: {}", quoted(name), why), {}, std::move(notes));
}

/// The output that is differentiated, when it is not the recipe's loss, becomes the only one.
void keep_output(Graph& graph, const std::string& name) {
  const Output* output = graph.find_output(name);
  if (output != nullptr and is_float(graph.type(output->value).dtype)) {
    Builder builder(graph);
    const Val kept = builder.val(output->value);
    builder.clear_outputs();
    return builder.output(name, kept);
  }
  std::vector<std::string> names;
  for (const Output& each : graph.outputs()) names.push_back(each.name);
  std::vector<std::string> notes = {"its outputs: " + quoted_list(names)};
  if (name == "loss") notes.emplace_back("for a loss of these give a recipe with loss.kind, -r or --set");
  throw Error(Code::kUsage, output == nullptr ? fmt::format("--gradients-of {}: the model has no such output", quoted(name))
                                              : fmt::format("--gradients-of {}: it is {}, and only floats have gradients", quoted(name), to_string(graph.type(output->value))), {}, std::move(notes));
}

}  // namespace

Graph build_gradient_function(const Graph& imported, const Recipe& recipe, const GradientsOf& wanted) {
  if (recipe.train.precision == "f16")
    throw Error(Code::kRecipeModel, "gradients by themselves cannot be in f16: without training nothing finds the scale of the loss that keeps them from becoming 0", {},
                {"set train.precision = \"bf16\", which needs none, or leave it out"});
  if (narrows_frozen_weights(recipe))
    throw Error(Code::kRecipeModel, "model.frozen_precision is about the weights that training leaves alone, and this plan trains nothing", {}, {"leave it out"});
  Graph graph = with_adapters(imported, recipe).graph;                   // because nodes have the file's names here
  graph.name = "predict";
  (void)remove_dropout(graph);
  (void)key_iterations(graph);
  (void)fold_constants(graph);                                           // because a weight may be hidden behind constant arithmetic
  for (const std::string& name : wanted.wrt) check_input(graph, name);
  const bool is_loss = wanted.of == "loss" and recipe.can_train();
  if (is_loss) (void)attach_loss(graph, recipe);
  else keep_output(graph, wanted.of);
  (void)expand_for_gradients(graph);                                     // because few `lower` ops have gradients of their own
  std::vector<ValueId> wrt;
  for (const std::string& name : wanted.wrt) wrt.push_back(graph.find_input(name)->value);
  const std::vector<ValueId> gradients = differentiate(graph, graph.find_output(is_loss ? "loss_sum" : wanted.of)->value, wrt);
  Builder builder(graph);
  const Builder::Scope scope(builder, Loc{.derived = "gradients"}, Part::kBackward);
  Val count;
  if (is_loss) {
    count = builder.val(graph.find_output("target_count")->value);
    const Val sum = builder.val(graph.find_output("loss_sum")->value);
    builder.clear_outputs();
    builder.output(wanted.of, sum / count);
  }
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (not gradients[i].valid())
      throw Error(Code::kNoGradient, fmt::format("{} does not depend on {}, or in no way that has a gradient", quoted(wanted.of), quoted(wanted.wrt[i])), {}, {"leave it out of --wrt"});
    const Val gradient = builder.val(gradients[i]);
    builder.output(wanted.wrt[i] + "_grad", count.valid() ? gradient / cast(target_divisor(count), gradient.dtype()) : gradient);
  }
  (void)expand(graph);                                                   // because layers were kept for their gradients
  (void)eliminate_dead_code(graph);                                      // because metrics, and what no gradient needs, are not asked for
  return graph;
}

}  // namespace hone
