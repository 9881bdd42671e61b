// How long a training step takes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/batches.h"
#include "runtime/data/spec.h"
#include "runtime/trace.h"
#include "runtime/train/means.h"

namespace hone {

struct BenchOptions {
  std::int64_t batch_size = 32;
  std::int64_t steps = 0;  ///< timed steps; 0: as many as `seconds` hold
  double seconds = 3;
  double warm_up_seconds = 0.2;  ///< untimed steps, three at least
  double learning_rate = 1e-3;
  std::string batch_symbol;
  GatherOptions gather;  ///< of batches: for which device and replicas; they are made before a step is timed, by one thread
  DimBindings dims;  ///< other symbolic sizes
  std::vector<DataSource> data;  ///< none: made-up data
  std::map<std::string, double> scale;  ///< factors by input name, for data that are integers
  std::function<void()> start_measuring;  ///< called, if given, after the timed steps; more steps follow, for what it switched on
  std::function<TraceTrack*()> start_tracing;  ///< called, if given, after those; some steps follow, which are written down on the track
};

/// Times in seconds, of the steps alone: data are in the host's memory before, and come to a device while it works on the step before, as in training.
struct BenchResult {
  std::int64_t batch = 0, steps = 0;
  double p10 = 0, median = 0, p90 = 0;
  double first_step = 0;  ///< with its preparations
  double process_to_first_step = 0;  ///< from the start of the process to the end of the first step
  double first_loss = 0, final_loss = 0;
  std::int64_t measured_steps = 0;  ///< after start_measuring()
  double measured_seconds = 0;
  double other_load = 0;  ///< cores that other processes used while timing, in the mean
};

/// Of sorted numbers, one at least, the one that this share of them is below.
double percentile(std::span<const double> sorted, double share);

/// Trains on the data, batch after batch and again from the start, or on made-up ones (numbers in [0, 1), classes and ids within their bounds), after a warm-up;
/// they change at every step. Throws kUsage for a symbolic size that `dims` does not fix, and what BoundArrays throws.
BenchResult bench(StepRunner& runner, const plan::Entry& entry, const BenchOptions& options);

}  // namespace hone
