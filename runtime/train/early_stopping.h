// When training is to end because nothing gets better.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/recipe.h"

namespace hone {

/// keras.callbacks.EarlyStopping, told of the monitored value (Recipe::Train::early_stopping_monitor) after every epoch. A value is better than the best one if it
/// is by more than min_delta; the first always is, and one that is no number never. Training ends after the first epoch that is at least the patience-th in a
/// row without a better value, never after the first epoch of all.
class EarlyStopping {
 public:
  explicit EarlyStopping(const Recipe& recipe);

  struct Verdict {
    bool is_best = false;  ///< this epoch's weights are the ones that restore_best keeps
    bool stop = false;
  };
  Verdict observe(double value);
  double best() const { return best_; }
  /// Would training have ended after the last value? With another patience than then, perhaps, it goes on.
  bool is_over() const { return waited_ > 0 and waited_ >= patience_ and epochs_ > 1; }

  /// For a checkpoint: epochs seen, epochs waited, the best value.
  std::array<double, 3> state() const { return {static_cast<double>(epochs_), static_cast<double>(waited_), best_}; }
  /// Throws Error kPlanMismatch for what state() never gives.
  void restore(std::span<const double> state);

 private:
  std::int64_t patience_;
  double min_delta_;
  bool upwards_;
  std::int64_t epochs_ = 0, waited_ = 0;
  double best_;  ///< the worst value there is before the first
};

}  // namespace hone
