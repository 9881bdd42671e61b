#include <algorithm>
#include <array>
#include <vector>

#include "base/objectives.h"
#include "base/recipe_tables.h"

namespace hone {

namespace {

constexpr auto kKinds = std::to_array<RecipeKind>({
    {"loss.targets", "classes"},
    {"loss.targets", "probabilities"},
    {"optimizer.weight_decay_on", "all"},
    {"optimizer.weight_decay_on", "matrices"},
    {"model.initialize", "keep"},
    {"model.initialize", "he_normal"},
    {"model.initialize", "he_uniform"},
    {"model.initialize", "glorot_normal"},
    {"model.initialize", "glorot_uniform"},
    {"model.initialize", "normal"},
    {"model.initialize", "zeros"},
    {"model.batch_norm", "train"},
    {"model.batch_norm", "frozen"},
    {"model.frozen_precision", "f32"},
    {"model.frozen_precision", "bf16"},
    {"model.frozen_precision", "int8"},
    {"lora.export", "merged"},
    {"lora.export", "separate"},
    {"train.precision", "f32"},
    {"train.precision", "bf16"},
    {"train.precision", "f16"},
    {"train.precision", "tf32"},
    {"train.exchange_precision", "f32"},
    {"train.exchange_precision", "bf16"},
    {"train.convention", "torch"},
    {"train.convention", "keras"},
});

// What multiplies other counts has an end, so that products of counts stay numbers.
constexpr auto kRanges = std::to_array<RecipeRange>({
    {"model.dropout.rate", 0, 1, true},
    {"model.new_head.classes"},
    {"lora.rank", 1},
    {"lora.alpha", 0, std::numeric_limits<double>::infinity(), false, true},
    {"loss.label_smoothing", 0, 1, true},
    {"loss.delta", 0, std::numeric_limits<double>::infinity(), false, true},
    {"optimizer.learning_rate"},
    {"optimizer.beta1", 0, 1, true},
    {"optimizer.beta2", 0, 1, true},
    {"optimizer.epsilon"},
    {"optimizer.rho", 0, 1},
    {"optimizer.momentum", 0, 1},
    {"optimizer.dampening", 0, 1},
    {"optimizer.weight_decay"},
    {"optimizer.initial_accumulator_value"},
    {"optimizer.lr_decay"},
    {"optimizer.momentum_decay"},
    {"optimizer.beta2_decay", -1, 0, true},
    {"optimizer.epsilon2"},
    {"optimizer.clip_threshold", 0, std::numeric_limits<double>::infinity(), false, true},
    {"optimizer.clip_norm"},
    {"optimizer.clip_value"},
    {"schedule.warmup_steps"},
    {"schedule.total_steps"},
    {"schedule.final_fraction", 0, 1},
    {"schedule.factor", 0, std::numeric_limits<double>::infinity(), false, true},
    {"schedule.every"},
    {"schedule.every_steps"},
    {"schedule.cycle_growth", 1},
    {"schedule.peak_factor", 0, std::numeric_limits<double>::infinity(), false, true},
    {"schedule.power", 0, std::numeric_limits<double>::infinity(), false, true},
    {"schedule.pct_start", 0, 1},
    {"schedule.div_factor", 1},
    {"schedule.final_div_factor", 1},
    {"schedule.patience"},
    {"schedule.min_delta"},
    {"schedule.cooldown"},
    {"schedule.min_rate"},
    {"data.batch_size", 1, 1e9},
    {"data.shuffle_buffer"},
    {"train.epochs", 1},
    {"train.max_seconds"},
    {"train.loss_scale", 1},
    {"train.loss_scale_growth_steps", 1},
    {"train.early_stopping.patience"},
    {"train.early_stopping.min_delta"},
    {"train.ema_decay", 0, 1, true},
    {"train.gradient_accumulation_steps", 1, 1e6},
});

// Signatures of torch.optim (PyTorch 2) and keras.optimizers (Keras 3): {key, torch, keras}. Keras rounds nothing here that
// PyTorch does not; where the two put epsilon and decay is the convention's business, not the defaults'.
constexpr auto kOptimizers = std::to_array<OptimizerKind>({
    // torch.optim.SGD(lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False);  keras SGD(learning_rate=0.01, momentum=0.0, nesterov=False)
    {"sgd", {{"learning_rate", 1e-3, 1e-2}, {"momentum"}, {"dampening", 0, 0, false}, {"nesterov"}, {"weight_decay"}}},
    // torch.optim.Adam(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False);  keras Adam(0.001, 0.9, 0.999, epsilon=1e-7)
    {"adam", {{"learning_rate", 1e-3, 1e-3}, {"beta1", 0.9, 0.9}, {"beta2", 0.999, 0.999}, {"epsilon", 1e-8, 1e-7}, {"weight_decay"}, {"amsgrad"}}},
    // torch.optim.AdamW(as Adam, weight_decay=1e-2);  keras AdamW(as Adam, weight_decay=0.004)
    {"adamw",
     {{"learning_rate", 1e-3, 1e-3}, {"beta1", 0.9, 0.9}, {"beta2", 0.999, 0.999}, {"epsilon", 1e-8, 1e-7}, {"weight_decay", 1e-2, 4e-3}, {"amsgrad"}}},
    // torch.optim.NAdam(lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3): u_t = beta1 * (1 - 0.5 * 0.96^(t * momentum_decay));
    // keras Nadam(0.001, 0.9, 0.999, epsilon=1e-7): the same with momentum_decay fixed at 1
    {"nadam",
     {{"learning_rate", 2e-3, 1e-3},
      {"beta1", 0.9, 0.9},
      {"beta2", 0.999, 0.999},
      {"epsilon", 1e-8, 1e-7},
      {"weight_decay"},
      {"momentum_decay", 4e-3, 1, false}}},
    // torch.optim.RMSprop(lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False);  keras RMSprop(0.001, rho=0.9, momentum=0.0,
    // epsilon=1e-7)
    {"rmsprop", {{"learning_rate", 1e-2, 1e-3}, {"rho", 0.99, 0.9}, {"epsilon", 1e-8, 1e-7}, {"momentum"}, {"centered"}, {"weight_decay"}}},
    // torch.optim.Adagrad(lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10);  keras Adagrad(0.001, 0.1, epsilon=1e-7)
    {"adagrad", {{"learning_rate", 1e-2, 1e-3}, {"lr_decay", 0, 0, false}, {"initial_accumulator_value", 0, 0.1}, {"epsilon", 1e-10, 1e-7}, {"weight_decay"}}},
    // torch.optim.Adamax(lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0);  keras Adamax(0.001, 0.9, 0.999, epsilon=1e-7)
    {"adamax", {{"learning_rate", 2e-3, 1e-3}, {"beta1", 0.9, 0.9}, {"beta2", 0.999, 0.999}, {"epsilon", 1e-8, 1e-7}, {"weight_decay"}}},
    // torch.optim.Adadelta(lr=1.0, rho=0.9, eps=1e-6, weight_decay=0);  keras Adadelta(0.001, rho=0.95, epsilon=1e-7)
    {"adadelta", {{"learning_rate", 1, 1e-3}, {"rho", 0.9, 0.95}, {"epsilon", 1e-6, 1e-7}, {"weight_decay"}}},
    // apex.optimizers.FusedLAMB(lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01), as PyTorch has none;  keras Lamb(0.001, 0.9, 0.999, epsilon=1e-7)
    {"lamb", {{"learning_rate", 1e-3, 1e-3}, {"beta1", 0.9, 0.9}, {"beta2", 0.999, 0.999}, {"epsilon", 1e-6, 1e-7}, {"weight_decay", 1e-2, 0}}},
    // lion_pytorch.Lion(lr=1e-4, betas=(0.9, 0.99), weight_decay=0), as PyTorch has none;  keras Lion(0.001, beta_1=0.9, beta_2=0.99)
    {"lion", {{"learning_rate", 1e-4, 1e-3}, {"beta1", 0.9, 0.9}, {"beta2", 0.99, 0.99}, {"weight_decay"}}},
    // torch.optim.Muon(lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True) for matrices, with AdamW's betas and eps for the rest;
    // keras Muon(0.001, adam_beta_1=0.9, adam_beta_2=0.999, epsilon=1e-7, weight_decay=0.004, momentum=0.95, nesterov=True)
    {"muon",
     {{"learning_rate", 1e-3, 1e-3},
      {"momentum", 0.95, 0.95},
      {"nesterov", 1, 1},
      {"beta1", 0.9, 0.9},
      {"beta2", 0.999, 0.999},
      {"epsilon", 1e-8, 1e-7},
      {"weight_decay", 0.1, 4e-3}}},
    // torch.optim.Adafactor(lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0), where None is f32's epsilon;
    // keras Adafactor(0.001, beta_2_decay=-0.8, epsilon_1=1e-30, epsilon_2=1e-3, clip_threshold=1.0)
    {"adafactor",
     {{"learning_rate", 1e-2, 1e-3},
      {"beta2_decay", -0.8, -0.8},
      {"epsilon", 0x1p-23, 1e-30},
      {"epsilon2", 1e-3, 1e-3},
      {"clip_threshold", 1, 1},
      {"weight_decay"}}},
});

constexpr auto kSchedules = std::to_array<ScheduleKeys>({
    {"constant", {}},
    {"linear", {"final_fraction", "total_steps"}},
    {"cosine", {"final_fraction", "total_steps"}},
    {"step", {"factor", "every", "every_steps", "final_fraction"}},
    {"exponential", {"factor", "every", "every_steps", "final_fraction"}},
    {"inverse_time", {"factor", "every", "every_steps", "final_fraction"}},
    {"piecewise", {"boundaries", "fractions", "factor", "final_fraction"}},
    {"cosine_restarts", {"every", "every_steps", "cycle_growth", "peak_factor", "final_fraction"}},
    {"polynomial", {"power", "final_fraction", "total_steps"}},
    {"one_cycle", {"pct_start", "div_factor", "final_div_factor", "total_steps"}},
    {"plateau", {"monitor", "factor", "patience", "min_delta", "cooldown", "min_rate"}},
});

constexpr auto kNumberKeys =
    std::to_array<std::string_view>({"learning_rate", "beta1", "beta2", "epsilon", "rho", "momentum", "dampening", "nesterov", "centered", "amsgrad",
                                     "weight_decay", "initial_accumulator_value", "lr_decay", "momentum_decay", "beta2_decay", "epsilon2", "clip_threshold"});

}  // namespace

std::span<const RecipeKind> recipe_kinds() {
  static const std::vector<RecipeKind> all = [] {
    std::vector<RecipeKind> kinds;
    for (const LossKind& loss : loss_kinds()) kinds.push_back({"loss.kind", loss.name});
    for (const OptimizerKind& optimizer : kOptimizers) kinds.push_back({"optimizer.kind", optimizer.name});
    for (const ScheduleKeys& schedule : kSchedules) kinds.push_back({"schedule.kind", schedule.kind});
    kinds.insert(kinds.end(), kKinds.begin(), kKinds.end());
    return kinds;
  }();
  return all;
}
std::span<const RecipeRange> recipe_ranges() { return kRanges; }
std::span<const std::string_view> optimizer_number_keys() { return kNumberKeys; }

const ScheduleKeys* find_schedule(std::string_view name) {
  const auto found = std::ranges::find(kSchedules, name, &ScheduleKeys::kind);
  return found == kSchedules.end() ? nullptr : &*found;
}

const OptimizerKind* find_optimizer(std::string_view name) {
  const auto found = std::find_if(kOptimizers.begin(), kOptimizers.end(), [&](const OptimizerKind& kind) { return kind.name == name; });
  return found == kOptimizers.end() ? nullptr : &*found;
}

}  // namespace hone
