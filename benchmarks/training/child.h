// Child processes: the tools, as a user starts them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone::benchmarks {

struct ChildRun {
  std::string out;     ///< standard output
  double seconds = 0;  ///< from its start to its end
};

/// Runs `words`, the first one a tool in the folder that this program lies in. Throws Error kUsage when it cannot be started, kFileRead when it fails, with what it
/// said on standard error.
ChildRun run_beside(const std::vector<std::string>& words);

/// Binds this process, and so its children, to that many cores, each on its own: threads of one core count once. Leaves things as they are when there are not as many.
void bind_to_cores(std::int64_t count);

}  // namespace hone::benchmarks
