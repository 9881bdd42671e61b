// How kernels in blocks, those of programs for GPUs, are launched. Beside each kernel NAME its code has a constant NAME_launch, so that code and shape cannot part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace hone::plan {

/// As it lies in code: two 32-bit integers.
struct LaunchShape {
  std::int32_t threads = 0;  ///< of a block
  std::int32_t points = 0;   ///< outer points that are worth a block: more blocks than the range has such parts would find nothing to do
};

inline std::string launch_symbol(const std::string& kernel) { return kernel + "_launch"; }

/// How many blocks a range of points is worth, at least one. Any number gives the same bits: a block does what is left for it.
inline std::int64_t blocks_for(LaunchShape shape, std::int64_t range, std::int64_t most) {
  return std::clamp<std::int64_t>(range / shape.points + (range % shape.points != 0), 1, most);
}

}  // namespace hone::plan
