// Pairs of a library's call and a kernel that another row does in one call (plan::LibraryStep::Epilogue): a product with the kernel that adds a bias to it, or with the one that sums the gradient of a
// bias. The device chooses between the two and the one by timing; here is only what could be one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/kernel_set.h"
#include "backends/step_nodes.h"
#include "runtime/plan/plan.h"

namespace hone {

/// What a kernel does that is an epilogue of products.
struct EpilogueKernel {
  enum class Kind : std::uint8_t {
    kBias,     ///< result[.., n] = values[.., n] + vector[n]; with `relu` max(0, that)
    kColumns,  ///< result[n] = sum of values[.., n]
  };
  Kind kind = Kind::kBias;
  bool relu = false;
  std::uint32_t values = 0, vector = 0, result = 0;  ///< of its buffers
  Dim columns;                                        ///< n
};
/// Nothing for a kernel that does something else.
std::optional<EpilogueKernel> epilogue_kernel(const Kernel& kernel);

/// Makes one step of each pair in the entry and the bodies in it, and keeps live ranges and `nodes`, if given, with the steps. Returns a line for each pair, for --why.
std::vector<std::string> pair_epilogues(plan::Entry& entry, const KernelSet& kernels, StepNodes* nodes);

}  // namespace hone
