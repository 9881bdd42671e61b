// A cuBLASLt that multiplies on the host, column by column as the real one counts, and keeps count of what is made and destroyed.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/device/cublaslt.h"

namespace hone::test {

struct FakeCublaslt {
  int alive = 0;                      ///< descriptors, layouts, preferences
  int calls = 0;
  std::size_t wanted_workspace = 0;   ///< of the algorithm that it recommends
  std::size_t allowed_workspace = 0;  ///< as it was told
  std::uint32_t alignment = 0;
  std::uint32_t reductions = 0;
  int compute = 0;                    ///< of the last product
  int recommended = 1;                ///< algorithms, where these are not described:
  struct Algorithm {
    std::uint64_t number = 42;
    std::size_t workspace = 0;
    cublaslt::Status status = 0;
    int milliseconds = 0;             ///< that a product takes
  };
  std::vector<Algorithm> algorithms = {};
  std::uint64_t used_algorithm = 0;   ///< of the last product
  std::int64_t milliseconds = 0;      ///< of all products
  cublaslt::Status next_failure = 0;  ///< of products
  std::uint32_t epilogue = 0;         ///< of the last product
  bool drops_nans = false;            ///< its relu gives 0 for a NaN
};

/// Functions that work on `fake`, which outlives them. One at a time.
cublaslt::Library library_of(FakeCublaslt& fake);

}  // namespace hone::test
