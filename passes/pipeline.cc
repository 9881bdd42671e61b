#include "passes/pipeline.h"

#include <fmt/format.h>

#include "base/text.h"

namespace hone {

namespace {

/// A training step but for its optimizer.
struct Differentiated {
  Graph graph;
  Objective objective;
  std::vector<TrainedWeight> weights;
  std::vector<ValueId> gradients;
};

/// The trained weights are those that a gradient reaches.
Differentiated build_gradients(const Graph& imported, const Recipe& recipe, TrainingReport& report) {
  Graph graph = imported.clone();
  std::vector<std::string> dropped_after = insert_dropout(graph, recipe);              // because nodes have the file's names here
  (void)key_random(graph, recipe.train.seed, samples_of(imported));                    // because every step must draw other numbers
  (void)fold_constants(graph);                                                         // because weights made by constant arithmetic are no weights
  if (recipe.model.batch_norm == "train") (void)train_batch_norm(graph, recipe.train.convention);  // because the loss must see the batch's statistics
  else (void)freeze_batch_norm(graph);                                                 // because the mode that the file was exported in does not decide
  Objective objective = attach_loss(graph, recipe);                                    // because cross_entropy looks for a whole softmax
  (void)expand_for_gradients(graph);                                                   // because few `lower` ops have gradients of their own
  objective = {graph.find_output("loss_sum")->value, graph.find_output("target_count")->value};
  const std::vector<TrainedWeight> chosen = select_weights(graph, recipe);
  std::vector<ValueId> wrt;
  for (const TrainedWeight& weight : chosen) wrt.push_back(weight.value);
  std::vector<ValueId> gradients = differentiate(graph, objective.loss_sum, wrt);
  report = {.trained = {}, .unreached = {}, .dropped_after = std::move(dropped_after)};
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (gradients[i].valid()) report.trained.push_back(chosen[i]);
    else report.unreached.push_back(chosen[i].name);
  }
  if (report.trained.empty())
    throw Error(Code::kNothingToTrain, "no weight of the model is reached by the loss's gradient", {},
                {chosen.empty() ? "the model has no float initializer of rank 1 or more: were its weights folded into Constant nodes?" : "chosen were: " + quoted_list(report.unreached)});
  initialize_weights(graph, recipe, report.trained);
  all_reduce_gradients(graph, objective, gradients);                                   // because the optimizer needs the sum over all replicas
  return {std::move(graph), objective, chosen, gradients};
}

Graph build_training(const Differentiated& step, const Recipe& recipe, bool gradient_norms) {
  Graph graph = step.graph.clone();
  graph.name = gradient_norms ? "train_step_norms" : "train_step";
  attach_optimizer(graph, step.objective, step.weights, step.gradients, recipe, {.gradient_norms = gradient_norms});
  (void)expand(graph);  // because updates are lowerings, too, and layers were kept for their gradients
  return graph;
}

Graph build_evaluation(const Graph& imported, const Recipe& recipe) {
  Graph graph = imported.clone();
  graph.name = "eval_step";
  (void)remove_dropout(graph);
  (void)key_iterations(graph);
  attach_loss(graph, recipe);
  (void)expand(graph);
  return graph;
}

Graph build_prediction(const Graph& imported) {
  Graph graph = imported.clone();
  graph.name = "predict";
  (void)remove_dropout(graph);
  (void)key_iterations(graph);
  (void)expand(graph);
  return graph;
}

}  // namespace

std::vector<EntryGraph> build_entries(const Graph& imported, const Recipe& recipe, TrainingReport& report) {
  std::vector<EntryGraph> entries;
  if (recipe.can_train()) {
    const Differentiated step = build_gradients(imported, recipe, report);
    entries.push_back({"train_step", build_training(step, recipe, false)});
    entries.push_back({"train_step_norms", build_training(step, recipe, true)});
    entries.push_back({"eval_step", build_evaluation(imported, recipe)});
  }
  entries.push_back({"predict", build_prediction(imported)});
  return entries;
}

Dim samples_of(const Graph& imported) {
  Dim samples = 0;
  for (const Input& input : imported.inputs()) {
    const Shape& shape = imported.type(input.value).shape;
    if (input.role != Role::kInput or shape.empty()) continue;
    if (shape[0].is_symbol()) return shape[0];
    if (samples.is_constant(0)) samples = shape[0];
  }
  return samples;
}

void optimize(Graph& graph) {
  (void)Rewriter::in_bodies(graph, [](Graph& body) { return optimize(body), Changed::kYes; });
  (void)eliminate_dead_code(graph);              // because what import and autodiff left behind need not be looked at
  (void)fold_constants(graph);                   // because rules look for constants
  (void)simplify(graph);                         // because gradients of reshapes and broadcasts come in pairs that cancel
  (void)eliminate_common_subexpressions(graph);  // because updates share their step scalars
  (void)fold_constants(graph);                   // because rules leave constants behind
  (void)eliminate_dead_code(graph);              // because rules and merging leave nodes that nobody reads
}

}  // namespace hone
