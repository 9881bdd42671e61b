// Files as ONNX.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "backends/step_nodes.h"
#include "base/files.h"
#include "base/objectives.h"
#include "base/text.h"
#include "base/untrusted_json.h"
#include "frontend/onnx/export_step.h"
#include "frontend/onnx/export_training.h"
#include "inspect/describe.h"
#include "inspect/forms.h"
#include "ir/print.h"
#include "ir/rewriter.h"
#include "passes/pipeline.h"
#include "runtime/plan/step_name.h"
#include "runtime/train/export_onnx.h"

namespace hone {

namespace {

/// What a model does not say of a recipe.
void say_what_is_lost(const Recipe& recipe, std::vector<std::string>& lost) {
  std::vector<std::string> parts;
  if (recipe.schedule.kind != "constant" or recipe.schedule.warmup_steps > 0) parts.push_back("the learning rate's schedule");
  if (not recipe.data.scale.empty()) parts.emplace_back("data.scale");
  if (recipe.train.gradient_accumulation_steps > 1) parts.emplace_back("train.gradient_accumulation_steps");
  if (recipe.train.ema_decay > 0) parts.emplace_back("train.ema_decay");
  if (recipe.train.precision != "f32") parts.emplace_back("train.precision");
  if (std::ranges::any_of(recipe.metrics.list, [](const std::string& name) { return not find_metric(name)->is_mean; })) parts.emplace_back("metrics that are no means");
  if (not parts.empty()) lost.push_back("ONNX has no place for " + join(parts, ", ") + ": left out");
}

onnx::ModelProto model_of(const plan::Plan& plan, const plan::Program& program, const std::string& folder, std::vector<std::string>& lost) {
  const auto named = [&](const std::string& name) -> const plan::Persistent& { return *std::ranges::find(program.persistents, name, &plan::Persistent::name); };
  const auto initial = [&](const std::string& name) { return named(name).initial; };
  onnx::ModelProto model = trained_model(plan.onnx_model, program, [&](const std::string& name) { return read_widened(initial, named(name)); });
  const Recipe recipe = plan.recipe_json.empty() ? Recipe{} : recipe_from_json(plan.recipe_json);
  if (not recipe.can_train()) return model;  // with the training that it came with, if any
  const onnx::Imported imported = onnx::import_model(model, plan.model_name, folder, {.output = recipe.model.output, .mend = onnx::mend_options(recipe), .own_training = false});
  const ExportedStep step = build_exported_step(imported.graph, recipe);
  onnx::add_training_info(model, step.forward, step.step, recipe.optimizer.learning_rate);
  say_what_is_lost(recipe, lost);
  return model;
}

using Initials = std::map<std::string, const Tensor*, std::less<>>;

/// Gives the graph the data that its text leaves out: of weights and states by their names, of constants by those of the values.
void add_data(Graph& graph, const Initials& initials) {
  Builder builder(graph);
  std::vector<std::pair<ValueId, Tensor>> found_data;
  for (const Input& input : graph.inputs()) {
    if (input.role == Role::kInput or (input.role == Role::kConstant and input.data)) continue;
    const std::string& name = input.role == Role::kConstant ? graph.value(input.value).name : input.name;
    const auto found = initials.find(input.role == Role::kConstant ? held_as(name) : std::string_view(name));
    const Type& type = graph.type(input.value);
    if (found != initials.end() and found->second->dtype() == type.dtype and shape_of(found->second->shape()) == type.shape) found_data.emplace_back(input.value, *found->second);
    else if (name.starts_with(kUnreadConstant) and is_constant(type.shape)) found_data.emplace_back(input.value, Tensor::zeros(type.dtype, constant_shape(type.shape)));
    else if (not input.data)
      throw Error(Code::kPlanFormat, fmt::format("the plan has no data of {} {}", to_string(input.role), quoted(name)), {}, {"compile the model again: older plans do not say where large constants are"});
  }
  for (auto& [value, tensor] : found_data) builder.set_input_data(value, std::move(tensor));
  (void)Rewriter::in_bodies(graph, [&](Graph& body) { return add_data(body, initials), Changed::kYes; });  // the parser limits the depth
}

/// What is fed by the training loop rather than from data can be left out: a first step's learning rate, and the whole batch's first sample.
void add_defaults(Graph& graph, const plan::Entry& entry, const Recipe& recipe) {
  Builder builder(graph);
  for (const plan::Feed& feed : entry.feeds) {
    const Input* input = graph.find_input(feed.name);
    if (input == nullptr) continue;
    if (feed.kind == plan::Feed::Kind::kLearningRate) builder.set_input_data(input->value, Tensor::scalar(recipe.optimizer.learning_rate).cast(feed.dtype));
    if (feed.kind == plan::Feed::Kind::kFirstSample) builder.set_input_data(input->value, Tensor::zeros(feed.dtype, {}));
  }
}

/// What a training step's sums come to: the loss that hone-run prints.
void add_loss(Graph& graph) {
  const Output *sum = graph.find_output(plan::kLossSum), *count = graph.find_output(plan::kTargetCount);
  if (sum == nullptr or count == nullptr or graph.find_output("loss") != nullptr) return;
  Builder builder(graph);
  const Builder::Scope scope(builder, {}, Part::kLoss);
  const Val total = builder.val(sum->value);
  builder.output("loss", total / cast(builder.val(count->value), total.dtype()));
}

/// The steps of the stage's entry that do the work of several nodes, and those that are one kernel. Text of a plan may be anything.
std::vector<onnx::NodeGroup> groups_of(const plan::Plan& plan, const plan::Program& program, const plan::Entry& entry) {
  const std::string* text = find_stage(plan, program, step_nodes_stage(entry.name));
  if (text == nullptr) return {};
  const Json steps = parse_untrusted_json<Json>(*text);
  if (not steps.is_array() or steps.size() != entry.steps.size()) return {};
  std::vector<onnx::NodeGroup> groups;
  for (std::size_t i = 0; i < entry.steps.size(); ++i) {
    onnx::NodeGroup group{.name = name_of(entry.steps[i]), .origin = entry.steps[i].origin, .nodes = {}};
    for (const Json& node : steps[i])
      if (node.is_number_unsigned()) group.nodes.emplace_back(node.get<std::size_t>());
    if (not group.nodes.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

/// A stage as a model that runs.
onnx::ModelProto model_of_stage(const Contents& contents, const plan::Program& program, const std::string& stage) {
  const plan::Plan& plan = *contents.plan;
  Graph graph = graph_of(contents, stage, program.target);
  Initials initials;
  for (const plan::Persistent& persistent : program.persistents) initials.emplace(persistent.name, &persistent.initial);
  add_data(graph, initials);
  const plan::Entry* entry = program.find(stage);
  if (std::ranges::any_of(graph.nodes(), [](const Node& node) { return node.op->whole; })) (void)expand(graph);  // what waits for a target's rows is no operator
  if (entry == nullptr) return onnx::export_step(std::move(graph));
  add_defaults(graph, *entry, plan.recipe_json.empty() ? Recipe{} : recipe_from_json(plan.recipe_json));
  add_loss(graph);
  if (inline_calls(graph) == Changed::kYes) return onnx::export_step(std::move(graph));  // steps no longer say which nodes are one
  return onnx::export_step(std::move(graph), groups_of(plan, program, *entry));
}

}  // namespace

std::string onnx_form(const Contents& contents, const DescribeOptions& options, std::vector<std::string>& notes) {
  if (contents.plan) {
    const plan::Program& program = find_program(*contents.plan, options.target);
    if (not options.stage.empty()) return model_of_stage(contents, program, options.stage).SerializeAsString();
    if (contents.plan->graphs.contains(plan::kTrainStep)) notes.emplace_back("this is the model with its training beside it (TrainingInfoProto); --stage train_step writes one step of the training, which any runtime can run");
    return model_of(*contents.plan, program, folder_of(contents.path), notes).SerializeAsString();
  }
  if (contents.graph) return onnx::export_step(contents.graph->clone()).SerializeAsString();
  throw Error(Code::kUsage, contents.model ? "--as onnx: the file is ONNX already" : "--as onnx: the file holds tensors, and no graph", {}, {"it is for .hone and .hir files"});
}

}  // namespace hone
