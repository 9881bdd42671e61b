#include "backends/check_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backends/cpu/cpu_target.h"
#include "base/text.h"
#include "ir/ops/ops.h"
#include "passes/check_gradients.h"
#include "passes/pipeline.h"
#include "passes/precision.h"
#include "passes/weight_names.h"

namespace hone {

namespace {

/// What stops the gradient at an op; "" if nothing does.
std::string what_stops(const OpDef& op) {
  if (op.grad.formula != nullptr or op.lower != nullptr or op.collective) return "";
  return op.grad.reason.empty() ? std::string("no formula yet") : std::string(op.grad.reason);
}

bool reads_floats(const Graph& graph, const Node& node) {
  return std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId id) { return id.valid() and is_float(graph.type(id).dtype); });
}

/// Gradient and kernels of every operator, from the nodes that it became.
void describe_operators(const Graph& graph, bool complete, std::vector<CheckedOperator>& operators) {
  std::map<std::string, CheckedOperator*> by_node;
  for (CheckedOperator& checked : operators)
    for (const std::string& node : checked.nodes_of) by_node[node] = &checked;
  std::map<const CheckedOperator*, std::set<std::string>> kernels, stops;
  std::set<const CheckedOperator*> differentiable;
  const CpuTarget target;
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    const auto found = by_node.find(node.loc.node);
    if (found == by_node.end()) continue;
    const CheckedOperator* checked = found->second;
    const std::string row = node.op->lower != nullptr ? "" : target.choose_row(graph, NodeId(i)).row;
    kernels[checked].insert(not row.empty() ? row : *node.op == op::reshape ? "view" : "generated");
    if (not reads_floats(graph, node)) continue;
    if (const std::string stop = what_stops(*node.op); stop.empty()) differentiable.insert(checked);
    else stops[checked].insert(fmt::format("{}: {}", node.op->name, stop));
  }
  for (CheckedOperator& checked : operators) {
    const auto list = [](const std::set<std::string>& pieces, std::string_view separator) { return join(std::vector(pieces.begin(), pieces.end()), separator); };
    if (not checked.refusal.empty()) continue;
    if (kernels[&checked].empty() and not complete) {  // behind a node that could not be imported
      checked.gradient = checked.kernels = "not seen";
      continue;
    }
    checked.kernels = kernels[&checked].empty() ? "none" : list(kernels[&checked], ", ");
    if (differentiable.contains(&checked)) checked.gradient = "yes";
    else checked.gradient = stops[&checked].empty() ? "not needed" : "none: " + list(stops[&checked], "; ");
  }
}

/// The node after which nothing of a weight goes on to the loss.
struct Cut {
  std::string text;
  Loc loc;
};

Cut what_cuts_off(const Graph& graph, const Input& weight) {
  std::vector<bool> depends(graph.value_count());
  depends[weight.value.index] = true;
  const Node* last = nullptr;
  for (const Node& node : graph.nodes()) {
    const bool any = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return operand.valid() and depends[operand.index]; });
    if (not any) continue;
    const std::string stop = what_stops(*node.op);
    if (not stop.empty() and reads_floats(graph, node)) return {fmt::format("{} stops it: {}", node.op->name, stop), node.loc};
    last = &node;
    for (const ValueId result : node.results) depends[result.index] = is_float(graph.type(result).dtype);
  }
  if (last == nullptr) return {"no node of this output reads it", {}};
  return {fmt::format("its way ends with {}, which the loss does not read", last->op->name), last->loc};
}

/// Without a loss the mean square of the first float output stands for it, so that ways can be followed.
Recipe with_some_loss(const Graph& imported, const OwnTraining* own, Recipe recipe) {
  if (recipe.can_train() or (own != nullptr and own->step)) return recipe;
  RecipeSource source;
  add_override(source, "loss.kind=\"mse\"");
  add_override(source, "optimizer.kind=\"sgd\"");
  Recipe resolved = resolve(source);
  resolved.model = recipe.model;
  for (const Output& output : imported.outputs())
    if (resolved.model.output.empty() and is_float(imported.type(output.value).dtype)) resolved.model.output = output.name;
  return resolved;
}

template <typename Action>
bool succeeds(std::vector<Diag>& problems, Action&& action) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    problems.insert(problems.end(), error.diags().begin(), error.diags().end());
    return false;
  }
}

/// What the recipe asks for that the model does not have; each part by itself, so that all is found at once. `complete`: the whole model was imported.
bool fits(const Graph& graph, const Recipe& recipe, bool complete, std::vector<Diag>& problems) {
  Graph for_loss = graph.clone();
  const bool weights = graph.inputs().empty() or succeeds(problems, [&] {
    Adapted adapted = with_adapters(graph, recipe);
    (void)select_weights(adapted.graph, adapted.recipe);
  });
  if (not complete) return false;
  const bool precision = succeeds(problems, [&] { check_keep_f32(graph, recipe); });
  if (not recipe.can_train()) return weights and precision;
  Graph for_dropout = graph.clone();
  const bool dropout = succeeds(problems, [&] { (void)insert_dropout(for_dropout, recipe); });
  return succeeds(problems, [&] { (void)attach_loss(for_loss, recipe); }) and weights and dropout and precision;
}

/// In what precision each product of the training step runs, and why.
void describe_precision(Graph step, const Recipe& recipe, CheckReport& report) {
  optimize(step);
  (void)lower_precision(step, recipe);
  report.precision = explain_precision(step, recipe);
  require_narrow(step, recipe);
}

/// What is said of a weight that a gradient reaches, or that none needs to reach.
std::string status_of(const std::string& name, bool trained, const TrainingReport& training, const Recipe& recipe) {
  for (const Adapter& adapter : training.adapters) {
    if (name == adapter.weight) return fmt::format("no: frozen, with an adapter of rank {}", recipe.lora.rank);
    if (trained and (name == adapter.a or name == adapter.b)) return fmt::format("yes: the adapter of {}", quoted(adapter.weight));
  }
  return trained ? "yes" : recipe.can_train() ? "no: frozen, or a running statistic" : "no: the model's training does not update it";
}

/// What the importer takes for a number of the author's where nothing says that it is a parameter.
bool is_single_float(const Input& input) {
  return input.data and not input.name.empty() and is_float(input.data->dtype()) and not input.data->shape().empty() and input.data->element_count() == 1;
}

void describe_weights(const Graph& graph, const TrainingReport& training, const Recipe& recipe, CheckReport& report) {
  const WeightNames names(graph);
  for (const Input& input : graph.inputs()) {
    const bool trained = std::any_of(training.trained.begin(), training.trained.end(), [&](const TrainedWeight& w) { return w.name == input.name; });
    const bool is_passed_over = input.role == Role::kConstant and not trained and is_single_float(input);
    if (input.role != Role::kWeight and not trained and not is_passed_over) continue;
    CheckedWeight& weight = report.weights.emplace_back(CheckedWeight{input.name, to_string(graph.type(input.value)), trained, is_passed_over ? "no: one element, as an epsilon has; model.train_only can name it" : status_of(input.name, trained, training, recipe)});
    if (const auto& others = names.also_called(input.name); not others.empty()) weight.also_called = others.front();
    if (std::find(training.unreached.begin(), training.unreached.end(), input.name) == training.unreached.end()) continue;
    const Cut cut = what_cuts_off(graph, input);
    weight.status = fmt::format("no gradient reaches it: {}{}", cut.text, cut.loc.empty() ? "" : " " + to_string(cut.loc));
    ++report.unreached;
    const std::string way_out = fmt::format("it keeps its value; say that this is meant with [model] freeze = [{}], or choose an output that depends on it", quoted(input.name));
    if (not recipe.model.train_only.empty()) report.problems.push_back({Code::kNoGradient, fmt::format("no gradient reaches the weight {}: {}", quoted(input.name), cut.text), cut.loc, {way_out}});
    else report.warnings.push_back({Code::kModelWarning, fmt::format("no gradient reaches the weight {}: {}", quoted(input.name), cut.text), cut.loc, {way_out}, Severity::kWarning});
  }
}

/// The way out of problems that come without one.
std::string way_out(Code code) {
  switch (code) {
    case Code::kUnknownOp: return "replace the operator in the model, or export with another opset";
    case Code::kNoGradient: return "freeze the weights before it with [model] freeze, or replace the operator";
    case Code::kDynamic: return "fix the size with --dim NAME=N, or export with fixed shapes";
    case Code::kBadWeight: return "export the model again, with its data files beside it";
    case Code::kShape:
    case Code::kType:
    case Code::kBadAttribute:
    case Code::kBadGraph: return "ONNX does not allow it: export the model again, or mend this node (onnx.checker finds the same)";
    default: return "change what the message names";
  }
}

}  // namespace

CheckReport check_model(CheckedModel model, const std::optional<Recipe>& wanted) {
  CheckReport report{.operators = std::move(model.operators), .problems = std::move(model.problems), .warnings = std::move(model.warnings)};
  const bool complete = std::none_of(report.problems.begin(), report.problems.end(), [](const Diag& diag) { return exit_code(diag.code) == exit_code(Code::kNotOnnx); });
  describe_operators(model.graph, complete, report.operators);
  const Recipe recipe = with_some_loss(model.graph, model.own, wanted.value_or(Recipe{}));
  TrainingReport training;
  std::vector<EntryGraph> entries;
  if (fits(model.graph, recipe, complete, report.problems) and succeeds(report.problems, [&] { entries = build_entries(model.graph, recipe, training, model.own); })) {
    (void)succeeds(report.problems, [&] { describe_precision(std::move(entries.front().graph), recipe, report); });
    describe_weights(with_adapters(model.graph, recipe).graph, training, recipe, report);
    report.dropout_rate = recipe.model.dropout_rate;
    report.dropped_after = training.dropped_after;
    const std::vector<Diag> of_recipe = recipe_warnings(model.graph, recipe);
    report.warnings.insert(report.warnings.end(), of_recipe.begin(), of_recipe.end());
  }
  for (Diag& problem : report.problems)
    if (problem.notes.empty()) problem.notes.push_back(way_out(problem.code));
  return report;
}

std::string to_text(const CheckReport& report) {
  std::string text = fmt::format("{:<28} {:>6}  {:<8} {:<12} {}\n", "operator", "nodes", "import", "gradient", "cpu kernels");
  for (const CheckedOperator& checked : report.operators) {
    const bool stopped = checked.gradient.starts_with("none");
    if (checked.refusal.empty())
      text += fmt::format("{:<28} {:>6}  {:<8} {:<12} {}{}\n", printable(checked.name), checked.nodes, "yes", stopped ? "none" : checked.gradient, checked.kernels,
                          stopped ? " (" + checked.gradient.substr(6) + ")" : "");
    else text += fmt::format("{:<28} {:>6}  no: {}\n", printable(checked.name), checked.nodes, checked.refusal);
  }
  if (not report.weights.empty()) text += fmt::format("\n{:<52} {:<20} {}\n", "weight", "type", "trained");
  for (const CheckedWeight& weight : report.weights) {
    const std::string name = weight.also_called.empty() ? weight.name : fmt::format("{} ({})", weight.name, weight.also_called);
    text += fmt::format("{:<52} {:<20} {}\n", printable(name), weight.type, weight.status);
  }
  if (not report.dropped_after.empty()) text += fmt::format("\ntraining drops {} of the elements after: {}\n", report.dropout_rate, printable(join(report.dropped_after, ", "), 2000));
  if (not report.precision.empty()) text += "\n";
  for (const std::string& line : report.precision) text += line + "\n";
  for (const auto* diags : {&report.warnings, &report.problems}) {
    text += diags->empty() ? "" : "\n";
    for (const Diag& diag : *diags) text += to_string(diag) + "\n";
  }
  const auto trained = std::count_if(report.weights.begin(), report.weights.end(), [](const CheckedWeight& weight) { return weight.trained; });
  return text + fmt::format("\n{} weights are trained, {} are not reached by a gradient; {} problems, {} warnings\n", trained, report.unreached, report.problems.size(),
                            report.warnings.size());
}

GradientCheck check_model_gradients(const Graph& imported, const Recipe& wanted, std::int64_t batch) {
  const GradientReport gradients = check_gradients(imported, with_some_loss(imported, nullptr, wanted), batch);
  return {gradients.text, mismatches(gradients)};
}

}  // namespace hone
