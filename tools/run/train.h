// hone-run train.
#pragma once

#include "tools/run/job.h"

namespace hone {

/// Trains a plan; the exit code. SIGINT, SIGTERM, SIGUSR1 and SIGHUP (unless nohup ignores it) let the step be finished and everything be saved: 75, or 130 where there was nowhere to save to. A second
/// SIGINT ends the process at once: 130.
int train(const Arguments& arguments);

}  // namespace hone
