// How near the steps of a plan are to what the machine, or the device, can do.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "runtime/device/peak.h"
#include "runtime/session.h"
#include "runtime/step_times.h"
#include "runtime/train/bench.h"
#include "runtime/train/json_line.h"

namespace hone {

/// What steps are compared with.
struct Roof {
  std::string of;                   ///< "2 threads of this machine", "cuda:0"
  std::optional<MachinePeak> peak;  ///< nothing: it is not known, and no shares of it are told
  bool on_device = false;
};
/// Of where the session runs: the host's is measured, a device's is what it says of itself.
Roof roof_of(const Session& session);

/// A table by kernel and library call (time, GB/s, GFLOP/s, share of the peak), and the ten nodes on which most time is spent beyond what the machine would need, of
/// `times` measured while result.measured_steps steps ran. The share is that of the nearer limit, memory or arithmetic; a kernel whose data lie in a cache may pass 100 %.
std::string roofline_text(std::span<const StepTime> times, const BenchResult& result, const Roof& roof);
/// {"peak_gb_per_s":..., "peak_gflop_per_s":..., "gb_per_step":..., "gflop_per_step":..., "share_of_peak":...}: of all steps together; without peaks and share where the peak is not known.
JsonLine roofline_json(std::span<const StepTime> times, const BenchResult& result, const Roof& roof);

}  // namespace hone
