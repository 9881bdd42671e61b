// An entry that fits into a limit of memory: what is kept for the backward pass, and what is made again there, at least cost.
//
// First what costs nothing: results lie where operands did that nobody wants any more. Then values are dropped between two uses and made again (replay.h): one by one, those
// that take the most memory where there is too much of it for the least work; and by segments (T. Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016): of each only
// what later ones read is kept, and the rest is made again when the backward pass comes to it. What fits is then relieved of what it need not make again, and the cheapest wins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/kernel_set.h"
#include "runtime/plan/plan.h"

namespace hone {

struct MemoryLimit {
  std::int64_t bytes = 0;  ///< of weights, states and the arena together; library scratch left out
  std::int64_t batch = 0;  ///< the samples of a step for which it is to hold
};

/// What became of an entry.
struct LimitedEntry {
  std::string name;
  std::int64_t before = 0, after = 0;  ///< bytes of its arena
  double operations = 0, again = 0;    ///< arithmetic of a step, and of what is made again, in additions
  std::vector<std::string> made_again;  ///< the origins of those steps, in order
  std::vector<std::optional<std::uint32_t>> step_before;  ///< by step of the entry as it is now, what step it was or repeats; nothing for a copy. Empty: nothing changed
};

/// What of an entry is made again so that its arena takes at most `bytes`, or, where that is not to be had, as little as was found. Nothing if the sizes do not say everything.
std::optional<LimitedEntry> fit_arena(plan::Entry& entry, const KernelSet& kernels, const DimBindings& sizes, std::int64_t bytes);

struct LimitedProgram {
  MemoryLimit limit;
  std::int64_t persistent = 0;         ///< bytes of weights, states and constants
  std::vector<LimitedEntry> entries;   ///< all of the program's
};

/// Fits all entries into the limit. Throws Error kMemory where a step of a training run of one device does not (in a plan that cannot train: `predict`), saying by how much, and what batch would;
/// others, which take what was found, are in the report. Throws Error kUsage where sizes are not known.
LimitedProgram fit_program(std::vector<plan::Entry>& entries, const std::vector<plan::Persistent>& persistents, const KernelSet& kernels, const std::string& batch_symbol, const MemoryLimit& limit);

/// "memory limit 2 GiB at batch 8: 1.2 GiB of weights and states", and a line for each entry that changed: its peak before and after, what runs again and what that costs.
std::string to_text(const LimitedProgram& program);
/// What is made again in each entry, line by line, for --why.
std::string explain_limit(const LimitedProgram& program);

}  // namespace hone
