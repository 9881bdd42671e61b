// The run folder: what a training run leaves for people and programs to read.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/recipe.h"
#include "formats/tensorboard_events.h"
#include "runtime/train/means.h"
#include "runtime/train/run_history.h"

namespace hone {

/// How a step went whose loss was scaled (train.precision = "f16").
struct LossScaling {
  double scale = 0;                ///< 0: it was not
  double overflows = 0;            ///< elements of the gradients that were not finite: unless 0 the step was left out
  std::int64_t skipped_steps = 0;  ///< of the whole run, that were left out
};

/// One line of metrics.jsonl for a step; `loss` is the one before the update.
struct StepRecord {
  std::int64_t epoch = 0, step = 0;
  double loss = 0, learning_rate = 0, samples_per_s = 0;
  const NamedNumbers* grad_norms = nullptr;  ///< null: none were computed
  const NamedNumbers* values = nullptr;      ///< the metrics' means over the epoch so far; its loss is left out. May be null
  LossScaling scaling = {};
};
struct EpochRecord {
  std::int64_t epoch = 0;
  const NamedNumbers* values = nullptr;  ///< those of the validation too
  double learning_rate = 0, seconds = 0;
};

/// The files of the folder that are no folders themselves.
inline constexpr const char *kRunCurves = "curves.svg", *kRunTable = "metrics.csv", *kRunLines = "metrics.jsonl", *kRunRecipe = "recipe.json";
inline constexpr std::array kRunFiles = {kRunCurves, kRunTable, kRunLines, kRunRecipe};

/// In the folder, which is made:
///   recipe.json                as resolved
///   metrics.jsonl              a line for each logged step, each one that was left out, and each epoch
///   metrics.csv                a row for each epoch
///   train/, validation/        TensorBoard's events under the names that Keras gives them: batch_* by step, epoch_* by epoch, counted from 0
///   curves.svg                 a picture of all epochs so far
/// Those of an earlier run are replaced. Every record is on its way to the disk when the call returns; the picture is drawn anew after an epoch, or later where
/// epochs are so short that it would take a twentieth of the time, at the end at the latest.
class RunLog {
 public:
  /// `folder` "": nothing is written, ever. With `resume` the run goes on there: what the files hold of later steps and of epochs that were not over is dropped,
  /// because it will be written again, the rest is kept (of events, too), and events go into new files. Throws kFileOpen, kFileRead, kFileWrite.
  RunLog(const std::string& folder, const Recipe& recipe, std::optional<ResumePoint> resume = std::nullopt);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  void step(const StepRecord& record);
  /// A line of its own, whether or not steps are logged, for one that changed nothing because its gradients overflowed; `values` and norms are left out.
  void skipped_step(const StepRecord& record);
  void epoch(const EpochRecord& record);
  /// How the elements of a tensor are spread after `step` steps, for TensorBoard alone.
  void histogram(std::int64_t step, std::string_view name, const Tensor& values);

  /// Of the run so far, the part before it went on included; without a folder its epochs alone.
  const RunHistory& history() const { return history_; }

 private:
  std::string path_of(const char* file) const { return folder_ + "/" + file; }
  void remove_half_written();
  using Clock = std::chrono::steady_clock;

  void begin_afresh();
  void go_on();
  void write_table();
  void draw_curves();
  TensorboardEvents& training_events();
  TensorboardEvents& validation_events();

  std::string folder_;
  std::optional<ResumePoint> resume_;
  RunHistory history_;
  std::size_t columns_ = 0;  // of history_.names() in the table's heading
  std::optional<LogFile> lines_, table_;
  std::optional<TensorboardEvents> training_, validation_;
  bool curves_are_old_ = false;
  Clock::time_point next_curves_;
};

}  // namespace hone
