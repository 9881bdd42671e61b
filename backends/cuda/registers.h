// Room for a kernel's values: how many of its blocks share the registers of a multiprocessor.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/ptxas.h"

namespace hone {

/// The kernels that keep some of their values in memory for want of registers, by what `ptxas -v` reports.
std::vector<std::string> spilling_kernels(std::string_view report);

/// The PTX with a `.minnctapersm` for each kernel that is named, in place of ptxas's own idea of how many blocks should run on a multiprocessor at a time.
std::string with_blocks_at_a_time(std::string_view ptx, const std::map<std::string, int, std::less<>>& kernels);

struct Roomy {
  std::string ptx;
  Assembled assembled;  ///< for the first of the GPUs
};

/// ptxas gives a kernel few registers, so that many blocks run at a time, and may spill a value or two rather than take some more. The PTX in which those
/// kernels, and no others, ask for as many registers as it takes on all these GPUs (or for all there are).
Roomy without_spills(const std::string& ptxas, std::string ptx, std::span<const std::string> gpus);

}  // namespace hone
