// An NCCL whose GPUs' memory is the host's: replicas are threads of this process, and their exchanges meet in it. Like the real one's communicators of that kind, it answers at once, and is asked whether
// all have come.
#pragma once

#include <string>
#include <vector>

#include "runtime/device/nccl.h"

namespace hone::test {

struct FakeNccl {
  std::vector<std::string> told;      ///< calls that move data, of the replica 0
  int alive = 0, aborted = 0;         ///< communicators
  nccl::Result next_failure = 0;      ///< what every communicator has met from now on
  bool has_id = true;
};

/// Functions that work on `fake`, which outlives them. One at a time.
nccl::Library library_of(FakeNccl& fake);

}  // namespace hone::test
