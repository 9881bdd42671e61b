// What may be asked of a training run, and what makes no sense: the same for hone-run train's flags and for FitOptions.
#pragma once

#include <cstdint>

#include "base/diag.h"

namespace hone {

struct RunOptions {
  std::int64_t steps = 0, limit = 0, valid_limit = 0, log_every = 0, save_steps = 0, keep = 1, check_every = 0;
  bool has_valid = false, has_run_dir = false, resume = false, keep_best = false, dry_run = false;
};

enum class Spelling : std::uint8_t {
  kFlags,    ///< --save-steps
  kMembers,  ///< fit: save_steps
};

/// Adds an error kUsage for each thing that is wrong, in the words of whoever asked.
void check_run_options(const RunOptions& options, Spelling spelling, Diags& diags);

}  // namespace hone
