// What a person is told of a run before it begins and when it is over: the same of a command and of a program.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/plan/plan.h"
#include "runtime/train/progress.h"
#include "runtime/train/summary.h"
#include "runtime/train/training_loop.h"

namespace hone {

struct ToldRun {
  const plan::Program& program;
  std::string model_name, batch_symbol;  ///< the plan's
  RunCalls calls = {};
  std::int64_t batch_size = 0;   ///< of each replica; 0: not known before the data are
  std::string run_dir;           ///< "": there is none
  bool all_weights = false;      ///< or of a long list the first and the last
  bool counts_samples = true;    ///< TrainResult::samples are samples
};

/// model_summary(), as wide as there is room.
void say_summary(Progress& progress, const ToldRun& run);
/// run_report(), with the best epoch of the whole run, of those included that went before it was gone on with.
void say_report(Progress& progress, const ToldRun& run, const TrainResult& result);

}  // namespace hone
