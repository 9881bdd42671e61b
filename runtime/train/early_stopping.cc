#include "runtime/train/early_stopping.h"

#include "base/objectives.h"
#include "runtime/train/counters.h"

namespace hone {

EarlyStopping::EarlyStopping(const Recipe& recipe)
    : patience_(recipe.train.early_stopping_patience),
      min_delta_(recipe.train.early_stopping_min_delta),
      upwards_(higher_is_better(recipe.train.early_stopping_monitor)),
      best_(worst_value(recipe.train.early_stopping_monitor)) {}

EarlyStopping::Verdict EarlyStopping::observe(double value) {
  ++epochs_;
  ++waited_;
  if (upwards_ ? value - min_delta_ > best_ : value + min_delta_ < best_) {
    best_ = value;
    waited_ = 0;
    return {.is_best = true};
  }
  return {.is_best = epochs_ == 1, .stop = is_over()};
}

void EarlyStopping::restore(std::span<const double> state) {
  const CounterState read(state, 3, "early stopping");
  epochs_ = read.count(0);
  waited_ = read.count(1);
  best_ = read.number(2);
}

}  // namespace hone
