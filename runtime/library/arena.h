// What an entry point's arena takes, before anything runs: the same placement of the same sizes as the runtime's.
#pragma once

#include <optional>

#include "runtime/plan/plan.h"

namespace hone {

struct ArenaSize {
  std::int64_t bytes = 0;        ///< library scratch left out
  std::int64_t lower_bound = 0;  ///< largest sum of bytes alive at one step
};

/// With those sizes, on this machine and with OpenMP's current number of threads, as library calls decide how large their workspaces are. Nothing where the
/// sizes do not say everything: a size may be read when running.
std::optional<ArenaSize> arena_size(const plan::Entry& entry, const DimBindings& sizes);

}  // namespace hone
