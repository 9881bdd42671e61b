#include "runtime/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "base/check.h"

namespace hone {

namespace {

/// Where in the schedule a step is.
struct Position {
  double share = 0;  ///< t: 0 at its start, 1 at its end
  double drops = 0;  ///< e: in units of `every` epochs
};

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
    {"step", [](const Recipe::Schedule& s, Position at) { return std::max(s.final_fraction, std::pow(s.factor, std::floor(at.drops))); }},
};

}  // namespace

double learning_rate_at(const Recipe& recipe, std::int64_t step, RunLength run) {
  const Recipe::Schedule& schedule = recipe.schedule;
  const double rate = recipe.optimizer.learning_rate;
  if (step < schedule.warmup_steps) return rate * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
  const std::int64_t total = schedule.total_steps > 0 ? schedule.total_steps : run.steps;
  const auto after = static_cast<double>(step - schedule.warmup_steps);
  const auto length = static_cast<double>(std::max<std::int64_t>(1, total - schedule.warmup_steps));
  const auto every = static_cast<double>(std::max<std::int64_t>(1, schedule.every) * std::max<std::int64_t>(1, run.steps_per_epoch));
  for (const ScheduleKind& kind : kSchedules)
    if (kind.name == schedule.kind) return rate * kind.fraction(schedule, {std::min(1.0, after / length), after / every});
  internal_error(__FILE__, __LINE__, "resolve() let a schedule through that does not exist: " + schedule.kind);
}

bool needs_length(std::string_view kind) { return kind == "linear" or kind == "cosine" or kind == "polynomial" or kind == "one_cycle"; }

}  // namespace hone
