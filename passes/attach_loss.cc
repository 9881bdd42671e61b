#include <fmt/format.h>

#include <algorithm>

#include "base/objectives.h"
#include "base/text.h"
#include "ir/ops/ops.h"
#include "ir/samples.h"
#include "passes/metrics.h"
#include "passes/names.h"
#include "passes/passes.h"

namespace hone {

namespace {

/// A loss and its op; what it compares is in the table of losses (base/objectives.cc).
struct LossRow {
  std::string_view kind;
  const OpDef* op;
  const OpDef* behind = nullptr;        ///< where the output ends in this ...
  const OpDef* from_before = nullptr;   ///< ... this loss of what stands before it is the same, and stable
};
constexpr LossRow kLosses[] = {
    {"softmax_cross_entropy", &op::softmax_cross_entropy},
    {"cross_entropy", &op::cross_entropy, &op::softmax, &op::softmax_cross_entropy},
    {"nll", &op::nll},
    {"mse", &op::mse},
    {"mae", &op::mae},
    {"huber", &op::huber},
    {"bce", &op::bce, &op::sigmoid, &op::bce_with_logits},
    {"bce_with_logits", &op::bce_with_logits},
    {"hinge", &op::hinge},
    {"squared_hinge", &op::squared_hinge},
    {"log_cosh", &op::log_cosh},
    {"msle", &op::msle},
    {"mape", &op::mape},
    {"poisson", &op::poisson},
    {"kl_divergence", &op::kl_divergence},
    {"cosine", &op::cosine},
    {"output", &op::given_loss},
};

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
  if (axis == 0 and find_loss(recipe.loss.kind)->knows_classes)
    throw Error(Code::kRecipeModel, fmt::format("loss.class_axis = {} is the first axis of the output {}, which is that of the samples", recipe.loss.class_axis, to_string(output)), {},
                {"axes count from 0, and -1 is the last one, which is the default"});
  return axis;
}

/// One loss being attached to one output.
class LossAttacher {
 public:
  LossAttacher(Graph& graph, const Recipe& recipe)
      : graph_(graph), recipe_(recipe), builder_(graph), samples_(samples_of(graph)), chosen_(chosen_output(graph, recipe)), output_(builder_.val(chosen_.value)) {
    const auto row = std::find_if(std::begin(kLosses), std::end(kLosses), [&](const LossRow& loss) { return loss.kind == recipe.loss.kind; });
    const LossKind* kind = find_loss(recipe.loss.kind);
    if (row == std::end(kLosses) or kind == nullptr) throw Error(Code::kRecipeValue, fmt::format("loss.kind = {} is none that Hone knows", quoted(recipe.loss.kind)));
    row_ = row;
    kind_ = kind;
    if (not is_float(output_.dtype()))
      throw Error(Code::kRecipeModel, fmt::format("output \"{}\" is {}: a loss needs floats", chosen_.name, to_string(output_.type())), {},
                  {"choose floats, such as the logits: [model] output = \"NAME\", where NAME is an output or any other value that a node makes"});
  }

  Objective run() {
    const Builder::Scope scope(builder_, Loc{.node = "loss " + recipe_.loss.kind}, Part::kLoss);
    if (size_of(output_.dtype()) < size_of(DType::kF32)) output_ = cast(output_, DType::kF32);  // f16 ends at 65504 and counts to 2048
    if (kind_->has_class_axis) axis_ = class_axis(recipe_, output_.type());
    const Val target = kind_->compared == Compared::kNothing ? Val{} : add_target();
    std::vector<Val> results = loss_of(target);
    for (Val& result : results) result = cast(result, DType::kF32);  // what the trainer reads, whatever the model computes in
    builder_.clear_outputs();
    builder_.output("loss_sum", results[0]);
    builder_.output("target_count", results[1]);
    const Val judged = has_probabilities() ? op::argmax(target, {kAxis = axis_}) : target;
    for (const std::string& metric : recipe_.metrics.list)
      builder_.output("metric:" + metric, metric_sums(metric, {.output = output_, .target = judged, .loss = *kind_, .op = *row_->op, .classes = class_attrs()}));
    return {results[0].id(), results[1].id()};
  }

 private:
  bool has_classes() const { return kind_->compared == Compared::kClasses; }
  bool has_probabilities() const { return has_classes() and recipe_.loss.targets == "probabilities"; }
  bool has_class_numbers() const { return has_classes() and not has_probabilities(); }
  Attrs class_attrs() const {
    return has_classes() ? Attrs{kAxis = axis_, kHasIgnoreIndex = recipe_.loss.has_ignore_index, kIgnoreIndex = recipe_.loss.ignore_index} : Attrs{};
  }

  Val add_target() {
    Type type = output_.type();
    if (has_class_numbers()) {
      type.dtype = DType::kI64;
      type.shape.erase(type.shape.begin() + axis_);
    }
    const Val target = builder_.input(Role::kInput, unused_name(graph_, "target"), type);
    if (has_class_numbers()) builder_.set_bounds(target.id(), 0, output_.shape()[static_cast<std::size_t>(axis_)]);
    return target;
  }

  std::vector<Val> loss_of(Val target) {
    const OpDef* loss = row_->op;
    Val scores = output_;
    if (row_->behind != nullptr and graph_.is_op(chosen_.value, *row_->behind) and (not has_classes() or graph_.producer(chosen_.value).attrs[kAxis] == axis_)) {
      loss = row_->from_before;
      scores = builder_.val(graph_.producer(chosen_.value).operands[0]);
      if (scores.dtype() != output_.dtype()) scores = cast(scores, output_.dtype());
    }
    if (kind_->compared == Compared::kNothing and scores.rank() == 0 and not samples_.is_constant(0)) scores = broadcast_to(scores, {samples_});  // a mean over the samples
    std::vector<Val> operands = {scores};
    if (target.valid()) operands.push_back(target);
    if (kind_->knows_classes) operands.push_back(class_weights());
    operands.push_back(sample_weights(target.valid() ? target : output_));
    Attrs all = class_attrs(), used;
    for (const Attr& attr : {kLabelSmoothing = recipe_.loss.label_smoothing, kDelta = recipe_.loss.delta, kAxis = axis_, kKeras = recipe_.train.convention == Convention::kKeras}) all.set(attr);
    for (const AttrRef& key : loss->attrs)
      for (const auto& [name, attr] : all)
        if (attr.spec == key.spec) used.set(attr);
    return loss->build_all(operands, used);
  }

  /// Invalid if all classes count the same.
  Val class_weights() {
    const std::vector<double>& weights = recipe_.loss.class_weights;
    if (weights.empty()) return {};
    const auto count = static_cast<std::int64_t>(weights.size());
    const Dim classes = has_classes() ? output_.shape()[static_cast<std::size_t>(axis_)] : Dim(2);
    if (not classes.is_constant(count))
      throw Error(Code::kRecipeModel, fmt::format("loss.class_weights has {} numbers, and output \"{}\" has {} classes", count, chosen_.name, classes.text()), {},
                  {fmt::format("give one number a class, in the order of the classes; the output is {}, its axis {} has the classes", to_string(output_.type()), axis_)});
    return builder_.constant(Tensor::of<double>({count}, weights).cast(output_.dtype()));
  }

  /// The input `sample_weight`, one number along the first axis of `of`; invalid if all samples count the same.
  Val sample_weights(Val of) {
    if (not recipe_.loss.sample_weights) return {};
    const bool has_samples = of.rank() > 0 and (has_class_numbers() or not kind_->has_class_axis or axis_ > 0) and (not samples_.is_symbol() or of.shape()[0] == samples_);
    if (not has_samples)
      throw Error(Code::kRecipeModel,
                  fmt::format("loss.sample_weights: the loss {} of output \"{}\", which is {}, has no axis of samples", recipe_.loss.kind, chosen_.name, to_string(output_.type())),
                  {}, {"leave it out: every sample then counts the same"});
    const Val weights = builder_.input(Role::kInput, unused_name(graph_, "sample_weight"), {DType::kF32, {of.shape()[0]}});
    return output_.dtype() == DType::kF32 ? weights : cast(weights, output_.dtype());
  }

  Graph& graph_;
  const Recipe& recipe_;
  Builder builder_;
  Dim samples_;
  Output chosen_;  ///< by value: the graph's outputs are replaced
  Val output_;
  const LossRow* row_ = nullptr;
  const LossKind* kind_ = nullptr;
  std::int64_t axis_ = 0;
};

}  // namespace

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
  throw Error(Code::kRecipeModel, fmt::format("model.output = \"{}\": the model has no such output", wanted), {}, {"its outputs: " + quoted_list(names), "it may be any value that a node of the model makes, by the name that it has in the file"});
}

Objective attach_loss(Graph& graph, const Recipe& recipe) { return LossAttacher(graph, recipe).run(); }

}  // namespace hone
