// Measured times of a plan's steps, from a trace that hone-run wrote (--trace).
#pragma once

#include <optional>
#include <string>
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

struct TracedEvent {
  std::string name, origin;
  std::string entry;  ///< of which the step is; "" where the trace does not say
  double begin = 0, duration = 0;
};

struct TracedRun {
  std::string path;                              ///< for messages
  std::vector<std::string> targets;              ///< of whose programs it is; none where the trace does not say
  std::vector<std::vector<TracedEvent>> tracks;  ///< the spans of each, in the order of their begin
};

/// `text` is Chrome's trace format: events of phase "X" with name, ts and dur, with args.origin where several steps have one name, and args.entry where those of several entries do; otherData.targets.
/// Throws Error kDataFormat for what is no trace.
TracedRun read_trace(std::string_view text, const std::string& path);

/// By step of the entry; nothing for those that are not in the trace. What ran as a part of the entry for several replicas counts, too. Throws Error kDataFormat where it has none of them.
std::vector<std::optional<MeasuredStep>> measured_steps(const TracedRun& trace, const plan::Entry& entry);

/// The program that the trace is of: the one that it names, or else the one of whose `entry` it has most. Throws Error kUsage where the plan has not the one that it names.
const plan::Program& traced_program(const TracedRun& trace, const plan::Plan& plan, std::string_view entry);

}  // namespace hone
