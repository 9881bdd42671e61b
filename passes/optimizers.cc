#include "passes/optimizers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/patterns.h"
#include "base/text.h"
#include "ir/ops/ops.h"
#include "passes/weight_names.h"

namespace hone {

namespace {

using Options = Recipe::Optimizer;
using State = OptimizerState;

bool has_momentum(const Options& o, const Type&) { return o.momentum != 0; }
bool is_matrix(const Options&, const Type& weight) { return weight.shape.size() >= 2; }
bool is_no_matrix(const Options& o, const Type& weight) { return not is_matrix(o, weight); }

constexpr State kFirstMoment = {.name = "m"}, kSecondMoment = {.name = "v"};
constexpr State kLargest = {.name = "v_max", .is_needed = [](const Options& o, const Type&) { return o.amsgrad; }};
constexpr State kMomentumSoFar = {.name = "mu_product", .initial = [](const Options&) { return 1.0; }, .extent = State::Extent::kShared};

/// The one table of optimizers.
constexpr OptimizerRow kOptimizers[] = {
    {"sgd", &op::sgd, {{.name = "velocity", .is_needed = has_momentum}}},
    {"adam", &op::adam, {kFirstMoment, kSecondMoment, kLargest}},
    {"adamw", &op::adamw, {kFirstMoment, kSecondMoment, kLargest}},
    {"nadam", &op::nadam, {kFirstMoment, kSecondMoment, kMomentumSoFar}},
    {"rmsprop",
     &op::rmsprop,
     {{.name = "mean_square"}, {.name = "mean", .is_needed = [](const Options& o, const Type&) { return o.centered; }}, {.name = "velocity", .is_needed = has_momentum}}},
    {"adagrad", &op::adagrad, {{.name = "sum", .initial = [](const Options& o) { return o.initial_accumulator_value; }}}},
    {"adamax", &op::adamax, {kFirstMoment, {.name = "largest"}}},
    {"adadelta", &op::adadelta, {{.name = "mean_square"}, {.name = "mean_square_move"}}},
    {"lamb", &op::lamb, {kFirstMoment, kSecondMoment}},
    {"lion", &op::lion, {kFirstMoment}},
    {"muon", &op::muon, {{.name = "velocity"}}},
    {"adafactor",
     &op::adafactor,
     {{.name = "rows", .is_needed = is_matrix, .extent = State::Extent::kRows},
      {.name = "columns", .is_needed = is_matrix, .extent = State::Extent::kColumns},
      {.name = "v", .is_needed = is_no_matrix}}},
};

const OptimizerRow& row_named(std::string_view kind) {
  const auto row = std::find_if(std::begin(kOptimizers), std::end(kOptimizers), [&](const OptimizerRow& r) { return r.kind == kind; });
  if (row == std::end(kOptimizers)) throw Error(Code::kRecipeValue, fmt::format("optimizer.kind = {} is none that Hone knows", quoted(kind)));
  return *row;
}

/// Keras's Muon has exclude_embeddings = True: variables with that word in their path.
bool is_called_embedding(const TrainedWeight& weight) {
  const auto says_so = [](const std::string& name) { return lower_case(name).find("embedding") != std::string::npos; };
  return says_so(weight.name) or std::ranges::any_of(weight.also_called, says_so);
}

/// To AdamW: what is no matrix, and what the recipe names, or where it names nothing, Keras does.
bool is_left_by_muon(const Recipe& recipe, const TrainedWeight& weight, const Type& type) {
  const std::vector<std::string>& named = recipe.optimizer.exclude_from_muon;
  const bool by_default = named.empty() and recipe.train.convention == Convention::kKeras;
  return type.shape.size() != 2 or not weight.is_matrix or (by_default ? is_called_embedding(weight) : matches_weight(named, weight.name, weight.also_called));
}

}  // namespace

Type OptimizerState::type_for(const Type& weight) const {
  if (extent == Extent::kShared) return {DType::kF64, {}};
  Type type = weight;
  if (extent != Extent::kWeight) type.shape[type.shape.size() - (extent == Extent::kRows ? 1 : 2)] = 1;
  return type;
}

const OptimizerRow& optimizer_for(const Recipe& recipe, const TrainedWeight& weight, const Type& type) {
  const OptimizerRow& row = row_named(recipe.optimizer.kind);
  return *row.op == op::muon and is_left_by_muon(recipe, weight, type) ? row_named("adamw") : row;
}

Attrs optimizer_attributes(const Recipe& recipe, const OpDef& op, const TrainedWeight& weight) {
  const Options& o = recipe.optimizer;
  const bool decays = not matches_weight(o.exclude_from_weight_decay, weight.name, weight.also_called) and (o.weight_decay_on == "all" or weight.is_matrix);
  const bool keras = recipe.train.convention == Convention::kKeras;
  const Attrs all = {kBeta1 = o.beta1,           kBeta2 = o.beta2,         kEpsilon = o.epsilon,         kRho = o.rho,
                     kMomentum = o.momentum,     kDampening = o.dampening, kNesterov = o.nesterov,       kCentered = o.centered,
                     kAmsgrad = o.amsgrad,       kLrDecay = o.lr_decay,    kKeras = keras,               kWeightDecay = decays ? o.weight_decay : 0,
                     kBeta2Decay = o.beta2_decay, kEpsilon2 = o.epsilon2,  kClipThreshold = o.clip_threshold, kOutputsLast = weight.outputs_last, kMomentumDecay = keras ? 1 : o.momentum_decay};
  Attrs used;
  for (const AttrRef& key : op.attrs)
    for (const auto& [name, attr] : all)
      if (attr.spec == key.spec) used.set(attr);
  return used;
}

}  // namespace hone
