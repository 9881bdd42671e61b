#include "backends/llvm/gpu_schedule.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "backends/llvm/reduction.h"

namespace hone {

namespace {

constexpr std::int32_t kWarp = 32, kThreads = 256;
/// Inner points of an outer one from which on a warp does them together. Fewer would leave most of its threads idle.
constexpr std::int64_t kWorthAWarp = 32;
/// Destination rows of a block: each block looks at all indices, and few rows leave little to share.
constexpr std::int32_t kScatterRows = 16;

/// The most inner points of a phase; nothing where that is not known when compiling.
std::optional<std::int64_t> most_inner_points(const Nest& nest) {
  std::int64_t most = 1;
  for (const std::vector<std::uint32_t>& inner : nest.inner) {
    Size points = 1;
    for (const std::uint32_t axis : inner) points = points * nest.extents[axis];
    if (not points.is_constant()) return std::nullopt;
    most = std::max(most, points.value());
  }
  return most;
}

bool has_contraction(const Kernel& kernel) {
  const std::vector<std::uint64_t> axes_of = axes_of_expressions(kernel);
  return std::ranges::any_of(kernel.phases, [&](const Phase& phase) {
    return std::ranges::any_of(phase.reductions, [&](const Reduction& reduction) { return is_contraction(kernel, reduction, axes_of); });
  });
}

/// A power of two: halves meet in the reduction.
std::int32_t threads_for(std::optional<std::int64_t> inner_points) {
  if (not inner_points or *inner_points >= kThreads) return kThreads;
  return std::max(kWarp, static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint64_t>(*inner_points))));
}

}  // namespace

GpuLaunch gpu_launch(const Kernel& kernel, const Nest& nest) {
  const std::optional<std::int64_t> inner_points = most_inner_points(nest);
  if (std::ranges::any_of(kernel.phases, &Phase::scatter)) return {GpuSchedule::kScatter, {.threads = kThreads, .points = kScatterRows}};
  // Of a contraction, and where the inner loops walk with a stride that neighbouring points do not have, threads side by side touch memory side by side.
  const bool walks_apart = has_contraction(kernel) or runs_across_outer(kernel, nest);
  if (walks_apart or (inner_points and *inner_points < kWorthAWarp)) return {GpuSchedule::kPoints, {.threads = kThreads, .points = kThreads}};
  return {GpuSchedule::kRows, {.threads = threads_for(inner_points), .points = 1}};
}

}  // namespace hone
