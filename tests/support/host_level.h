// Which code tests compile that are about what is computed, not about code: every level takes its time, and what is particular to one is tested with the
// kernels (tests/backends).
#pragma once

#include <string>

#include "runtime/device/cpu.h"

namespace hone::test {

/// The best that this machine runs.
inline std::string host_level() { return std::string(to_string(host_cpu_level())); }

/// Without it oneDNN takes other code for products.
inline bool has_avx512() { return host_cpu_level() >= CpuLevel::kV4; }

}  // namespace hone::test
