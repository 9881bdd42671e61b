#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

namespace {

/// What a loss needs of its target.
enum class TargetKind { kClasses, kValues };

struct LossRow {
  std::string_view kind;
  const OpDef* op;
  TargetKind target;
};
constexpr LossRow kLosses[] = {
    {"softmax_cross_entropy", &op::softmax_cross_entropy, TargetKind::kClasses},
    {"cross_entropy", &op::cross_entropy, TargetKind::kClasses},
    {"mse", &op::mse, TargetKind::kValues},
    {"bce_with_logits", &op::bce_with_logits, TargetKind::kValues},
};

const Output& chosen_output(const Graph& graph, const Recipe& recipe) {
  const std::string& wanted = recipe.model.output;
  if (wanted.empty()) {
    if (graph.outputs().size() == 1) return graph.outputs()[0];
    std::string names;
    for (const Output& output : graph.outputs()) names += (names.empty() ? "\"" : ", \"") + output.name + "\"";
    throw Error(Code::kRecipeModel, fmt::format("the model has {} outputs: {}", graph.outputs().size(), names), {}, {"say which one the loss is of: [model] output = \"NAME\""});
  }
  if (const Output* output = graph.find_output(wanted)) return *output;
  std::vector<std::string> names;
  for (const Output& output : graph.outputs()) names.push_back(output.name);
  throw Error(Code::kRecipeModel, fmt::format("model.output = \"{}\": the model has no such output", wanted), {}, {"its outputs: " + quoted_list(names)});
}

/// The class axis as a position, or an error.
std::int64_t class_axis(const Recipe& recipe, const Type& output) {
  const auto rank = static_cast<std::int64_t>(output.shape.size());
  const std::int64_t axis = recipe.loss.class_axis < 0 ? recipe.loss.class_axis + rank : recipe.loss.class_axis;
  if (rank < 2)
    throw Error(Code::kRecipeModel, fmt::format("loss.kind = \"{}\" needs an output with an axis of samples and an axis of classes, and it is {}", recipe.loss.kind, to_string(output)), {},
                {"for one number a sample there are bce_with_logits and mse; loss.class_axis says which axis has the classes"});
  if (axis < 0 or axis >= rank)
    throw Error(Code::kRecipeModel, fmt::format("loss.class_axis = {} is no axis of the output {}", recipe.loss.class_axis, to_string(output)), {},
                {"axes count from 0, and -1 is the last one, which is the default"});
  return axis;
}

Attrs class_attrs(const Recipe& recipe, std::int64_t axis) {
  return {kAxis = axis, kHasIgnoreIndex = recipe.loss.has_ignore_index, kIgnoreIndex = recipe.loss.ignore_index};
}

Val add_target(Builder& builder, const Val& output, TargetKind kind, std::int64_t axis) {
  Type type = output.type();
  if (kind == TargetKind::kClasses) {
    type.dtype = DType::kI64;
    type.shape.erase(type.shape.begin() + axis);
  }
  std::string name = "target";
  while (builder.graph().find_input(name) != nullptr) name += "_";
  const Val target = builder.input(Role::kInput, name, type);
  if (kind == TargetKind::kClasses) builder.set_bounds(target.id(), 0, output.shape()[static_cast<std::size_t>(axis)]);
  return target;
}

void add_metric(Builder& builder, const std::string& metric, Val output, Val target, const Recipe& recipe, TargetKind kind) {
  if (kind != TargetKind::kClasses)
    throw Error(Code::kRecipeModel, fmt::format("metric \"{}\" needs integer classes, but the loss {} has values as targets", metric, recipe.loss.kind));
  const std::int64_t axis = class_axis(recipe, output.type());
  Attrs attrs = class_attrs(recipe, axis);
  std::int64_t k = 1;
  if (metric != "accuracy") {  // the recipe lets only accuracy and top_K_accuracy through
    k = std::stoll(metric.substr(4));
    const Dim& classes = output.shape()[static_cast<std::size_t>(axis)];
    if (classes.is_constant() and classes.value() < k)
      throw Error(Code::kRecipeModel, fmt::format("the metric {} is always 1, because the output has {} classes", metric, classes.value()), {},
                  {"leave it out of metrics.list"});
    attrs.set(kTopK = k);
    builder.output("metric:" + metric, cast(op::top_k_accuracy(output, target, attrs), DType::kF32));
  } else {
    builder.output("metric:" + metric, cast(op::accuracy(output, target, attrs), DType::kF32));
  }
}

}  // namespace

Objective attach_loss(Graph& graph, const Recipe& recipe) {
  const auto row = std::find_if(std::begin(kLosses), std::end(kLosses), [&](const LossRow& loss) { return loss.kind == recipe.loss.kind; });
  if (row == std::end(kLosses)) throw Error(Code::kRecipeValue, fmt::format("loss.kind = \"{}\" is not supported yet", recipe.loss.kind));
  const Output chosen = chosen_output(graph, recipe);
  Builder builder(graph);
  Val output = builder.val(chosen.value);
  if (not is_float(output.dtype())) throw Error(Code::kRecipeModel, fmt::format("output \"{}\" is {}: a loss needs floats", chosen.name, to_string(output.type())), {},
                {"choose an output of floats, such as the logits: [model] output = \"NAME\""});
  const Builder::Scope scope(builder, Loc{.node = "loss " + recipe.loss.kind}, Part::kLoss);
  if (size_of(output.dtype()) < size_of(DType::kF32)) output = cast(output, DType::kF32);  // f16 ends at 65504 and counts to 2048
  const std::int64_t axis = row->target == TargetKind::kClasses ? class_axis(recipe, output.type()) : 0;
  const Val target = add_target(builder, output, row->target, axis);

  const OpDef* loss = row->op;
  Val scores = output;
  Attrs attrs;
  if (row->target == TargetKind::kClasses) {
    attrs = class_attrs(recipe, axis);
    attrs.set(kLabelSmoothing = recipe.loss.label_smoothing);
    const bool is_softmax = graph.is_op(chosen.value, op::softmax) and graph.producer(chosen.value).attrs[kAxis] == axis;
    if (*loss == op::cross_entropy and is_softmax) {  // from its logits, stably
      loss = &op::softmax_cross_entropy;
      scores = builder.val(graph.producer(chosen.value).operands[0]);
    }
  }
  std::vector<Val> results = loss->build_all({scores, target}, attrs);
  for (Val& result : results) result = cast(result, DType::kF32);  // what the trainer reads, whatever the model computes in
  builder.clear_outputs();
  builder.output("loss_sum", results[0]);
  builder.output("target_count", results[1]);
  for (const std::string& metric : recipe.metrics.list) add_metric(builder, metric, output, target, recipe, row->target);
  return {results[0].id(), results[1].id()};
}

std::vector<Diag> recipe_warnings(const Graph& graph, const Recipe& recipe) {
  std::vector<Diag> warnings;
  if (not recipe.can_train()) return warnings;
  const Output& output = chosen_output(graph, recipe);
  if (recipe.loss.kind == "softmax_cross_entropy" and graph.is_op(output.value, op::softmax))
    warnings.push_back({Code::kModelWarning,
                        fmt::format("output \"{}\" ends in Softmax, and the loss softmax_cross_entropy takes the softmax of it again", output.name),
                        graph.producer(output.value).loc,
                        {"loss.kind = \"cross_entropy\" is for probabilities, and is computed from the logits"},
                        Severity::kWarning});
  std::vector<Diag> of_dropout = dropout_warnings(graph, recipe);
  warnings.insert(warnings.end(), std::make_move_iterator(of_dropout.begin()), std::make_move_iterator(of_dropout.end()));
  return warnings;
}

}  // namespace hone
