// Kernels as GPUs run them: blocks of threads, with barriers between phases. One emitter writes them for two machines:
//   a GPU        each thread runs the function (Signature::kLaunch)
//   a processor  a call is one block: what stands between two barriers is a loop over the threads, which run it one after the other (Signature::kBlock)
// Nothing but shared memory lives from one side of a barrier to the other, so the two do the same operations in the same order on the same numbers.
#pragma once

#include <llvm/IR/Module.h>

#include "backends/llvm/point.h"

namespace hone {

/// The code of a kernel, and beside it its plan::LaunchShape. Sums are taken in an order that depends on the kernel alone.
void emit_in_blocks(llvm::Module& module, const Kernel& kernel, const Nest& nest, Point& point);

}  // namespace hone
