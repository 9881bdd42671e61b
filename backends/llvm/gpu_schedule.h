// How the points of a kernel are shared out among the threads of a GPU. Results depend on it, but not on the number of blocks.
#pragma once

#include "backends/llvm/nest.h"
#include "runtime/plan/launch.h"

namespace hone {

enum class GpuSchedule : std::uint8_t {
  kPoints,   ///< a thread an outer point, with all its phases; the next points are the other threads' (grid-stride)
  kRows,     ///< a block some neighbouring outer points (`columns`): threads share the inner points of each, and what they reduce meets in shared memory
  kScatter,  ///< a block owns neighbouring rows of the destination, and looks through all that is stored for what is theirs: what meets does so in index order
};

struct GpuLaunch {
  GpuSchedule schedule = GpuSchedule::kPoints;
  plan::LaunchShape shape = {};
  /// Neighbouring points that a thread does at once (kPoints): each access touches one element for all of them, or elements side by side, of which the first is a multiple of this in its
  /// buffer where the first point is one in the kernel's range.
  std::uint32_t lanes = 1;
  /// Of a block (kRows). Threads side by side work on the same inner points of neighbouring outer ones.
  std::int32_t columns = 1;

  std::int32_t slices() const { return shape.threads / columns; }  ///< threads that share the inner points of one outer point
};

/// Bytes that a thread loads or stores at once, at most: memory has to begin at a multiple of them.
inline constexpr std::uint32_t kGpuVectorBytes = 16;

/// Depends on the kernel alone.
GpuLaunch gpu_launch(const Kernel& kernel, const Nest& nest);

}  // namespace hone
