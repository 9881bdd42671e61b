// The loops of a kernel, around the code of one point.
#pragma once

#include "backends/llvm/point.h"

namespace hone {

/// Adds the kernel's function to `module`.
void emit_kernel(llvm::Module& module, const Kernel& kernel, HalfConversion half);

}  // namespace hone
