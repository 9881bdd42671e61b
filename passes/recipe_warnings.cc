// What a recipe asks for that is allowed but seldom meant.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "ir/ops/ops.h"
#include "passes/passes.h"

namespace hone {

namespace {

/// What an output ends in.
enum class Ending : std::uint8_t { kLinear, kSoftmax, kSigmoid, kRelu, kOther };

/// A sum of products, perhaps with a bias, is that of a layer without an activation.
Ending ending_of(const Graph& graph, ValueId value) {
  const auto is_product = [&](ValueId of) { return graph.is_op(of, op::matmul) or graph.is_op(of, op::conv); };
  if (graph.is_op(value, op::softmax)) return Ending::kSoftmax;
  if (graph.is_op(value, op::sigmoid)) return Ending::kSigmoid;
  if (graph.is_op(value, op::relu)) return Ending::kRelu;
  const bool is_sum = graph.is_op(value, op::add) and std::ranges::any_of(graph.producer(value).operands, is_product);
  return is_sum or is_product(value) ? Ending::kLinear : Ending::kOther;
}

/// A loss beside an output that it is not made for: most slips of those who move a model here from a framework that says from_logits.
struct Misfit {
  std::string_view loss;
  Ending ending;
  std::string_view what, way_out;
  std::optional<Convention> convention = {};  ///< whose loss of that name it is; nothing: both are so
};
constexpr Misfit kMisfits[] = {
    {"softmax_cross_entropy", Ending::kSoftmax, "ends in Softmax, and the loss softmax_cross_entropy takes the softmax of it again", "loss.kind = \"cross_entropy\" is for probabilities, and is computed from the logits"},
    {"softmax_cross_entropy", Ending::kSigmoid, "ends in Sigmoid, and the loss softmax_cross_entropy takes logits, which are in front of it", "where each class is a yes or no of its own it is loss.kind = \"bce\"; else name what stands in front: model.output"},
    {"softmax_cross_entropy", Ending::kRelu, "ends in Relu, and the loss softmax_cross_entropy takes logits, which may be negative", "the last layer of a classifier has no activation; model.output names what stands in front of it"},
    {"bce_with_logits", Ending::kSigmoid, "ends in Sigmoid, and the loss bce_with_logits takes the sigmoid of it again", "loss.kind = \"bce\" is for probabilities, and is computed from the logits"},
    {"cross_entropy", Ending::kLinear, "is that of a linear layer, which may be any number, and the loss cross_entropy takes probabilities (what a softmax gives)", "for such an output (logits) it is loss.kind = \"softmax_cross_entropy\""},
    {"cross_entropy", Ending::kSigmoid, "ends in Sigmoid, and the loss cross_entropy takes probabilities of classes that exclude each other (what a softmax gives)", "where each class is a yes or no of its own it is loss.kind = \"bce\""},
    {"nll", Ending::kLinear, "is that of a linear layer, which may be any number, and the loss nll takes logarithms of probabilities (what a log-softmax gives)", "for such an output (logits) it is loss.kind = \"softmax_cross_entropy\""},
    {"nll", Ending::kSoftmax, "ends in Softmax, and the loss nll takes logarithms of probabilities", "for probabilities it is loss.kind = \"cross_entropy\""},
    {"bce", Ending::kLinear, "is that of a linear layer, which may be any number, and the loss bce takes probabilities (what a sigmoid gives)", "for such an output (logits) it is loss.kind = \"bce_with_logits\""},
    {"kl_divergence", Ending::kSoftmax, "ends in Softmax, and PyTorch's kl_divergence takes logarithms of probabilities", "take what a log-softmax gives; train.convention = \"keras\" compares probabilities", Convention::kTorch},
    {"kl_divergence", Ending::kLinear, "is that of a linear layer, which may be any number, and PyTorch's kl_divergence takes logarithms of probabilities (what a log-softmax gives)", "loss.kind = \"softmax_cross_entropy\" with loss.targets = \"probabilities\" takes such an output (logits)", Convention::kTorch},
    {"kl_divergence", Ending::kLinear, "is that of a linear layer, which may be any number, and the loss kl_divergence takes probabilities (what a softmax gives)", "loss.kind = \"softmax_cross_entropy\" with loss.targets = \"probabilities\" takes such an output (logits)", Convention::kKeras},
    {"poisson", Ending::kLinear, "is that of a linear layer, which may be negative, and Keras's poisson takes rates", "make rates of it with exp or softplus; train.convention = \"torch\" takes logarithms of rates", Convention::kKeras},
    {"msle", Ending::kLinear, "is that of a linear layer, which may be negative, and the loss msle takes its logarithm: what is below 0 counts as 0, and learns nothing", "end the model in relu or softplus, or take loss.kind = \"mse\""},
};

/// Of a loss of classes: is there but one?
bool has_one_class(const Graph& graph, const Output& output, const Recipe& recipe) {
  constexpr std::string_view kOfClasses[] = {"softmax_cross_entropy", "cross_entropy", "nll"};
  const Shape& shape = graph.type(output.value).shape;
  const auto rank = static_cast<std::int64_t>(shape.size()), axis = recipe.loss.class_axis < 0 ? recipe.loss.class_axis + rank : recipe.loss.class_axis;
  return std::ranges::find(kOfClasses, recipe.loss.kind) != std::end(kOfClasses) and axis >= 0 and axis < rank and shape[static_cast<std::size_t>(axis)].is_constant(1);
}

/// A key that is set and changes nothing, because of another one.
struct IdleKey {
  std::string_view key;
  bool (*is_set)(const Recipe&);
  bool (*counts)(const Recipe&, const Graph&);
  std::string_view why, way_out = "leave it out, or set the other key, too";
};
bool decays(const Recipe& recipe, const Graph&) { return recipe.optimizer.weight_decay > 0; }
bool is_f16(const Recipe& recipe, const Graph&) { return recipe.train.precision == "f16"; }
bool has_batch_norm(const Recipe&, const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) { return *node.op == op::batch_norm or *node.op == op::batch_norm_train; });
}
constexpr std::string_view kNoDecay = "optimizer.weight_decay is 0", kNotF16 = "train.precision is not \"f16\"";
constexpr std::string_view kNoBatchNorm = "the model has no batch normalization", kLeaveOut = "leave it out";
constexpr IdleKey kIdleKeys[] = {
    {"model.batch_norm", [](const Recipe& r) { return r.model.batch_norm != Recipe{}.model.batch_norm; }, has_batch_norm, kNoBatchNorm, kLeaveOut},
    {"model.sync_batch_norm", [](const Recipe& r) { return r.model.sync_batch_norm; }, has_batch_norm, kNoBatchNorm, kLeaveOut},
    {"optimizer.dampening", [](const Recipe& r) { return r.optimizer.dampening != 0; }, [](const Recipe& r, const Graph&) { return r.optimizer.momentum != 0; }, "optimizer.momentum is 0"},
    {"optimizer.exclude_from_weight_decay", [](const Recipe& r) { return not r.optimizer.exclude_from_weight_decay.empty(); }, decays, kNoDecay},
    {"optimizer.weight_decay_on", [](const Recipe& r) { return r.optimizer.weight_decay_on != Recipe{}.optimizer.weight_decay_on; }, decays, kNoDecay},
    {"train.keep_f32", [](const Recipe& r) { return not r.train.keep_f32.empty(); }, [](const Recipe& r, const Graph&) { return r.train.precision != "f32"; }, "train.precision is \"f32\": all nodes are kept so"},
    {"train.loss_scale", [](const Recipe& r) { return r.train.loss_scale != Recipe{}.train.loss_scale; }, is_f16, kNotF16},
    {"train.loss_scale_growth_steps", [](const Recipe& r) { return r.train.loss_scale_growth_steps != Recipe{}.train.loss_scale_growth_steps; }, is_f16, kNotF16},
};

Diag warning_of(std::string message, std::string way_out) { return {Code::kModelWarning, std::move(message), {}, {std::move(way_out)}, Severity::kWarning}; }

void warn_of_idle_keys(const Graph& graph, const Recipe& recipe, std::vector<Diag>& warnings) {
  for (const IdleKey& idle : kIdleKeys)
    if (idle.is_set(recipe) and not idle.counts(recipe, graph)) warnings.push_back(warning_of(fmt::format("{} is set and changes nothing: {}", idle.key, idle.why), std::string(idle.way_out)));
}

/// A run refuses names of no input; who compiles should hear of them at once.
void warn_of_scales(const Graph& graph, const Recipe& recipe, std::vector<Diag>& warnings) {
  std::vector<std::string> names;
  for (const Input& input : graph.inputs())
    if (input.role == Role::kInput) names.push_back(input.name);
  std::vector<std::string> known = names;
  if (names.size() == 1) known.emplace_back("x");
  for (const char* target : {"y", "target"}) known.emplace_back(target);
  if (recipe.loss.sample_weights) known.emplace_back("sample_weight");
  for (const auto& [name, factor] : recipe.data.scale) {
    if (std::ranges::count(known, name) > 0) continue;
    const std::string hint = did_you_mean(name, names);
    warnings.push_back(warning_of(fmt::format("data.scale names {}, which is no input", quoted(name)), hint.empty() ? fmt::format("the inputs are {}", printable(join(names, ", "), 500)) : hint));
  }
}

}  // namespace

std::vector<Diag> recipe_warnings(const Graph& graph, const Recipe& recipe) {
  std::vector<Diag> warnings;
  if (not recipe.can_train()) return warnings;
  const Output& output = chosen_output(graph, recipe);
  const auto warn = [&](std::string_view what, std::string_view way_out) {
    const Loc loc = graph.input_of(output.value) == nullptr ? graph.producer(output.value).loc : Loc{};
    warnings.push_back({Code::kModelWarning, fmt::format("output {} {}", quoted(output.name), what), loc, {std::string(way_out)}, Severity::kWarning});
  };
  if (has_one_class(graph, output, recipe))
    warn(fmt::format("has one class, and the loss {} learns nothing from one", recipe.loss.kind), "for a yes or no it is loss.kind = \"bce_with_logits\", or \"bce\" behind a sigmoid; hone-compile --new-head classes=2 makes it two classes");
  else
    for (const Misfit& misfit : kMisfits)
      if (misfit.loss == recipe.loss.kind and misfit.ending == ending_of(graph, output.value) and misfit.convention.value_or(recipe.train.convention) == recipe.train.convention) warn(misfit.what, misfit.way_out);
  warn_of_idle_keys(graph, recipe, warnings);
  warn_of_scales(graph, recipe, warnings);
  std::vector<Diag> of_dropout = dropout_warnings(graph, recipe);
  warnings.insert(warnings.end(), std::make_move_iterator(of_dropout.begin()), std::make_move_iterator(of_dropout.end()));
  return warnings;
}

}  // namespace hone
