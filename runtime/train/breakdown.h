// Where the time of a step goes, as text and as JSON.
#pragma once

#include <span>
#include <string>

#include "runtime/step_times.h"
#include "runtime/train/bench.h"
#include "runtime/train/json_line.h"

namespace hone {

/// The sums by kind and the steps that take longest, of `times` measured while result.measured_steps steps ran.
std::string breakdown_text(std::span<const StepTime> times, const BenchResult& result);
/// The sums in ms a step: {"kernels_ms":..., "library_ms":..., "host_ms":..., "copies_ms":..., "overhead_ms":...}; the overhead is what is spent between the steps,
/// in loops and branches included.
JsonLine breakdown_json(std::span<const StepTime> times, const BenchResult& result);

}  // namespace hone
