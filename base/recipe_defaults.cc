#include <algorithm>
#include <array>
#include <charconv>

#include "base/recipe_tables.h"

namespace hone {

namespace {

constexpr auto kKinds = std::to_array<RecipeKind>({
    {"loss.kind", "softmax_cross_entropy"},
    {"loss.kind", "cross_entropy"},
    {"loss.kind", "mse"},
    {"loss.kind", "bce_with_logits"},
    {"loss.kind", "nll", false},
    {"loss.kind", "mae", false},
    {"loss.kind", "huber", false},
    {"loss.kind", "bce", false},
    {"loss.kind", "hinge", false},
    {"loss.kind", "kl_divergence", false},
    {"loss.kind", "cosine", false},
    {"loss.kind", "output", false},
    {"optimizer.kind", "sgd"},
    {"optimizer.kind", "adam"},
    {"optimizer.kind", "adamw"},
    {"optimizer.kind", "nadam"},
    {"optimizer.kind", "rmsprop"},
    {"optimizer.kind", "adagrad"},
    {"optimizer.kind", "adamax", false},
    {"optimizer.kind", "adadelta", false},
    {"optimizer.kind", "lamb", false},
    {"optimizer.kind", "lion", false},
    {"optimizer.kind", "muon", false},
    {"schedule.kind", "constant"},
    {"schedule.kind", "linear"},
    {"schedule.kind", "cosine"},
    {"schedule.kind", "step"},
    {"schedule.kind", "exponential"},
    {"schedule.kind", "polynomial"},
    {"schedule.kind", "one_cycle", false},
    {"schedule.kind", "plateau", false},
    {"model.initialize", "keep"},
    {"model.initialize", "he_normal"},
    {"model.initialize", "he_uniform"},
    {"model.initialize", "glorot_normal"},
    {"model.initialize", "glorot_uniform"},
    {"model.initialize", "normal"},
    {"model.initialize", "zeros"},
    {"model.batch_norm", "train"},
    {"model.batch_norm", "frozen"},
    {"train.precision", "f32"},
    {"train.precision", "bf16", false},
    {"train.convention", "torch"},
    {"train.convention", "keras"},
});

constexpr auto kRanges = std::to_array<RecipeRange>({
    {"model.dropout.rate", 0, 1, true},
    {"loss.label_smoothing", 0, 1, true},
    {"loss.delta", 0, std::numeric_limits<double>::infinity(), false, true},
    {"optimizer.learning_rate"},
    {"optimizer.beta1", 0, 1, true},
    {"optimizer.beta2", 0, 1, true},
    {"optimizer.epsilon"},
    {"optimizer.rho", 0, 1},
    {"optimizer.momentum"},
    {"optimizer.dampening", 0, 1},
    {"optimizer.weight_decay"},
    {"optimizer.initial_accumulator_value"},
    {"optimizer.lr_decay"},
    {"optimizer.momentum_decay"},
    {"optimizer.clip_norm"},
    {"optimizer.clip_value"},
    {"schedule.warmup_steps"},
    {"schedule.total_steps"},
    {"schedule.final_fraction", 0, 1},
    {"schedule.factor", 0, 1, false, true},
    {"schedule.every"},
    {"schedule.power", 0, std::numeric_limits<double>::infinity(), false, true},
    {"data.batch_size", 1},
    {"data.shuffle_buffer"},
    {"train.epochs", 1},
    {"train.gradient_accumulation_steps", 1},
});

constexpr auto kNotYet = std::to_array<RecipeNotYet>({
    {"optimizer.clip_norm", 0, "gradient clipping"},
    {"optimizer.clip_value", 0, "gradient clipping"},
    {"train.gradient_accumulation_steps", 1, "gradient accumulation"},
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
});

constexpr auto kNumberKeys =
    std::to_array<std::string_view>({"learning_rate", "beta1", "beta2", "epsilon", "rho", "momentum", "dampening", "nesterov", "centered", "amsgrad",
                                     "weight_decay", "initial_accumulator_value", "lr_decay", "momentum_decay"});

}  // namespace

std::span<const RecipeKind> recipe_kinds() { return kKinds; }
std::span<const RecipeRange> recipe_ranges() { return kRanges; }
std::span<const RecipeNotYet> recipe_not_yet() { return kNotYet; }
std::span<const std::string_view> optimizer_number_keys() { return kNumberKeys; }

const OptimizerKind* find_optimizer(std::string_view name) {
  const auto found = std::find_if(kOptimizers.begin(), kOptimizers.end(), [&](const OptimizerKind& kind) { return kind.name == name; });
  return found == kOptimizers.end() ? nullptr : &*found;
}

bool has_integer_classes(std::string_view loss) { return loss == "softmax_cross_entropy" or loss == "cross_entropy" or loss == "nll"; }

std::int64_t top_k_of_metric(std::string_view metric) {
  constexpr std::string_view kBefore = "top_", kAfter = "_accuracy";
  if (metric == "accuracy") return 1;
  if (not metric.starts_with(kBefore) or not metric.ends_with(kAfter) or metric.size() <= kBefore.size() + kAfter.size()) return 0;
  const std::string_view digits = metric.substr(kBefore.size(), metric.size() - kBefore.size() - kAfter.size());
  std::int64_t k = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), k);
  return error == std::errc{} and end == digits.data() + digits.size() and k > 0 ? k : 0;
}

}  // namespace hone
