#include "runtime/train/told_run.h"

#include "runtime/train/machine_load.h"
#include "runtime/train/report.h"

namespace hone {

namespace {

std::optional<PlannedMemory> planned_for(const ToldRun& run) {
  if (run.batch_size == 0) return std::nullopt;
  return planned_memory(run.program, run.batch_symbol, run.batch_size, run.calls);
}

}  // namespace

void say_summary(Progress& progress, const ToldRun& run) {
  progress.say(model_summary(run.program, {.model_name = run.model_name,
                                           .batch_size = run.batch_size,
                                           .planned = planned_for(run),
                                           .all_weights = run.all_weights,
                                           .optimizer_shares = run.calls.shares,
                                           .columns = progress.columns()}));
}

void say_report(Progress& progress, const ToldRun& run, const TrainResult& result) {
  progress.say(run_report({.steps = result.steps - result.earlier_steps,
                           .samples = run.counts_samples ? result.samples : 0,
                           .seconds = result.seconds,
                           .best = result.best,
                           .peak_bytes = peak_memory_bytes(),
                           .planned = planned_for(run),
                           .run_dir = run.run_dir}));
}

}  // namespace hone
