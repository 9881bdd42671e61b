// Where the buffers of an entry lie in its arena, and what is alive when: the same placement that the runtime makes (runtime/library/arena.h), buffer by buffer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/plan/plan.h"

namespace hone {

struct PlacedMemory {
  std::vector<std::optional<std::int64_t>> bytes;  ///< of each buffer, wherever it lies; nothing where the sizes do not say it
  // Where they say everything:
  std::optional<std::int64_t> arena;         ///< bytes of the entry's own; library scratch left out
  std::int64_t bodies = 0;                   ///< bytes of the arenas of loops and branches, which are others
  std::vector<std::int64_t> offsets;         ///< by buffer; those that are not in the arena have -1
  std::vector<std::int64_t> live;            ///< bytes alive, by step
  std::uint32_t peak_step = 0;               ///< the first at which most are
  std::int64_t peak_bytes = 0;
  std::vector<std::uint32_t> alive_at_peak;  ///< buffers, the largest first
};

PlacedMemory placed_memory(const plan::Entry& entry, const DimBindings& sizes);

}  // namespace hone
