// Steps of an entry that run again: a value is dropped after one use and made again before a later one, by the step that made it, from the same operands. So it
// is the same value, bit by bit, and the kernels are the same.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/memory_use.h"

namespace hone {

/// What stays in memory, by interval of MemoryUse. A value that is not there where it is read is made again, with all that this takes and that is not there either.
using Kept = std::vector<bool>;

/// As the schedule has it: everything stays until its last use. Small values stay beyond it, where a step that runs again wants them.
Kept all_kept(const MemoryUse& use);

/// The steps as they then run, and what is in memory.
struct Replay {
  struct Placed {
    enum class Kind : std::uint8_t { kFirst, kAgain, kCopy /* of a state, before the step that changes it */ };
    std::uint32_t step = 0;
    Kind kind = Kind::kFirst;
    std::uint32_t time = 0;                         ///< the step before, or as, which it runs
    std::vector<std::uint32_t> versions = {};       ///< that it uses; of each root one
  };
  /// A value in memory, from when it is made to its last use.
  struct Version {
    std::uint32_t root = 0, first = 0, last = 0;  ///< positions in `placed`
    std::uint32_t shares = 0;                     ///< the version whose memory it takes over; itself where it has its own
  };
  std::vector<Placed> placed;
  std::vector<Version> versions;
  std::vector<std::int64_t> live;  ///< bytes, by position in `placed`
  std::int64_t peak = 0;           ///< the largest of them, with the arenas of loops' bodies
  double again = 0;                ///< operations of the steps that run again
};
Replay replay(const MemoryUse& use, const Kept& kept);

/// The entry that runs so.
plan::Entry replayed(const plan::Entry& entry, const Replay& replay);

}  // namespace hone
