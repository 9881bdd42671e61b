// What a kernel takes, for summaries and rooflines. What decides is backends/cost_model.h.
#pragma once

#include "ir/kernel/kernel.h"

namespace hone {

struct KernelCost {
  Dim flops = 0;  ///< Arithmetic::flops
  Dim bytes = 0;  ///< elements that it reads or writes, each once: of a table of which a few rows are read, those rows
};

KernelCost cost_of(const Kernel& kernel);

}  // namespace hone
