// The loops of a kernel, around the code of one point.
#pragma once

#include <llvm/IR/Module.h>

#include "backends/llvm/blocking.h"
#include "backends/llvm/point.h"
#include "backends/llvm/scalar.h"
#include "backends/llvm/storage.h"

namespace hone {

/// What the emitted code may rely on.
struct EmitTarget {
  HalfConversion half;
  MultiplyAdd multiply_add;
  VectorUnit vectors;
  Signature signature = Signature::kRange;  ///< the others are for kernels in blocks
};

/// Adds the kernel's function to `module`.
void emit_kernel(llvm::Module& module, const Kernel& kernel, const EmitTarget& target);

}  // namespace hone
