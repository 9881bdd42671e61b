// The run folder: what a training run leaves for people and programs to read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/recipe.h"
#include "runtime/train/means.h"

namespace hone {

/// One line of metrics.jsonl for a step; `loss` is the one before the update.
struct StepRecord {
  std::int64_t epoch = 0, step = 0;
  double loss = 0, learning_rate = 0, samples_per_s = 0;
  const NamedNumbers* grad_norms = nullptr;  ///< null: none were computed
};
struct EpochRecord {
  std::int64_t epoch = 0;
  const NamedNumbers* values = nullptr;  ///< those of the validation too
  double learning_rate = 0, seconds = 0;
};

/// recipe.json (as resolved), metrics.jsonl and metrics.csv in the folder, which is made; those of an earlier run are replaced. Every line is on its
/// way to the disk when the call returns.
class RunLog {
 public:
  /// `folder` "": nothing is written, ever. Throws kFileOpen, kFileWrite.
  RunLog(const std::string& folder, const Recipe& recipe);

  void step(const StepRecord& record);
  void epoch(const EpochRecord& record);

 private:
  std::optional<LogFile> lines_, table_;
  bool has_heading_ = false;
};

}  // namespace hone
