// The learning rate of each step.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/recipe.h"

namespace hone {

/// How long a run is, as far as it is known before.
struct RunLength {
  std::int64_t steps = 0;  ///< of the whole run
  std::int64_t steps_per_epoch = 1;
};

/// The learning rate of step `step` (from 0), for `rate` = optimizer.learning_rate, w = warmup_steps, T = total_steps (0: the run's), f = final_fraction:
///   step < w      rate * (step + 1) / w
///   constant      rate
///   linear        rate * (1 + (f - 1) * t),                         t = min(1, (step - w) / (T - w))
///   cosine        rate * (f + (1 - f) * (1 + cos(pi * t)) / 2)
///   polynomial    rate * (f + (1 - f) * (1 - t)^power)
///   exponential   rate * max(f, factor^e),  e = (step - w) / (every * steps per epoch), every 0 counting as 1
///   step          rate * max(f, factor^floor(e))
/// (Keras's CosineDecay, PolynomialDecay, ExponentialDecay with staircase off and on.)
double learning_rate_at(const Recipe& recipe, std::int64_t step, RunLength run);

/// Does a kind of schedule depend on the run's length?
bool needs_length(std::string_view kind);

}  // namespace hone
