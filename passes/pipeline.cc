#include "passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/objectives.h"
#include "base/text.h"
#include "ir/ops/ops.h"
#include "passes/fuse_attention.h"
#include "passes/fuse_recurrences.h"
#include "passes/loss_scale.h"
#include "passes/master_weights.h"
#include "passes/pass_log.h"

namespace hone {

namespace {

/// What training adds to the forward pass before anything is differentiated.
Objective add_objective(Graph& graph, const Recipe& recipe) {
  if (std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) { return *node.op == op::gradient; }))
    (void)expand_for_gradients(graph);                                                 // because folding would cut the way from y to a constant x
  (void)fold_constants(graph);                                                         // because weights made by constant arithmetic are no weights
  if (recipe.model.batch_norm == "train") (void)train_batch_norm(graph, recipe.train.convention);  // because the loss must see the batch's statistics
  else (void)freeze_batch_norm(graph);                                                 // because the mode that the file was exported in does not decide
  if (recipe.model.sync_batch_norm) (void)synchronize_batch_norm(graph);               // because what it becomes must be differentiated
  return attach_loss(graph, recipe);                                                   // because cross_entropy looks for a whole softmax
}

std::vector<ValueId> values_of(std::span<const TrainedWeight> weights) {
  std::vector<ValueId> values;
  for (const TrainedWeight& weight : weights) values.push_back(weight.value);
  return values;
}

/// A training step but for its optimizer.
struct Differentiated {
  Graph graph;
  Objective objective;
  std::vector<TrainedWeight> weights;
  std::vector<ValueId> gradients;
  HasSamples has_samples = HasSamples::kYes;
};

/// What f32 gradients are on their way between replicas.
DType wire_type(const Recipe& recipe) { return *dtype_from_name(recipe.train.exchange_precision); }

/// Adapters begin as they were drawn, whatever the recipe draws afresh.
void initialize_all_but_adapters(Graph& graph, const Recipe& recipe, std::vector<TrainedWeight> weights, std::span<const Adapter> adapters) {
  std::erase_if(weights, [&](const TrainedWeight& weight) {
    return std::any_of(adapters.begin(), adapters.end(), [&](const Adapter& adapter) { return adapter.a == weight.name or adapter.b == weight.name; });
  });
  initialize_weights(graph, recipe, weights);
}

/// The trained weights are those that a gradient reaches. `target`: of whose rows some decide what is differentiated; null: of no one's.
Differentiated build_gradients(const Adapted& adapted, TrainingReport& report, const Target* target) {
  const Graph& imported = adapted.graph;
  const Recipe& recipe = adapted.recipe;
  Graph graph = imported.clone();
  std::vector<std::string> dropped_after = insert_dropout(graph, recipe);              // because nodes have the file's names here
  (void)key_random(graph, recipe.train.seed, samples_of(imported));                    // because every step must draw other numbers
  Objective objective = add_objective(graph, recipe);
  (void)find_safe_softmaxes(graph);                                                    // because the gradient of their parts is NaN, where theirs is 0
  if (target != nullptr) (void)fuse_attention(graph, recipe, *target);                 // because its gradient is one node, too, and whole softmaxes are easier to find
  if (target != nullptr) (void)fuse_recurrences(graph, recipe, *target);               // because its gradient is one node, too
  (void)expand_for_gradients(graph);                                                   // because few `lower` ops have gradients of their own
  objective = {graph.find_output("loss_sum")->value, graph.find_output("target_count")->value};
  const std::vector<TrainedWeight> chosen = select_weights(graph, recipe);
  std::optional<ScaledLoss> scaled;
  if (scales_loss(recipe)) scaled = scale_loss(graph, objective, recipe);              // because small gradients would be 0 in f16
  std::vector<ValueId> gradients = differentiate(graph, scaled ? scaled->loss : objective.loss_sum, values_of(chosen));
  if (scaled) unscale_gradients(graph, *scaled, gradients);                            // because what is added up must not depend on the scale
  report = {.trained = {}, .unreached = {}, .adapters = adapted.adapters, .narrowed = adapted.narrowed, .dropped_after = std::move(dropped_after)};
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (gradients[i].valid()) report.trained.push_back(chosen[i]);
    else report.unreached.push_back(chosen[i].name);
  }
  if (report.trained.empty())
    throw Error(Code::kNothingToTrain, "no weight of the model is reached by the loss's gradient", {},
                {chosen.empty() ? "the model has no float initializer of rank 1 or more with several elements: were its weights folded into Constant nodes? One of a single element is a weight where model.train_only names it" : "chosen were: " + quoted_list(report.unreached)});
  initialize_all_but_adapters(graph, recipe, report.trained, adapted.adapters);
  return {std::move(graph), objective, chosen, gradients};
}

/// Which weights are trained, the gradients say; so they are asked for twice.
void choose_kept_types(Adapted& adapted) {
  const bool has_masters = adapted.recipe.can_train() and has_narrow_weights(adapted.graph);
  if (not narrows_frozen_weights(adapted.recipe) and not has_masters) return;
  std::vector<std::string> trained;
  if (adapted.recipe.can_train()) {
    TrainingReport report;
    (void)build_gradients(adapted, report, nullptr);
    adapted.recipe.model.train_only.clear();
    adapted.recipe.model.freeze.clear();  // may name what is an integer from now on
    for (const TrainedWeight& weight : report.trained) {
      trained.push_back(weight.name);
      adapted.recipe.model.train_only.push_back(weight.name + weight.part);
    }
  }
  adapted.narrowed = narrow_frozen_weights(adapted.graph, adapted.recipe, trained);
  if (not has_masters) return;
  for (NarrowedWeight& master : keep_master_weights(adapted.graph, trained)) adapted.narrowed.push_back(std::move(master));
}

/// What a replica has whose part of the batch is without samples: gradients of zero, which it brings along so that all replicas update alike.
Differentiated without_samples(const Differentiated& step) {
  Differentiated idle{step.graph.clone(), {}, step.weights, step.gradients, HasSamples::kNo};
  Builder builder(idle.graph);
  const auto zeros_like = [&](ValueId value) { return full(builder, 0, idle.graph.type(value).dtype, idle.graph.type(value).shape).id(); };
  idle.objective = {zeros_like(step.objective.loss_sum), zeros_like(step.objective.target_count)};
  for (ValueId& gradient : idle.gradients)
    if (gradient.valid()) gradient = zeros_like(gradient);
  for (std::size_t i = 0; i < idle.graph.aliases().size(); ++i) {
    const Alias alias = idle.graph.aliases()[i];
    if (is_float(idle.graph.type(alias.value).dtype)) builder.redirect_alias(i, builder.val(zeros_like(alias.value)));  // running statistics; random numbers are counted on
  }
  builder.clear_outputs();
  exchange_nothing(idle.graph);
  return idle;
}

Graph build_training(const Differentiated& step, const Recipe& recipe, bool gradient_norms) {
  Graph graph = step.graph.clone();
  graph.name = gradient_norms ? "train_step_norms" : "train_step";
  Objective objective = step.objective;
  std::vector<ValueId> gradients = step.gradients;
  average_running_statistics(graph, step.has_samples);                                 // because each replica moves them by its own batch
  const bool accumulates = recipe.train.gradient_accumulation_steps > 1;
  if (accumulates) all_reduce_loss(graph, objective);                                  // because it is this batch's, and the rest is the update's
  if (accumulates) accumulate_gradients(graph, objective, step.weights, gradients, Accumulated::kUsed);  // because each replica adds up its own
  if (scales_loss(recipe)) objective.overflows = count_overflows(graph, gradients);    // because where one replica's are not finite no replica updates
  all_reduce_gradients(graph, objective, accumulates ? LossIs::kAllReduced : LossIs::kOwn, step.weights, gradients, wire_type(recipe));  // because the optimizer needs the sum over all replicas
  const std::size_t first_update = graph.aliases().size();
  attach_optimizer(graph, objective, step.weights, gradients, recipe, {.gradient_norms = gradient_norms});
  if (scales_loss(recipe)) update_unless_overflow(graph, objective, recipe, first_update);  // because all updates must be there, and no sums of batches
  update_if_finite(graph, objective.loss_sum);                                         // because all updates must be there
  (void)expand_unclaimed(graph);                                                       // because updates are lowerings, too, and layers were kept for their gradients
  return graph;
}

/// The step over a batch whose gradients wait for those of others.
Graph build_accumulation(const Differentiated& step) {
  Graph graph = step.graph.clone();
  graph.name = "accumulate_step";
  Objective objective = step.objective;
  std::vector<ValueId> gradients = step.gradients;
  average_running_statistics(graph, step.has_samples);                                 // as in the step that updates
  all_reduce_loss(graph, objective);                                                   // because a loss that is not finite stops all replicas
  accumulate_gradients(graph, objective, step.weights, gradients, Accumulated::kKept);
  update_if_finite(graph, objective.loss_sum);                                         // because all sums must be there
  (void)expand_unclaimed(graph);                                                       // because layers were kept for their gradients
  return graph;
}

/// A model that is trained as it says itself leaves a recipe nothing to say of it.
void refuse_model_keys(const Recipe& recipe) {
  const Recipe::Model& model = recipe.model;
  std::vector<std::string> keys;
  const auto refuse = [&](bool is_set, const char* key) {
    if (is_set) keys.emplace_back(key);
  };
  refuse(not model.output.empty(), "model.output");
  refuse(not model.freeze.empty(), "model.freeze");
  refuse(not model.train_only.empty(), "model.train_only");
  refuse(not model.tie.empty(), "model.tie");
  refuse(not model.add_bias.empty(), "model.add_bias");
  refuse(model.initialize != "keep", "model.initialize");
  refuse(model.batch_norm != "train", "model.batch_norm");
  refuse(not model.dropout_after.empty(), "model.dropout");
  refuse(model.new_head_classes != 0, "model.new_head");
  refuse(recipe.schedule.kind != "constant", "schedule.kind");
  refuse(recipe.train.gradient_accumulation_steps > 1, "train.gradient_accumulation_steps");
  refuse(recipe.train.ema_decay > 0, "train.ema_decay");
  refuse(narrows_frozen_weights(recipe), "model.frozen_precision");
  refuse(recipe.train.exchange_precision != "f32", "train.exchange_precision");
  refuse(scales_loss(recipe), "train.precision = \"f16\"");
  if (keys.empty()) return;
  throw Error(Code::kRecipeModel, fmt::format("the recipe sets {}, but has no loss, and the model says itself how it is trained", join(keys, ", ")), {},
              {"add loss.kind and optimizer.kind, which come before what the model says, or leave that key out"});
}

/// The step that the model brings along.
Graph build_own_training(const Graph& step, const Recipe& recipe, bool gradient_norms, TrainingReport& report) {
  Graph graph = step.clone();
  graph.name = gradient_norms ? "train_step_norms" : "train_step";
  if (gradient_norms) add_gradient_norms(graph);                                       // because gradients are results of nodes as yet
  (void)key_random(graph, recipe.train.seed, samples_of(step));                        // because every step must draw other numbers
  (void)expand_for_gradients(graph);                                                   // because layers have gradients of their own
  update_if_finite(graph, graph.find_output("loss_sum")->value);                       // because all updates must be there
  (void)expand(graph);                                                                 // because layers were kept for their gradients
  report = {};
  for (const Alias& alias : step.aliases())
    if (const Input* weight = step.input_of(alias.state); weight->role == Role::kWeight) report.trained.push_back({alias.state, weight->name, ""});
  return graph;
}

Graph build_own_evaluation(const Graph& step) {
  Graph graph = step.clone();
  graph.name = "eval_step";
  Builder(graph).clear_aliases();
  (void)eliminate_dead_code(graph);  // because no gradient is needed for the loss
  (void)remove_dropout(graph);
  (void)key_iterations(graph);
  (void)expand(graph);
  return graph;
}

/// What an evaluation measures: Keras's class weights are its fit's alone; PyTorch's are the loss's.
Recipe of_evaluation(Recipe recipe) {
  if (recipe.train.convention == Convention::kKeras) recipe.loss.class_weights.clear();
  return recipe;
}

/// Ordinary ops, but for what the target has rows for.
void expand_for(const Target* target, const Recipe& recipe, Graph& graph, TrainingReport& report) {
  if (target != nullptr) {
    (void)fold_constants(graph);                                                       // because scales may be computed
    (void)find_safe_softmaxes(graph);                                                  // because attention has them
    report.attention = fuse_attention(graph, recipe, *target);
    report.recurrences = fuse_recurrences(graph, recipe, *target);
  }
  (void)expand_unclaimed(graph);
}

Graph build_evaluation(const Graph& imported, const Recipe& recipe, const Target* target, TrainingReport& report) {
  Graph graph = imported.clone();
  graph.name = "eval_step";
  (void)remove_dropout(graph);
  (void)key_iterations(graph);
  attach_loss(graph, of_evaluation(recipe));
  expand_for(target, recipe, graph, report);
  return graph;
}

Graph build_prediction(const Graph& imported, const Recipe& recipe, const Target* target, TrainingReport& report) {
  Graph graph = imported.clone();
  graph.name = "predict";
  (void)remove_dropout(graph);
  (void)key_iterations(graph);
  expand_for(target, recipe, graph, report);
  return graph;
}

}  // namespace

std::vector<EntryGraph> build_entries(const Graph& imported, const Recipe& recipe, TrainingReport& report, const OwnTraining* own, const Target* target) {
  std::vector<EntryGraph> entries;
  if (not recipe.lora.targets.empty() and not recipe.can_train())
    throw Error(Code::kRecipeModel, "lora.targets is set, but no loss: nothing trains the adapters", {}, {"add loss.kind and optimizer.kind, or leave [lora] out"});
  Adapted adapted = with_adapters(imported, recipe);                                   // because nodes have the file's names here, and every entry sees the adapters
  const bool trains_itself = not recipe.can_train() and own != nullptr and own->step;
  if (not trains_itself) choose_kept_types(adapted);                                   // because every entry reads the same weights
  const Graph& model = adapted.graph;
  if (recipe.can_train()) {
    const Differentiated step = build_gradients(adapted, report, target);
    entries.push_back({"train_step", build_training(step, recipe, false)});
    entries.push_back({"train_step_norms", build_training(step, recipe, true)});
    if (recipe.train.gradient_accumulation_steps > 1) entries.push_back({"accumulate_step", build_accumulation(step)});
    const Differentiated idle = without_samples(step);
    entries.push_back({"idle_step_norms", build_training(idle, recipe, true), Exchange::kAll});
    if (recipe.train.gradient_accumulation_steps > 1) entries.push_back({"idle_accumulate_step", build_accumulation(idle), Exchange::kAll});
    entries.push_back({"eval_step", build_evaluation(model, recipe, target, report)});
    if (not adapted.adapters.empty()) entries.push_back({"merged_weights", build_merged_weights(adapted)});
  } else if (own != nullptr and own->step) {
    refuse_model_keys(recipe);
    entries.push_back({"train_step", build_own_training(*own->step, recipe, false, report)});
    entries.push_back({"train_step_norms", build_own_training(*own->step, recipe, true, report)});
    entries.push_back({"eval_step", build_own_evaluation(*own->step)});
  }
  entries.push_back({"predict", build_prediction(model, recipe, target, report)});
  report.narrowed = adapted.narrowed;
  if (recipe.can_train() or own == nullptr or not own->initialization) return entries;
  for (const auto& [name, value] : first_values(*own->initialization, recipe.train.seed))
    for (EntryGraph& entry : entries)
      if (const Input* input = entry.graph.find_input(name)) Builder(entry.graph).set_input_data(input->value, value);
  return entries;
}

ExportedStep build_exported_step(const Graph& imported, const Recipe& recipe) {
  if (not recipe.lora.targets.empty())
    throw Error(Code::kRecipeModel, "training with adapters cannot be written as ONNX: what it trains is no tensor of the model", {},
                {"compile without [lora], with the same weights in model.train_only"});
  Graph graph = imported.clone();
  graph.name = "training";
  (void)insert_dropout(graph, recipe);
  const Objective sums = add_objective(graph, recipe);
  TrainingReport report;
  (void)build_gradients(with_adapters(imported, recipe), report, nullptr);  // because weights that no gradient reaches are not updated
  std::vector<TrainedWeight> chosen = select_weights(graph, recipe);
  std::erase_if(chosen, [&](const TrainedWeight& weight) {
    return std::none_of(report.trained.begin(), report.trained.end(), [&](const TrainedWeight& trained) { return trained.name == weight.name; });
  });
  Builder builder(graph);
  const std::vector<Output> outputs = graph.outputs();
  const Val count = builder.val(sums.target_count), loss = builder.val(sums.loss_sum) / count;
  builder.clear_outputs();
  builder.output("loss", loss);
  for (const Output& output : outputs) {
    if (not output.name.starts_with("metric:")) continue;
    const std::string name = output.name.substr(7);
    if (not find_metric(name)->is_mean) continue;  // other functions of sums over an epoch are not the mean of anything
    const Val sums = builder.val(output.value);
    const auto element = [&](std::int64_t i) { return reshape(op::slice(sums, {kStarts = Shape{i}, kSizes = Shape{1}, kSteps = Ints{1}}), {}); };
    builder.output(name, cast(element(0) / element(1), DType::kF32));
  }
  std::vector<Val> operands = {loss};
  for (const ValueId weight : values_of(chosen)) operands.push_back(builder.val(weight));
  std::vector<ValueId> gradients;
  const Builder::Scope scope(builder, Loc{.derived = "gradients"}, Part::kBackward);
  for (const Val& gradient : op::gradient.build_all(operands)) gradients.push_back(gradient.id());
  attach_optimizer(graph, {loss.id(), {}}, chosen, gradients, recipe, {});
  Graph forward = imported.clone();
  (void)fold_constants(forward);
  for (Graph* each : {&graph, &forward}) (void)expand_for_export(*each);
  (void)eliminate_dead_code(graph);
  return {std::move(graph), std::move(forward)};
}

namespace {

void clean(Graph& graph, const PassChoice& passes, PassLog* log) {
  const auto run = [&](std::string_view name, const auto& pass) {
    if (not passes.runs(name)) return;
    if (log != nullptr) log->run(name, graph, [&] { (void)pass(graph); });
    else (void)pass(graph);
  };
  const auto simplify_and_tell = [log](Graph& of) { return simplify(of, log); };
  run("dce", eliminate_dead_code);              // because what import, autodiff and other passes left behind need not be looked at
  run("fold", fold_constants);                  // because rules look for constants
  run("simplify", simplify_and_tell);           // because gradients of reshapes and broadcasts come in pairs that cancel
  run("cse", eliminate_common_subexpressions);  // because updates share their step scalars
  run("fold", fold_constants);                  // because rules leave constants behind
  run("dce", eliminate_dead_code);              // because rules and merging leave nodes that nobody reads
}

/// Takes out of loops what need not be done one iteration after the other.
void rearrange_loops(Graph& graph, const PassChoice& passes, PassLog* log) {
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) { return node.op->region == Region::kScan; })) return;
  const auto run = [&](std::string_view what, Changed (*pass)(Graph&)) { return log == nullptr ? pass(graph) : log->run_over_loops(what, graph, pass); };
  Changed changed = run("left out, because nobody needs it", prune_loops);                                                     // because a sum that something seems to read stays in its loop
  changed |= run("computed once, before the loop", hoist_invariants);                                                          // because loops can be compared if what they share is an operand of both
  changed |= eliminate_common_subexpressions(graph);                                                                           // because it must be the same one
  changed |= run("read from what an earlier loop stacks of it, rather than computed again", reuse_iterations);                 // because what it stacks may come from slices alone
  changed |= run("computed for all iterations at once, before the loop", hoist_from_loops);                                    // because what is known before a loop need not wait for its end
  changed |= run("computed for all iterations at once, behind the loop", sink_from_loops);                                     // because the loops compute by now what they must
  changed |= run("left out, because nobody needs it any more", prune_loops);                                                   // because nobody in them reads the operands of what moved
  if (changed == Changed::kNo) return;
  (void)Rewriter::in_bodies(graph, [&](Graph& body) { return clean(body, passes, nullptr), Changed::kYes; });  // because what is fed may be what was made there
  clean(graph, passes, nullptr);                       // because sums over iterations of products become one product
}

}  // namespace

void optimize(Graph& graph, const PassChoice& passes, PassLog* log) {
  (void)Rewriter::in_bodies(graph, [&](Graph& body) { return optimize(body, passes), Changed::kYes; });
  clean(graph, passes, log);
  if (not passes.runs("loops")) return;
  if (log != nullptr) log->run("loops", graph, [&] { rearrange_loops(graph, passes, log); });
  else rearrange_loops(graph, passes, nullptr);
}

}  // namespace hone
