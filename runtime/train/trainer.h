// Trainer: fit, evaluate and predict on data sets, as in Keras. What hone-run does with files, for C++ programs.
//
//   Trainer trainer(plan);
//   trainer.fit(train.shuffle(1000).batch(32), {.valid = valid.batch(32), .epochs = 10, .run_dir = "run"});
//   trainer.evaluate(test.batch(32));
//   trainer.save("trained.onnx");
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/pipeline/dataset.h"
#include "runtime/pipeline/dataset_batches.h"
#include "runtime/plan/plan.h"
#include "runtime/session.h"
#include "runtime/train/replica_runner.h"
#include "runtime/train/told_run.h"
#include "runtime/train/training_loop.h"

namespace hone {

struct FitOptions {
  std::optional<Dataset> valid = {};   ///< batches to evaluate after each epoch
  std::optional<std::int64_t> epochs = {};  ///< nothing: as the recipe says
  std::int64_t steps = 0;              ///< stop after so many; 0: when the epochs are over
  std::int64_t limit = 0;              ///< batches of an epoch at most, as Keras's steps_per_epoch; 0: all. What a data set without an end needs (repeat()): each epoch goes on where the one before ended; others begin anew
  std::int64_t valid_limit = 0;        ///< batches of a validation at most, as Keras's validation_steps; 0: all
  std::int64_t log_every = 100;        ///< steps from line to line in metrics.jsonl
  bool log_grad_norms = false;         ///< in them with the L2 norm of each weight's gradient
  bool log_histograms = false;         ///< of each weight, for TensorBoard, after every epoch
  std::string run_dir = {};            ///< checkpoints, metrics, curves; "": no files
  bool resume = false;                 ///< go on from the newest sound checkpoint in run_dir, if there is one
  std::int64_t save_steps = 0, keep = 3;
  bool keep_best = false;
  std::int64_t check_every = 100;  ///< replicas compare their weights every so many steps, before each save, and at the end; 0: only at the start
  bool dry_run = false;            ///< one step, one evaluation (on the training data, if there are no others), one save and one resume; then weights, states and files are as before
  bool verbose = false;            ///< the summary lists every weight of a large model
  bool quiet = false;              ///< no summary, progress and report on standard error
  std::function<bool()> stop_requested = {};  ///< asked after every step: the run is interrupted, to be gone on with (StopSignals); for a run that should end see end_training()
  /// The learning rate of each step, asked before it, in the place of the recipe's schedule, whose rate it is given: Keras's LearningRateScheduler, PyTorch's LambdaLR. Where it depends on the step alone, a run that goes
  /// on ends as one that never stopped; where on what on_step and on_epoch saw, the program keeps that. In several processes all give the same.
  std::function<double(const ScheduledStep&)> learning_rate = {};
  std::function<void(const StepRecord&)> on_step = {};
  std::function<void(const EpochRecord&)> on_epoch = {};
};

/// For one thread at a time, as its sessions are; several trainers are independent of each other.
class Trainer {
 public:
  /// Throws what Replicas throws. With several replicas, as with Keras's MirroredStrategy, each batch of a data set is split among them, and what they learn is the same as
  /// one would with the whole of it; batch normalization sees each replica's part, unless model.sync_batch_norm is set. Programs that are processes of one run give
  /// `replicas.processes`, call the same functions with the same options, and see the same batches, of which each makes its own samples alone where it can (Dataset::in_parts); files and progress are the first one's, and so is the place from which a run goes on.
  explicit Trainer(const plan::Plan& plan, SessionOptions options = {}, ReplicaOptions replicas = {});
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Weights, states and entry points; of several replicas the first one's, whose weights the others get when fit() or evaluate() begins.
  Session& session() { return session_; }
  /// The plan's; what may change when running may be changed before fit(), which checks it as the recipe of a file is checked: kRecipeKey, kRecipeValue.
  Recipe& recipe() { return recipe_; }

  /// Trains on batches: tensors by input name, "x" for the only input, "y" for the target. An epoch is a pass over the data set, whose order follows from its own seeds.
  /// Before it begins it makes the first batch to validate on, and says what is trained, and at the end what the run was like, as hone-run does.
  /// Called again it goes on from the weights and the optimizer's states and step (bias correction, f16's loss scale), and is a run of its own in all else: epochs, the schedule with its warm-up, the order of data and early stopping begin anew; random numbers (dropout) go on, as they follow from the steps that were ever made.
  /// At the end the weights are moving averages where the recipe asks for them. What `stop_requested` says in one of several processes counts in all. After an error they are those of the last step, and it may be called again, unless several processes train together. Throws what TrainingLoop, Checkpoints and DatasetBatches throw; kCheckpoint when all is done, and train.early_stopping's best epoch could not be restored; kUsage for options that make no
  /// sense (run_options.h, as for hone-run train), data without an end that nothing ends, and a run_dir that holds another run's checkpoints.
  TrainResult fit(const Dataset& train, FitOptions options = {});
  /// For on_step and on_epoch, as Keras's `model.stop_training = True`: the run ends after this step or epoch as if no more had been asked for, with its validation, its moving averages or its best
  /// epoch's weights. Processes of one run all do it after the same step or epoch. A run that is gone on with trains what is left.
  void end_training() { is_ended_ = true; }

  /// Loss and metrics over batches. Throws kUsage for a data set without an end, as predict() does, and fit() for one to train on without limit, steps or train.max_seconds, and one to validate on without valid_limit.
  NamedNumbers evaluate(const Dataset& data);

  /// The outputs for all samples, by ONNX name, in order; a target among the tensors is left out. Throws kDataLength for no samples, kPlanMismatch for an output that has no sample axis,
  /// kDataShape for one whose samples are of different shapes.
  NamedTensors predict(const Dataset& data);

  /// Writes the model with its trained weights, or as .safetensors the weights alone; reads them back (runtime/train/weights.h). Of several processes the first one writes, if all have the same weights: kPeer. A name with another ending, such as .h5, is refused: kUsage.
  void save(const std::string& path);
  void load(const std::string& path);

 private:
  /// What steps run on.
  StepRunner& runner();
  const plan::Entry& entry(const char* name, const char* purpose) const;
  Recipe recipe_of_run(const FitOptions& options) const;
  TrainEntries entries(const FitOptions& options) const;
  ToldRun told(const FitOptions& options, std::optional<std::int64_t> batch) const;
  BindOptions bound(const char* flag) const;
  std::unique_ptr<DatasetBatches> batches(const plan::Entry& entry, const Dataset& data, const char* flag, std::int64_t epochs);
  Dataset own_part(const plan::Entry& entry, const Dataset& data) const;

  std::string model_name_, batch_symbol_;
  std::vector<std::byte> onnx_model_;
  Recipe compiled_recipe_, recipe_;
  Replicas replicas_;
  Session& session_;  // of the first one
  SessionRunner alone_;
  std::optional<ReplicaRunner> together_;
  bool is_ended_ = false;
};

}  // namespace hone
