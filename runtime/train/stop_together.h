// Several processes that train together end after the same step, whichever of them wants to.
#pragma once

#include "runtime/train/replica_runner.h"
#include "runtime/train/training_loop.h"

namespace hone {

/// While it lives, what `options` ask one process counts in all, and so does its clock. Null: there is one process, whose options stay as they are.
class StopTogether {
 public:
  StopTogether(ReplicaRunner* processes, double max_seconds, TrainOptions& options) : processes_(processes) {
    if (processes == nullptr) return;
    processes->ask(options.stop_requested, max_seconds);
    options.stop_requested = [processes] { return processes->agreed().stop; };
    options.out_of_time = [processes] { return processes->agreed().out_of_time; };
  }
  ~StopTogether() {
    if (processes_ != nullptr) processes_->ask({}, 0);
  }
  StopTogether(const StopTogether&) = delete;
  StopTogether& operator=(const StopTogether&) = delete;

 private:
  ReplicaRunner* processes_;
};

}  // namespace hone
