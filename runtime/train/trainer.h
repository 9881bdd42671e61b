// The training loop: epochs, data order, learning rate, metrics, validation, logs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/recipe.h"
#include "runtime/train/means.h"
#include "runtime/train/progress.h"
#include "runtime/train/run_log.h"
#include "runtime/train/schedule.h"

namespace hone {

struct TrainOptions {
  bool shuffle = true;
  std::int64_t steps = 0;                                       ///< stop after so many, wherever that is in an epoch; 0: when the epochs are over
  std::int64_t log_every = 100;                                 ///< every so many steps a line in metrics.jsonl
  bool log_grad_norms = false;                                  ///< with the L2 norm of each weight's gradient; needs the entry train_step_norms
  std::string run_dir;                                          ///< "": no files
  std::function<bool()> stop_requested = [] { return false; };  ///< asked after every step
};

/// The entries of a plan that training calls.
struct TrainEntries {
  const plan::Entry* step = nullptr;
  const plan::Entry* step_norms = nullptr;  ///< may be null
  const plan::Entry* evaluate = nullptr;    ///< null when nothing is validated
};

struct TrainResult {
  std::int64_t steps = 0;
  std::int64_t epochs = 0;  ///< begun
  double seconds = 0;
  bool interrupted = false;  ///< stop_requested() said so; the weights are those after the last step
  NamedNumbers values;       ///< of the last epoch, with the validation's
};

/// Means of loss and metrics of `entry` over all of `data`, in order. `prefix` goes before their names.
NamedNumbers evaluate(StepRunner& runner, const plan::Entry& entry, const BoundArrays& data, std::int64_t batch_size, std::string_view prefix = "");

class Trainer {
 public:
  /// All references stay alive. `valid` may be null. Throws kPlanEntry when the entries lack what is needed.
  Trainer(StepRunner& runner, TrainEntries entries, const Recipe& recipe, const BoundArrays& train, const BoundArrays* valid, TrainOptions options, Progress& progress);

  /// Trains. Data order and learning rates are functions of (seed, epoch) and (step); so two runs do the same.
  /// Throws kNotFinite when a step's loss is NaN or infinite: the weights are then those before that step, because the plan's update is predicated on it.
  TrainResult fit();

  std::int64_t steps_planned() const { return run_.steps; }

 private:
  using Clock = std::chrono::steady_clock;

  void run_epoch(std::int64_t epoch);
  void run_step(std::int64_t epoch);
  void log_step(std::int64_t epoch, double loss, bool with_norms);
  void end_epoch(std::int64_t epoch, std::int64_t steps, Clock::time_point begin);
  bool is_over() const { return result_.interrupted or result_.steps >= run_.steps; }
  [[noreturn]] void refuse_loss(std::int64_t epoch, double loss) const;

  StepRunner& runner_;
  TrainEntries entries_;
  const Recipe& recipe_;
  const BoundArrays* valid_;
  TrainOptions options_;
  Progress& progress_;
  BatchReader batches_;
  Means means_;
  RunLog log_;
  RunLength run_;
  TrainResult result_;
  double rate_ = 0;  // the learning rate of the last step, and as it is fed
  NamedNumbers grad_norms_;
  std::vector<std::string> norm_results_;
  std::int64_t samples_since_log_ = 0;
  Clock::time_point last_log_;
};

}  // namespace hone
