#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/patterns.h"
#include "base/recipe_tables.h"
#include "ir/ops/formulas.h"
#include "ir/ops/ops.h"
#include "passes/names.h"
#include "passes/optimizers.h"
#include "passes/passes.h"
#include "passes/weight_names.h"

namespace hone {

namespace {

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
  const std::string way_out = "write one FROM:TO for each axis, \":\" for all of it";
  if (const auto axes = std::ranges::count(text, ','); axes != static_cast<std::ptrdiff_t>(shape.size()))
    throw Error(Code::kRecipeModel, fmt::format("model.train_only: \"{}{}\" names {} axes, the weight has {}", name, part, axes, shape.size()), {}, {way_out});
  for (std::size_t at = 0, end; (end = text.find(',', at)) != std::string::npos; at = end + 1) {
    const std::string range = text.substr(at, end - at);
    const std::size_t colon = range.find(':');
    const std::int64_t extent = shape[ranges.size()];
    const auto number = [](const std::string& digits, std::int64_t otherwise) { return digits.empty() or digits.size() > 12 ? otherwise : std::stoll(digits); };
    if (colon == std::string::npos or range.find(':', colon + 1) != std::string::npos) {
      ranges.emplace_back(-1, -1);
    } else {
      ranges.emplace_back(number(range.substr(0, colon), 0), number(range.substr(colon + 1), extent));
    }
    if (ranges.back().first < 0 or ranges.back().first >= ranges.back().second or ranges.back().second > extent)
      throw Error(Code::kRecipeModel, fmt::format("model.train_only: \"{}{}\": \"{}\" is no range of an axis of {} elements", name, part, range, extent), {}, {way_out});
  }
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
  Attacher(Graph& graph, const Objective& objective, const Recipe& recipe, OptimizerOptions options)
      : graph_(graph), builder_(graph), objective_(objective), recipe_(recipe), options_(options) {}

  void run(std::span<const TrainedWeight> weights, std::span<const ValueId> gradients) {
    check_exclusions(weights, "optimizer.exclude_from_weight_decay", recipe_.optimizer.exclude_from_weight_decay);
    check_exclusions(weights, "optimizer.exclude_from_muon", recipe_.optimizer.exclude_from_muon);
    const Builder::Scope scope(builder_, Loc{.derived = "update"}, Part::kUpdate);
    rate_ = builder_.input(Role::kInput, unused_name(graph_, "learning_rate"), {DType::kF64, {}});
    const Val step = builder_.input(Role::kState, unused_name(graph_, "step"), {DType::kF64, {}}, Tensor::scalar(0.0));
    step_ = step + 1.0;
    builder_.alias(step, step_);
    std::vector<Val> means = mean_gradients(weights, gradients);
    clip(weights, means);
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (means[i].valid()) update(weights[i], means[i]);
  }

 private:
  void check_exclusions(std::span<const TrainedWeight> weights, const char* key, const std::vector<std::string>& patterns) const {
    std::vector<std::string> names;
    for (const TrainedWeight& weight : weights) {
      names.push_back(weight.name);
      names.insert(names.end(), weight.also_called.begin(), weight.also_called.end());
    }
    for (const std::string& pattern : patterns)
      if (std::none_of(weights.begin(), weights.end(), [&](const TrainedWeight& weight) { return matches_weight(pattern, weight.name, weight.also_called); }))
        refuse_pattern(key, pattern, "weight that is trained", "the weights that are trained", names);
  }

  /// The gradients of the mean loss; invalid where no gradient reaches the weight.
  std::vector<Val> mean_gradients(std::span<const TrainedWeight> weights, std::span<const ValueId> sums) {
    Val per_target;
    if (objective_.target_count.valid()) per_target = 1.0 / cast(target_divisor(builder_.val(objective_.target_count)), DType::kF64);
    std::vector<Val> means(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (not sums[i].valid()) continue;
      const Builder::Scope scope(builder_, Loc{.derived = "update of " + weights[i].name}, Part::kUpdate);
      const Val gradient = builder_.val(sums[i]);
      means[i] = per_target.valid() ? gradient * cast(per_target, gradient.dtype()) : gradient;
      if (options_.gradient_norms) builder_.output("grad_norm:" + weights[i].name, cast(op::sqrt(sum_all(square(means[i]))), DType::kF32));
    }
    return means;
  }

  /// Makes the gradients no longer, or their elements no larger, than the recipe says. The length is that of all that is trained, as one vector.
  void clip(std::span<const TrainedWeight> weights, std::vector<Val>& gradients) {
    const bool by_norm = recipe_.optimizer.clip_norm > 0;
    Val square_sum, scale, largest;
    for (std::size_t i = 0; by_norm and i < gradients.size(); ++i) {
      if (not gradients[i].valid()) continue;
      const Val own = cast(sum_all(square(of_part(weights[i], gradients[i], full(builder_, 0, gradients[i].dtype(), gradients[i].shape())))), DType::kF64);
      square_sum = square_sum.valid() ? square_sum + own : own;
    }
    if (square_sum.valid()) {  // PyTorch keeps the divisor from 0
      const Val norm = op::sqrt(square_sum), divisor = recipe_.train.convention == Convention::kKeras ? norm : norm + 1e-6;
      scale = op::minimum(limit("optimizer.clip_norm") / divisor, builder_.scalar(1, DType::kF64));
    }
    if (recipe_.optimizer.clip_value > 0) largest = limit("optimizer.clip_value");
    for (Val& gradient : gradients) {
      if (not gradient.valid()) continue;
      if (scale.valid()) gradient = gradient * cast(scale, gradient.dtype());
      if (largest.valid()) gradient = op::clip(gradient, cast(-largest, gradient.dtype()), cast(largest, gradient.dtype()));
    }
  }

  /// A number of the recipe's that a run may change (RecipeKey::When::kIfThere): a state that no step replaces, an f64 scalar.
  Val number(const std::string& key) {
    Val& state = numbers_[key];
    if (not state.valid()) state = builder_.input(Role::kState, unused_name(graph_, key), {DType::kF64, {}}, Tensor::scalar(find_recipe_key(key)->get(recipe_).number));
    return state;
  }
  /// The same of one of which 0 means none.
  Val limit(const std::string& key) {
    const Val given = number(key);
    return op::where(op::greater(given, builder_.scalar(0, DType::kF64)), given, builder_.scalar(std::numeric_limits<double>::infinity(), DType::kF64));
  }

  /// `inside` where the weight's part trains, else `outside`.
  Val of_part(const TrainedWeight& weight, Val inside, Val outside) {
    if (weight.part.empty()) return inside;
    return op::where(builder_.constant(part_mask(weight.part, weight.name, constant_shape(inside.shape()))), inside, outside);
  }

  void update(const TrainedWeight& trained, Val gradient) {
    const Builder::Scope scope(builder_, Loc{.derived = "update of " + trained.name}, Part::kUpdate);
    const Val weight = builder_.val(trained.value);
    const OptimizerRow& row = optimizer_for(recipe_, trained, weight.type());
    std::vector<Val> operands = {weight, gradient, rate_, step_};
    for (const OptimizerState& state : row.states)
      operands.push_back(state.is_needed(recipe_.optimizer, weight.type()) ? state_of(row, state, trained.name, weight.type()) : Val{});
    const std::size_t states_end = operands.size();
    Attrs attributes = optimizer_attributes(recipe_, *row.op, trained);
    for (std::size_t i = states_end; i < row.op->inputs.size(); ++i) operands.push_back(number_of(row.op->inputs[i], attributes));
    const std::vector<Val> results = row.op->build_all(operands, attributes);
    const Val updated = of_part(trained, results[0], weight);
    replace(weight, updated);
    std::size_t next = 1;
    for (std::size_t i = 4; i < states_end; ++i)
      if (operands[i].valid()) replace(operands[i], results[next++]);
    follow(trained, updated);
  }

  /// What the update's operand `input` ("beta1?") is, instead of the attribute of its name; nothing for a number that is 0, or that a recipe does not say.
  Val number_of(std::string_view input, Attrs& attributes) {
    const std::string_view name = input.substr(0, input.size() - 1);
    const auto found = std::ranges::find(attributes, name, [](const auto& entry) { return entry.first; });
    if (found == attributes.end() or std::get<double>(found->second.value) == 0 or not is_number_of(recipe_, name)) return {};
    attributes.erase(*found->second.spec);
    return number(fmt::format("optimizer.{}", name));
  }

  Val state_of(const OptimizerRow& row, const OptimizerState& state, const std::string& weight, const Type& type) {
    const Type own = state.type_for(type);
    const auto input = [&](std::string_view of) {
      return builder_.input(Role::kState, unused_name(graph_, fmt::format("{}/{}", of, state.name)), own, filled(own, state.initial(recipe_.optimizer)));
    };
    if (state.extent != OptimizerState::Extent::kShared) return input(weight);
    if (not shared_.contains(state.name)) shared_[state.name] = input(row.kind);
    return shared_[state.name];
  }

  /// The weight's moving average, which begins with the weight after the first update.
  void follow(const TrainedWeight& trained, Val updated) {
    if (recipe_.train.ema_decay == 0) return;
    const Val average = builder_.input(Role::kState, known_name(graph_, trained.name + "/ema", "the moving average of a weight (train.ema_decay)"), updated.type(), graph_.input_of(trained.value)->data);
    const Val share = op::where(op::equal(step_, builder_.scalar(1, DType::kF64)), builder_.scalar(1, DType::kF64), 1.0 - number("train.ema_decay"));
    builder_.alias(average, average + (updated - average) * cast(share, updated.dtype()));
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
  OptimizerOptions options_;
  Val rate_, step_;  ///< f64 scalars
  std::map<std::string_view, Val> shared_;
  std::map<std::string, Val> numbers_;  ///< by the recipe's key
};

}  // namespace

void attach_optimizer(Graph& graph, const Objective& objective, std::span<const TrainedWeight> weights, std::span<const ValueId> gradients, const Recipe& recipe,
                      OptimizerOptions options) {
  Attacher(graph, objective, recipe, options).run(weights, gradients);
}

}  // namespace hone
