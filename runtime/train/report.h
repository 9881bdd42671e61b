// What a run was like, said when it is over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/train/run_history.h"
#include "runtime/train/summary.h"

namespace hone {

struct RunReport {
  std::int64_t steps = 0;
  std::int64_t samples = 0;  ///< 0: not known
  double seconds = 0;        ///< of the whole run, validation included
  std::optional<BestEpoch> best;
  std::uint64_t peak_bytes = 0;  ///< of the process; 0: not known
  std::optional<PlannedMemory> planned;
  std::string run_dir;           ///< "": there is none
};

/// Speed, best epoch, memory, and where the files are: a line each, and none for what is not known. No line end at the end.
std::string run_report(const RunReport& report);

}  // namespace hone
