#include "backends/check_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backends/cpu/cpu_target.h"
#include "base/text.h"
#include "ir/ops/ops.h"
#include "passes/check_gradients.h"
#include "passes/pipeline.h"

namespace hone {

namespace {

std::string gradient_status(const OpDef& op) {
  if (op.grad.formula != nullptr) return "yes";
  if (op.lower != nullptr) return "yes, through its parts";
  return "none: " + std::string(op.grad.reason.empty() ? "no formula yet" : op.grad.reason);
}

std::string operators_table(const Graph& graph) {
  struct Row {
    int count = 0;
    std::string kernel;
  };
  std::map<std::string, Row> rows;
  const CpuTarget target;
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    Row& row = rows[std::string(node.op->name)];
    ++row.count;
    if (row.kernel.empty()) row.kernel = node.op->lower != nullptr ? "lowered" : target.choose_row(graph, NodeId(i)).row;
    if (row.kernel.empty()) row.kernel = *node.op == op::reshape ? "view" : "generated";
  }
  std::string text = fmt::format("{:<20} {:>6}  {:<26} {}\n", "operator", "nodes", "cpu kernel", "gradient");
  for (const auto& [name, row] : rows) text += fmt::format("{:<20} {:>6}  {:<26} {}\n", name, row.count, row.kernel, gradient_status(*find_op(name)));
  return text;
}

/// Why no gradient reaches `weight`: the first node after it that stops the gradient, or that nothing of it reaches the loss.
std::string what_cuts_off(const Graph& graph, const std::string& weight) {
  const Input* input = graph.find_input(weight);
  if (input == nullptr) return "it is not part of the graph";
  std::vector<bool> depends(graph.value_count());
  depends[input->value.index] = true;
  const Node* last = nullptr;
  for (const Node& node : graph.nodes()) {
    const bool any = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return operand.valid() and depends[operand.index]; });
    if (not any) continue;
    if (not node.op->grad.reason.empty()) return fmt::format("{} {}: {}", node.op->name, to_string(node.loc), node.op->grad.reason);
    last = &node;
    for (const ValueId result : node.results) depends[result.index] = true;
  }
  return last == nullptr ? "no node reads it" : fmt::format("its way ends at {} {}, which the loss does not read", last->op->name, to_string(last->loc));
}

/// Without a loss the first output's mean square stands for it, so that ways can be followed.
Recipe with_some_loss(const Graph& imported, Recipe recipe) {
  if (recipe.can_train()) return recipe;
  RecipeSource source;
  add_override(source, "loss.kind=\"mse\"");
  add_override(source, "optimizer.kind=\"sgd\"");
  Recipe resolved = resolve(source);
  resolved.model = recipe.model;
  for (const Output& output : imported.outputs())
    if (resolved.model.output.empty() and is_float(imported.type(output.value).dtype)) resolved.model.output = output.name;
  return resolved;
}

std::string weights_table(const Graph& graph, const TrainingReport& report) {
  std::string text = fmt::format("\n{:<52} {:<20} {}\n", "weight", "type", "trained");
  for (const Input& input : graph.inputs()) {
    if (input.role != Role::kWeight) continue;
    const bool trained = std::any_of(report.trained.begin(), report.trained.end(), [&](const TrainedWeight& w) { return w.name == input.name; });
    const bool unreached = std::find(report.unreached.begin(), report.unreached.end(), input.name) != report.unreached.end();
    const std::string status = trained ? "yes" : unreached ? "no gradient reaches it: " + what_cuts_off(graph, input.name) : "no: frozen, or a running statistic";
    text += fmt::format("{:<52} {:<20} {}\n", printable(input.name), to_string(graph.type(input.value)), status);
  }
  return text;
}

}  // namespace

CheckReport check_model(const Graph& imported, std::vector<Diag> warnings, const Recipe& wanted) {
  const Recipe recipe = with_some_loss(imported, wanted);
  CheckReport report;
  report.text = operators_table(imported);
  TrainingReport training;
  (void)build_entries(imported, recipe, training);  // throws what cannot be trained
  report.text += weights_table(imported, training);
  const std::vector<Diag> of_recipe = recipe_warnings(imported, wanted);
  warnings.insert(warnings.end(), of_recipe.begin(), of_recipe.end());
  report.text += warnings.empty() ? "" : "\n";
  for (const Diag& warning : warnings) report.text += to_string(warning) + "\n";
  report.text += fmt::format("\n{} weights are trained, {} are not reached by a gradient, {} warnings\n", training.trained.size(), training.unreached.size(), warnings.size());
  report.trainable = training.unreached.empty();
  return report;
}

CheckReport check_model_gradients(const Graph& imported, const Recipe& wanted, std::int64_t batch) {
  const GradientReport gradients = check_gradients(imported, with_some_loss(imported, wanted), batch);
  return {gradients.text, gradients.ok};
}

}  // namespace hone
