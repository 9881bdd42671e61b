// Measured times of a plan's steps, from a trace that hone-run wrote (--trace).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "runtime/plan/plan.h"

namespace hone {

struct MeasuredStep {
  double microseconds = 0;      ///< of one run, on average; of the slowest thread
  std::int64_t runs = 0;
  struct Span {
    double start = 0, length = 0;  ///< microseconds; since the entry began
  };
  std::optional<Span> span;  ///< in one run of the entry, the same for all steps
};

/// `text` is Chrome's trace format: events of phase "X" with name, ts and dur, and args.origin where several steps have one name. By step of the entry; nothing for those that are not in it.
/// Throws Error kDataFormat for what is no trace, or has none of the entry's steps.
std::vector<std::optional<MeasuredStep>> measured_steps(std::string_view text, const std::string& path, const plan::Entry& entry);

}  // namespace hone
