// What an entry point's arena takes, before anything runs: the same placement of the same sizes as the runtime's.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace hone {

/// The sizes of a plan whose samples' axis has the symbol `batch_symbol` ("": none), for so many samples.
DimBindings sizes_for(const std::string& batch_symbol, std::int64_t batch);

struct ArenaSize {
  std::int64_t bytes = 0;        ///< library scratch left out
  std::int64_t lower_bound = 0;  ///< largest sum of bytes alive at one step
};

/// What is placed in an arena.
struct ArenaNeeds {
  std::vector<std::int64_t> buffers;  ///< bytes of each of the entry's buffers, wherever it lies
  std::vector<std::int64_t> steps;    ///< bytes that each step takes besides: a loop's states
  ArenaSize bodies;                   ///< those of loops and branches have arenas of their own; those of calls are left out, as the calls are made
};

/// With those sizes, on this machine and with OpenMP's current number of threads, as library calls decide how large their workspaces are. Nothing where the
/// sizes do not say everything: a size may be read when running.
std::optional<ArenaNeeds> arena_needs(const plan::Entry& entry, const DimBindings& sizes);
std::optional<ArenaSize> arena_size(const plan::Entry& entry, const DimBindings& sizes);

/// What the library calls of an entry overwrite while they run, which lies behind the arena: the most that one of them takes, and the same for each body of a loop, for sizes for which arena_size() tells something. Makes
/// every call of the host's libraries, which takes as long as preparing a run does.
std::int64_t library_scratch(const plan::Entry& entry, const DimBindings& sizes);

/// On a device the scratch begins at a multiple of this, counted from where the arena begins.
inline constexpr std::int64_t kDeviceScratchAlignment = 256;

/// What the feeds of an entry take on a device, for sizes for which arena_size() tells something.
std::int64_t fed_bytes(const plan::Entry& entry, const DimBindings& sizes);

/// Of one library step of the entry: multiplications and additions, roughly.
double library_operations(const plan::Entry& entry, const plan::LibraryStep& step, const DimBindings& sizes);

/// What weights, states and constants take in a session's memory.
std::int64_t persistent_bytes(std::span<const plan::Persistent> persistents);

}  // namespace hone
