// The training loop: epochs, data order, learning rate, metrics, validation, checkpoints, logs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/diag.h"
#include "base/recipe.h"
#include "runtime/data/batch_source.h"
#include "runtime/data/named_tensors.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/early_stopping.h"
#include "runtime/train/evaluate.h"
#include "runtime/train/means.h"
#include "runtime/train/progress.h"
#include "runtime/train/run_history.h"
#include "runtime/train/run_log.h"
#include "runtime/train/schedule.h"
#include "runtime/trace.h"
#include "runtime/train/train_state.h"

namespace hone {

struct TrainOptions {
  std::int64_t steps = 0;        ///< stop after so many, wherever that is in an epoch; 0: when the epochs are over
  std::int64_t limit = 0;        ///< batches of an epoch at most; 0: all. Of data without an end each epoch is what comes next
  std::int64_t valid_limit = 0;  ///< batches of a validation at most; 0: all
  std::int64_t log_every = 100;  ///< every so many steps a line in metrics.jsonl
  bool log_grad_norms = false;   ///< with the L2 norm of each weight's gradient; needs the entry train_step_norms
  bool log_histograms = false;   ///< after every epoch, of each weight, for TensorBoard
  std::string run_dir;           ///< "": no files
  Checkpoints* checkpoints = nullptr;                           ///< where to save after every epoch, and when the run stops; null: nowhere
  std::int64_t save_steps = 0;                                  ///< and every so many steps; in all processes that train together, though only one has checkpoints
  std::function<bool()> stop_requested = [] { return false; };  ///< asked after every step, and before every batch of a validation
  std::function<bool()> out_of_time;                            ///< asked after every step; without it this process's clock and train.max_seconds say so
  std::function<bool()> end_requested = [] { return false; };   ///< asked after every step and every epoch, when on_step and on_epoch were called: the run then ends as if no more had been asked for
  std::function<double(const ScheduledStep&)> learning_rate;    ///< the rate of a step in the place of the schedule's, if given. A run that goes on asks it again for the last step that was made
  std::function<void(const StepRecord&)> on_step;               ///< called after every step, if given
  std::function<void(const EpochRecord&)> on_epoch;             ///< called after every epoch and its validation, if given
  TraceTrack* trace = nullptr;                                  ///< where steps, validations and saves are written down; null: nowhere
};

/// The entries of a plan that training calls.
struct TrainEntries {
  const plan::Entry* step = nullptr;
  const plan::Entry* step_norms = nullptr;  ///< may be null
  const plan::Entry* accumulate = nullptr;  ///< null where every batch makes an update
  const plan::Entry* evaluate = nullptr;    ///< null when nothing is validated
};

struct TrainResult {
  enum class End : std::uint8_t {
    kDone,
    kStopRequested,
    kOutOfTime,   ///< train.max_seconds are over
    kNoProgress,  ///< train.early_stopping
    kEnded,       ///< by a callback
  };
  std::int64_t steps = 0;          ///< of the whole run
  std::int64_t earlier_steps = 0;  ///< of them before this run went on
  std::int64_t samples = 0;        ///< of this run
  std::int64_t epochs = 0;         ///< begun
  double seconds = 0;              ///< of this run
  End end = End::kDone;            ///< the weights are those after the last step, or, if train.early_stopping says so, after the best epoch
  std::int64_t restored_epoch = 0; ///< whose weights they are then, as they were validated; 0: those after the last step
  std::optional<Error> not_restored; ///< kCheckpoint: they should be the best epoch's, whose checkpoint is gone or damaged, and are those after the last step
  /// Are they an epoch's as they were validated, or meant to be: not moving averages? The same in all processes that train together.
  bool wants_validated() const { return restored_epoch != 0 or not_restored.has_value(); }
  NamedNumbers values;             ///< of the last epoch, with the validation's
  /// Every epoch that was finished, with its loss, metrics and validation: Keras's History. Also those from before this run went on, in the process that has the run folder.
  std::vector<EpochPoint> history;
  std::optional<BestEpoch> best;   ///< of the whole run: by what early stopping monitors, else by the loss (best_epoch)
};

class TrainingLoop {
 public:
  /// All references stay alive. `valid` may be null. With `from` the run goes on there: the session holds the weights and states of that moment already.
  /// Throws kPlanEntry when the entries lack what is needed, kUsage for options.learning_rate where nothing reads a rate, kRecipeValue for a schedule, or gradients that are accumulated, where the number of batches must be known
  /// and is not, and for a monitored value that is not there.
  TrainingLoop(StepRunner& runner, TrainEntries entries, const Recipe& recipe, BatchSource& train, BatchSource* valid, TrainOptions options, Progress& progress,
               const std::optional<TrainState>& from = std::nullopt);

  /// Trains. Data order and learning rates are functions of (seed, epoch) and (step); so two runs do the same, and one that went on ends as one that never stopped.
  /// Throws kUsage for a learning rate of the caller's that is none, kNotFinite when a step's loss is NaN or infinite: the weights are then those before that step, because the plan's update is predicated on it; a checkpoint
  /// is made of them. kNotFinite, too, when the run ends with weights that its last update made so.
  TrainResult run();

 private:
  using Clock = std::chrono::steady_clock;

  void run_epoch();
  void start_data();
  double rate_of(std::int64_t epoch, std::int64_t step) const;
  void run_step();
  double run_batch(const plan::Entry& entry);
  std::int64_t batches_of_epoch() const;
  std::int64_t steps_with(std::int64_t epochs) const;
  void check_length() const;
  void check_position() const;
  void check_monitor(std::string_view key, const std::string& monitor) const;
  void find_norms();
  void log_step(double loss, bool with_norms);
  void note_scale(double loss);
  const NamedNumbers& shown(const NamedNumbers& values);
  void after_step();
  void end_epoch(bool whole, Clock::time_point begin);
  bool add_validation();
  void record_epoch(bool whole, Clock::time_point begin);
  void end_if_asked();
  void judge_epoch(const EpochPoint& epoch);
  bool choose_best(const EpochPoint& epoch);
  void restore_best();
  void check_best() const;
  void save(Checkpoints::Older older = Checkpoints::Older::kPruned);
  bool is_epoch_over() const { return limit_ > 0 and state_.batch >= limit_; }
  /// An earlier run made the epoch's steps, or all of the run's, and was stopped before they were validated.
  bool is_to_be_validated() const { return result_.end == TrainResult::End::kDone and (is_epoch_over() or (state_.batch > 0 and not state_.reported)); }
  bool is_done() const { return state_.epoch >= recipe_.train.epochs or (is_over() and not is_to_be_validated()); }
  bool is_over() const { return result_.end != TrainResult::End::kDone or state_.step >= run_.steps; }
  std::int64_t steps_in(std::int64_t batches) const { return (batches + group_ - 1) / group_; }
  bool next_batch();
  [[noreturn]] void refuse_loss(double loss);
  void take_back_group();
  void refuse_weights_gone();
  std::string where_to_go_on() const;

  StepRunner& runner_;
  TrainEntries entries_;
  const Recipe& recipe_;
  BatchSource& train_;
  BatchSource* valid_;
  TrainOptions options_;
  Progress& progress_;
  Means means_;
  std::optional<RunLog> log_;  // from the constructor's end on
  TrainState state_;
  RunLength run_;
  std::int64_t limit_ = 0;  // batches of an epoch; 0: not known
  std::int64_t group_ = 1, in_group_ = 0;  // batches of a step; and of the one that is going on
  std::optional<Plateau> plateau_;
  std::optional<EarlyStopping> early_stopping_;
  NamedTensors best_weights_;  // where there are no checkpoints to keep them
  TrainResult result_;
  bool has_begun_ = false;  // to go through data without an end
  std::int64_t told_of_ = -1;  // a step whose weights were said to be gone
  double rate_ = 0;  // the learning rate of the last step, and as it is fed
  bool feeds_rate_ = false;
  NamedViews feeds_without_rate_;  // of an entry that makes no update
  NamedNumbers grad_norms_;
  std::vector<double> means_before_group_;  // Means::state(), of a group of several batches
  bool scales_loss_ = false;
  LossScaling scaling_;     // of the last step
  NamedNumbers shown_;      // means, and steps that were left out
  std::vector<std::string> norm_results_;
  std::int64_t samples_since_log_ = 0;
  double trained_since_log_ = 0;  // seconds, in epochs that are over
  double seconds_before_ = 0;
  Clock::time_point begin_, last_log_;
};

}  // namespace hone
