// Which batches fit into how much memory: told by placing buffers, without running anything.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/plan/plan.h"
#include "runtime/train/summary.h"

namespace hone {

/// What one replica may take.
struct MemoryBudget {
  std::int64_t bytes = 0;
  RunCalls calls = {};
  std::string source;  ///< "--memory-limit 2 GiB", for errors
  bool on_device = false;  ///< of memory of its own, where the batch that is fed lies, too
};

/// The largest batch that fits, whatever the run calls, and at most `most`. Counts weights, states, activations, gradients, the scratch of library calls and, on devices, what is fed.
/// Throws Error kMemory where not even one sample fits, saying what that takes; kUsage where the batch is fixed or sizes are known only when running.
std::int64_t largest_batch(const plan::Program& program, const std::string& batch_symbol, const MemoryBudget& budget, std::int64_t most);

/// Throws Error kMemory if what the run calls does not fit with that batch: what is needed, what there is, and ways out. False where sizes are known only when running, so that nothing can be said.
bool require_fits(const plan::Program& program, const std::string& batch_symbol, const MemoryBudget& budget, std::int64_t batch);

}  // namespace hone
