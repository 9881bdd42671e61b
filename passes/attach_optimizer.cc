#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/patterns.h"
#include "ir/ops/ops.h"
#include "passes/names.h"
#include "passes/passes.h"

namespace hone {

namespace {

using Options = Recipe::Optimizer;

/// A state of an optimizer: the op's operand of that name.
struct StateRow {
  std::string_view name;
  bool (*is_needed)(const Options&) = [](const Options&) { return true; };
  double (*initial)(const Options&) = [](const Options&) { return 0.0; };
  bool shared = false;  ///< one f64 scalar for all weights
};

struct OptimizerRow {
  std::string_view kind;
  const OpDef* op;
  FixedList<StateRow, 4> states;
};

constexpr StateRow kFirstMoment = {.name = "m"}, kSecondMoment = {.name = "v"};
constexpr StateRow kLargest = {.name = "v_max", .is_needed = [](const Options& o) { return o.amsgrad; }};

/// The one table of optimizers: states in the order of the op's operands.
constexpr OptimizerRow kOptimizers[] = {
    {"sgd", &op::sgd, {{.name = "velocity", .is_needed = [](const Options& o) { return o.momentum != 0; }}}},
    {"adam", &op::adam, {kFirstMoment, kSecondMoment, kLargest}},
    {"adamw", &op::adamw, {kFirstMoment, kSecondMoment, kLargest}},
    {"nadam", &op::nadam, {kFirstMoment, kSecondMoment, {.name = "mu_product", .initial = [](const Options&) { return 1.0; }, .shared = true}}},
    {"rmsprop",
     &op::rmsprop,
     {{.name = "mean_square"}, {.name = "mean", .is_needed = [](const Options& o) { return o.centered; }}, {.name = "velocity", .is_needed = [](const Options& o) { return o.momentum != 0; }}}},
    {"adagrad", &op::adagrad, {{.name = "sum", .initial = [](const Options& o) { return o.initial_accumulator_value; }}}},
};

Attrs attributes(const Recipe& recipe, const OpDef& op, const std::string& weight) {
  Options o = recipe.optimizer;
  if (matches_any(o.exclude_from_weight_decay, weight)) o.weight_decay = 0;
  const bool keras = recipe.train.convention == Convention::kKeras;
  const Attrs all = {kBeta1 = o.beta1,           kBeta2 = o.beta2,         kEpsilon = o.epsilon,   kRho = o.rho,           kMomentum = o.momentum, kDampening = o.dampening,
                     kNesterov = o.nesterov,     kCentered = o.centered,   kAmsgrad = o.amsgrad,   kLrDecay = o.lr_decay,  kKeras = keras,         kWeightDecay = o.weight_decay,
                     kMomentumDecay = keras ? 1 : o.momentum_decay};
  Attrs used;
  for (const AttrRef& key : op.attrs)
    for (const auto& [name, attr] : all)
      if (attr.spec == key.spec) used.set(attr);
  return used;
}

Tensor filled(const Type& type, double value) {
  Tensor tensor = Tensor::zeros(type.dtype, constant_shape(type.shape));
  if (value == 0) return tensor;
  const Tensor element = Tensor::scalar(value).cast(type.dtype);
  return Tensor::make(type.dtype, tensor.shape(), [&](std::span<std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += element.byte_count()) std::copy(element.bytes().begin(), element.bytes().end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  });
}

/// "[:, 0:80]" as a bool tensor of the weight's shape with 1 where it trains.
Tensor part_mask(const std::string& part, const std::string& name, const std::vector<std::int64_t>& shape) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  std::string text = part.substr(1, part.size() - 2) + ",";
  std::erase(text, ' ');
  for (std::size_t at = 0, end; (end = text.find(',', at)) != std::string::npos; at = end + 1) {
    const std::string range = text.substr(at, end - at);
    const std::size_t colon = range.find(':');
    const std::int64_t extent = ranges.size() < shape.size() ? shape[ranges.size()] : 0;
    const auto number = [](const std::string& digits, std::int64_t otherwise) { return digits.empty() or digits.size() > 12 ? otherwise : std::stoll(digits); };
    if (colon == std::string::npos or range.find(':', colon + 1) != std::string::npos) {
      ranges.emplace_back(-1, -1);
    } else {
      ranges.emplace_back(number(range.substr(0, colon), 0), number(range.substr(colon + 1), extent));
    }
    if (ranges.back().first < 0 or ranges.back().first >= ranges.back().second or ranges.back().second > extent)
      throw Error(Code::kRecipeModel, fmt::format("model.train_only: \"{}{}\": \"{}\" is no range of an axis of {} elements", name, part, range, extent), {},
                  {"write one FROM:TO for each axis, \":\" for all of it"});
  }
  if (ranges.size() != shape.size())
    throw Error(Code::kRecipeModel, fmt::format("model.train_only: \"{}{}\" names {} axes, the weight has {}", name, part, ranges.size(), shape.size()));
  return Tensor::make(DType::kBool, shape, [&](std::span<std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bool inside = true;
      auto rest = static_cast<std::int64_t>(i);
      for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) inside = inside and rest % shape[axis] >= ranges[axis].first and rest % shape[axis] < ranges[axis].second;
      bytes[i] = std::byte{inside};
    }
  });
}

class Attacher {
 public:
  Attacher(Graph& graph, const Objective& objective, const Recipe& recipe) : graph_(graph), builder_(graph), objective_(objective), recipe_(recipe) {
    const auto row = std::find_if(std::begin(kOptimizers), std::end(kOptimizers), [&](const OptimizerRow& r) { return r.kind == recipe.optimizer.kind; });
    if (row == std::end(kOptimizers)) throw Error(Code::kRecipeValue, fmt::format("optimizer.kind = \"{}\" is not supported yet", recipe.optimizer.kind));
    row_ = row;
  }

  void run(std::span<const TrainedWeight> weights, std::span<const ValueId> gradients, OptimizerOptions options) {
    check_exclusions(weights);
    const Builder::Scope scope(builder_, Loc{.derived = "update"}, Part::kUpdate);
    rate_ = builder_.input(Role::kInput, unused_name(graph_, "learning_rate"), {DType::kF64, {}});
    const Val step = builder_.input(Role::kState, unused_name(graph_, "step"), {DType::kF64, {}}, Tensor::scalar(0.0));
    step_ = step + 1.0;
    builder_.alias(step, step_);
    if (objective_.target_count.valid()) per_target_ = 1.0 / cast(builder_.val(objective_.target_count), DType::kF64);
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (gradients[i].valid()) update(weights[i], builder_.val(gradients[i]), options);
  }

 private:
  void check_exclusions(std::span<const TrainedWeight> weights) const {
    std::vector<std::string> names;
    for (const TrainedWeight& weight : weights) names.push_back(weight.name);
    for (const std::string& pattern : recipe_.optimizer.exclude_from_weight_decay)
      if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return matches_name(pattern, name); }))
        refuse_pattern("optimizer.exclude_from_weight_decay", pattern, "weight that is trained", "the weights that are trained", names);
  }

  void update(const TrainedWeight& trained, Val gradient_sum, OptimizerOptions options) {
    const Builder::Scope scope(builder_, Loc{.derived = "update of " + trained.name}, Part::kUpdate);
    const Val weight = builder_.val(trained.value);
    const Val gradient = per_target_.valid() ? gradient_sum * cast(per_target_, gradient_sum.dtype()) : gradient_sum;
    if (options.gradient_norms) builder_.output("grad_norm:" + trained.name, cast(op::sqrt(sum_all(square(gradient))), DType::kF32));
    std::vector<Val> operands = {weight, gradient, rate_, step_};
    for (const StateRow& state : row_->states) operands.push_back(state.is_needed(recipe_.optimizer) ? state_of(state, trained.name, weight.type()) : Val{});
    const std::vector<Val> results = row_->op->build_all(operands, attributes(recipe_, *row_->op, trained.name));
    Val updated = results[0];
    if (not trained.part.empty()) updated = op::where(builder_.constant(part_mask(trained.part, trained.name, constant_shape(weight.shape()))), updated, weight);
    replace(weight, updated);
    std::size_t next = 1;
    for (std::size_t i = 4; i < operands.size(); ++i)
      if (operands[i].valid()) replace(operands[i], results[next++]);
  }

  Val state_of(const StateRow& state, const std::string& weight, const Type& type) {
    if (not state.shared) return builder_.input(Role::kState, fmt::format("{}/{}", weight, state.name), type, filled(type, state.initial(recipe_.optimizer)));
    if (not shared_.contains(state.name))
      shared_[state.name] = builder_.input(Role::kState, fmt::format("{}/{}", row_->kind, state.name), {DType::kF64, {}}, Tensor::scalar(state.initial(recipe_.optimizer)));
    return shared_[state.name];
  }

  /// Shared states come out the same of every update; the first one counts.
  void replace(Val state, Val value) {
    const auto& aliases = graph_.aliases();
    if (std::any_of(aliases.begin(), aliases.end(), [&](const Alias& alias) { return alias.state == state.id(); })) return;
    builder_.alias(state, value);
  }

  Graph& graph_;
  Builder builder_;
  const Objective& objective_;
  const Recipe& recipe_;
  const OptimizerRow* row_ = nullptr;
  Val rate_, step_, per_target_;  ///< f64 scalars
  std::map<std::string_view, Val> shared_;
};

}  // namespace

void attach_optimizer(Graph& graph, const Objective& objective, std::span<const TrainedWeight> weights, std::span<const ValueId> gradients, const Recipe& recipe,
                      OptimizerOptions options) {
  Attacher(graph, objective, recipe).run(weights, gradients, options);
}

}  // namespace hone
