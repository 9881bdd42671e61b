// How long a training step takes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/train/means.h"

namespace hone {

struct BenchOptions {
  std::int64_t batch_size = 32;
  std::int64_t steps = 0;  ///< timed steps; 0: as many as `seconds` hold
  double seconds = 3;
  double learning_rate = 1e-3;
  std::string batch_symbol;
  DimBindings dims;  ///< other symbolic sizes
};

/// Times in seconds, of the steps alone: data are in memory before.
struct BenchResult {
  std::int64_t batch = 0, steps = 0;
  double p10 = 0, median = 0, p90 = 0;
  double first_step = 0;  ///< with its preparations
  double first_loss = 0, final_loss = 0;
};

/// Trains on made-up data (numbers in [0, 1), classes and ids within their bounds) that change at every step, after a warm-up. Throws kUsage for a symbolic
/// size that `dims` does not fix.
BenchResult bench(StepRunner& runner, const plan::Entry& entry, const BenchOptions& options);

}  // namespace hone
