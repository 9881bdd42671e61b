#include "runtime/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

#include "base/check.h"
#include "base/objectives.h"
#include "base/recipe_tables.h"
#include "runtime/train/counters.h"

namespace hone {

namespace {

/// Where in the schedule a step is.
struct Position {
  double share = 0;  ///< t: 0 at its start, 1 at its end
  double drops = 0;  ///< e: in units of `every` epochs, or `every_steps`
  double step = 0, last = 0;  ///< since the warm-up, of the schedule
  std::size_t past = 0;       ///< boundaries
};

/// From `a` to `b` along half a cosine.
double cosine_between(double a, double b, double share) { return b + (a - b) * (1 + std::cos(std::numbers::pi * share)) / 2; }

double one_cycle(const Recipe::Schedule& s, Position at) {
  const double first = 1 / s.div_factor, final = first / s.final_div_factor, peak = s.pct_start * (at.last + 1) - 1;
  if (at.step >= at.last) return final;
  if (at.step <= peak) return cosine_between(first, 1, peak == 0 ? 1 : at.step / peak);
  return cosine_between(1, final, (at.step - peak) / (at.last - peak));
}

double cosine_restarts(const Recipe::Schedule& s, Position at) {
  double share = at.drops, cycle = std::floor(at.drops);
  if (s.cycle_growth == 1) {
    share -= cycle;
  } else {
    double length = 1;
    for (cycle = 0; share >= length; ++cycle) share -= length, length *= s.cycle_growth;
    share /= length;
  }
  return s.final_fraction + (1 - s.final_fraction) * std::pow(s.peak_factor, cycle) * cosine_between(1, 0, share);
}

/// A kind of schedule and the fraction of the learning rate that it leaves. Adding one is a row.
struct ScheduleKind {
  std::string_view name;
  double (*fraction)(const Recipe::Schedule& schedule, Position at);
};

constexpr ScheduleKind kSchedules[] = {
    {"constant", [](const Recipe::Schedule&, Position) { return 1.0; }},
    {"linear", [](const Recipe::Schedule& s, Position at) { return 1 + (s.final_fraction - 1) * at.share; }},
    {"cosine",
     [](const Recipe::Schedule& s, Position at) { return s.final_fraction + (1 - s.final_fraction) * (1 + std::cos(std::numbers::pi * at.share)) / 2; }},
    {"polynomial", [](const Recipe::Schedule& s, Position at) { return s.final_fraction + (1 - s.final_fraction) * std::pow(1 - at.share, s.power); }},
    {"exponential", [](const Recipe::Schedule& s, Position at) { return std::max(s.final_fraction, std::pow(s.factor, at.drops)); }},
    {"inverse_time", [](const Recipe::Schedule& s, Position at) { return std::max(s.final_fraction, 1 / (1 + s.factor * at.drops)); }},
    {"piecewise",
     [](const Recipe::Schedule& s, Position at) { return s.fractions.empty() ? std::max(s.final_fraction, std::pow(s.factor, at.past)) : s.fractions[std::min(at.past, s.fractions.size() - 1)]; }},
    {"cosine_restarts", cosine_restarts},
    {"one_cycle", one_cycle},
    {"plateau", [](const Recipe::Schedule&, Position) { return 1.0; }},
    {"step", [](const Recipe::Schedule& s, Position at) { return std::max(s.final_fraction, std::pow(s.factor, std::floor(at.drops))); }},
};

bool reads(std::string_view kind, std::string_view key) {
  const ScheduleKeys* schedule = find_schedule(kind);
  return schedule != nullptr and std::ranges::count(schedule->keys, key) > 0;
}

}  // namespace

double learning_rate_at(const Recipe& recipe, std::int64_t step, RunLength run) {
  const Recipe::Schedule& schedule = recipe.schedule;
  const double rate = recipe.optimizer.learning_rate;
  const bool keras = recipe.train.convention == Convention::kKeras;
  if (step < schedule.warmup_steps)  // Keras's first step has a rate of 0, as its CosineDecay says; PyTorch's users give no step away
    return rate * static_cast<double>(keras ? step : step + 1) / static_cast<double>(schedule.warmup_steps);
  const std::int64_t total = schedule.total_steps > 0 ? schedule.total_steps : run.steps;
  const auto after = static_cast<double>(step - schedule.warmup_steps);
  const auto length = static_cast<double>(std::max<std::int64_t>(1, total - schedule.warmup_steps));
  const double epochs = static_cast<double>(std::max<std::int64_t>(1, schedule.every)) * static_cast<double>(std::max<std::int64_t>(1, run.steps_per_epoch));
  const bool by_steps = schedule.every_steps > 0;
  const double drops = by_steps ? after / static_cast<double>(schedule.every_steps) : std::max(0.0, after + run.more_before) / epochs;
  const auto first_ahead = keras ? std::ranges::lower_bound(schedule.boundaries, static_cast<double>(step)) : std::ranges::upper_bound(schedule.boundaries, static_cast<double>(step));
  const auto past = static_cast<std::size_t>(first_ahead - schedule.boundaries.begin());
  for (const ScheduleKind& kind : kSchedules)
    if (kind.name == schedule.kind) return rate * kind.fraction(schedule, {std::min(1.0, after / length), drops, after, length - 1, past});
  internal_error(__FILE__, __LINE__, "resolve() let a schedule through that does not exist: " + schedule.kind);
}

bool counts_epochs(const Recipe::Schedule& schedule) { return schedule.every_steps == 0 and reads(schedule.kind, "every"); }

bool needs_length(std::string_view kind) { return reads(kind, "total_steps"); }

Plateau::Plateau(const Recipe& recipe)
    : schedule_(recipe.schedule),
      rate_(recipe.optimizer.learning_rate),
      keras_(recipe.train.convention == Convention::kKeras),
      upwards_(higher_is_better(recipe.schedule.monitor)),
      best_(worst_value(recipe.schedule.monitor)) {}

bool Plateau::is_better(double value) const {
  const double delta = schedule_.min_delta;
  if (keras_) return upwards_ ? value > best_ + delta : value < best_ - delta;
  return upwards_ ? value > best_ * (1 + delta) : value < best_ * (1 - delta);
}

bool Plateau::observe(double value) {
  const bool better = is_better(value);
  if (better) best_ = value;
  if (not waits_too_long(better) or not drop()) return false;
  cooling_ = schedule_.cooldown;
  waited_ = 0;
  return true;
}

/// PyTorch counts an epoch before it asks whether it is a cooling one, Keras after that; PyTorch begins anew even where the rate can drop no further.
bool Plateau::waits_too_long(bool better) {
  if (keras_) {
    if (cooling_ > 0) --cooling_, waited_ = 0;
    if (better) waited_ = 0;
    else if (cooling_ == 0) return ++waited_ >= schedule_.patience;
    return false;
  }
  waited_ = better ? 0 : waited_ + 1;
  if (cooling_ > 0) --cooling_, waited_ = 0;
  if (waited_ <= schedule_.patience) return false;
  cooling_ = schedule_.cooldown;
  waited_ = 0;
  return true;
}

bool Plateau::drop() {
  constexpr double kLeastChange = 1e-8;  // PyTorch's eps
  const double old = rate_ * factor_, next = std::max(old * schedule_.factor, schedule_.min_rate);
  if (keras_ ? not(next < old) : old - next <= kLeastChange) return false;
  factor_ = next / rate_;
  return true;
}

void Plateau::restore(std::span<const double> state) {
  const CounterState read(state, 4, "the learning rate's plateau");
  waited_ = read.count(2);
  cooling_ = read.count(3);
  factor_ = read.number(0, 0, 1);
  best_ = read.number(1);
}

}  // namespace hone
