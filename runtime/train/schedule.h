// The learning rate of each step.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/recipe.h"

namespace hone {

/// How long a run is, as far as it is known before.
struct RunLength {
  std::int64_t steps = 0;  ///< of the whole run
  std::int64_t steps_per_epoch = 1;
  double more_before = 0;  ///< steps that the epochs so far would have had more, had they been as long as those to come: what goes by epochs counts them, too. 0 unless a run goes on with other batches
};

/// The learning rate of step `step` (from 0), for `rate` = optimizer.learning_rate, w = warmup_steps, T = total_steps (0: the run's), f = final_fraction:
///   step < w      rate * (step + 1) / w, in Keras's convention rate * step / w (its CosineDecay with warmup_target = rate, from 0)
///   constant      rate
///   linear        rate * (1 + (f - 1) * t),                         t = min(1, (step - w) / (T - w))
///   cosine        rate * (f + (1 - f) * (1 + cos(pi * t)) / 2)
///   polynomial    rate * (f + (1 - f) * (1 - t)^power)
///   exponential   rate * max(f, factor^e),  e = (step - w) / every_steps, or where that is 0 / (every * steps per epoch), every 0 counting as 1
///   step          rate * max(f, factor^floor(e))
///   inverse_time  rate * max(f, 1 / (1 + factor * e))
///   piecewise     rate * fractions[b], b boundaries being past (Keras: below step; PyTorch: not above it); without fractions rate * max(f, factor^b)
///   cosine_restarts   rate * (f + (1 - f) * peak_factor^c * (1 + cos(pi * u)) / 2),  u the share of cycle c that is past, whose length is cycle_growth^c in units of e
/// (Keras's CosineDecay, PolynomialDecay, ExponentialDecay with staircase off and on, InverseTimeDecay, PiecewiseConstantDecay, CosineDecayRestarts; PyTorch's StepLR,
/// MultiStepLR, CosineAnnealingWarmRestarts.)
///   one_cycle     PyTorch's OneCycleLR (two phases, cosine, no cycled momentum) for max_lr = rate: from rate / div_factor to rate while step <= pct_start * T - 1, then
///                 to rate / div_factor / final_div_factor at step T - 1
///   plateau       rate: its drops follow from what a run reports (class Plateau)
/// A step is an update: batches that are accumulated make one together.
double learning_rate_at(const Recipe& recipe, std::int64_t step, RunLength run);

/// The step that is about to be made, for whom the recipe's schedule is not enough.
struct ScheduledStep {
  std::int64_t epoch = 1, step = 1;  ///< of the whole run, from 1, as StepRecord has them
  double learning_rate = 0;          ///< what the schedule gives
};

/// Does a kind of schedule depend on the run's length?
bool needs_length(std::string_view kind);
/// Does one go by epochs, so that their length must be known?
bool counts_epochs(const Recipe::Schedule& schedule);

/// schedule.kind = "plateau", told of the monitored value (schedule.monitor) after every epoch; its factor multiplies learning_rate_at().
/// In PyTorch's convention it is ReduceLROnPlateau: a value is better if it is by the share min_delta of the best one, and the rate drops when more than `patience`
/// epochs in a row were not. In Keras's: better by min_delta itself, and a drop when `patience` epochs were not. Either way a drop multiplies by schedule.factor, down to
/// schedule.min_rate, and the `cooldown` epochs after it do not count.
class Plateau {
 public:
  explicit Plateau(const Recipe& recipe);

  /// Returns true if the rate drops now.
  bool observe(double value);
  /// What the learning rate is to be multiplied by.
  double factor() const { return factor_; }

  /// For a checkpoint: factor, best value, epochs without a better one, epochs to cool down.
  std::array<double, 4> state() const { return {factor_, best_, static_cast<double>(waited_), static_cast<double>(cooling_)}; }
  /// Throws Error kPlanMismatch for what state() never gives.
  void restore(std::span<const double> state);

 private:
  bool is_better(double value) const;
  bool waits_too_long(bool better);
  bool drop();

  Recipe::Schedule schedule_;
  double rate_;  ///< the recipe's
  bool keras_, upwards_;
  double factor_ = 1, best_;  ///< best_: the worst value there is before the first
  std::int64_t waited_ = 0, cooling_ = 0;
};

}  // namespace hone
