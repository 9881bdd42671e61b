// What an entry does with memory, step by step: what a search for what to make again looks at.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "backends/kernel_set.h"
#include "runtime/plan/plan.h"

namespace hone {

/// All numbers of buffers are of roots: a view is what it shows.
struct MemoryUse {
  /// By buffer; empty for what is no root, is fed or persistent.
  struct Root {
    std::int64_t bytes = 0;            ///< as placed
    std::vector<std::uint32_t> steps;  ///< that use it, in order, the one that makes it first
    bool can_be_made_again = false;    ///< by its first step, which changes nothing else, at any later time
    std::size_t first_interval = 0;    ///< the interval between its uses k and k + 1 is number first_interval + k; the last one is behind its last use
  };
  struct Step {
    std::vector<std::uint32_t> reads, writes;  ///< of the arena
    std::vector<std::uint32_t> states;         ///< persistents that it reads
    double operations = 0;                     ///< arithmetic, in additions
    std::int64_t bytes = 0;                    ///< besides its buffers
    std::vector<std::pair<std::uint32_t, std::uint32_t>> in_place;  ///< (written, read): the first may lie where the second does
  };
  std::vector<Root> roots;
  std::vector<Step> steps;
  std::vector<std::vector<std::uint32_t>> changes;  ///< by root of a persistent: the steps that write to it
  std::size_t intervals = 0;
  double operations = 0;        ///< of all steps
  std::int64_t bodies = 0;      ///< bytes of arenas of loops' bodies

  /// Which of a root's intervals a time between two steps is in, where it is used before `step` and not by it; of those behind its last use the last.
  std::size_t interval_at(std::uint32_t root, std::uint32_t step) const;
};

/// Nothing where the sizes do not say everything.
std::optional<MemoryUse> memory_use(const plan::Entry& entry, const KernelSet& kernels, const DimBindings& sizes);

}  // namespace hone
