// The one list of host functions. It declares them in namespace hone::host; entries stand in host/*.cc.
#pragma once

#include "host/host_function.h"

// clang-format off
#define HONE_HOST_FUNCTIONS(X) \
  /* sort.cc */                \
  X(arg_top_k) X(unique_positions) \
  /* select.cc */              \
  X(nonzero_positions) X(non_max_suppression) \
  /* bits.cc, running.cc */    \
  X(bit_cast) X(linear_recurrence) \
  /* determinant.cc */         \
  X(det) X(cofactors)
// clang-format on

namespace hone::host {
#define HONE_DECLARE_HOST_FUNCTION(name) extern const HostFunction name;
HONE_HOST_FUNCTIONS(HONE_DECLARE_HOST_FUNCTION)
#undef HONE_DECLARE_HOST_FUNCTION
}  // namespace hone::host
