// The search for what to keep in memory.
#pragma once

#include <cstdint>

#include "backends/replay.h"

namespace hone {

struct KeptChoice {
  Kept kept;
  std::int64_t peak = 0;
  double again = 0;

  bool fits(std::int64_t bytes) const { return peak <= bytes; }
};

/// The cheapest choice found with a peak of at most `bytes`; where there is none, the one of the lowest peak. The same for the same input.
KeptChoice choose_kept(const MemoryUse& use, std::int64_t bytes);

}  // namespace hone
