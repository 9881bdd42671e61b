// Own code for the functions of libm that a module calls: GPUs have none, and who plays a GPU computes what it computes.
#pragma once

#include <llvm/IR/Module.h>

namespace hone {

/// Replaces every call of a function of libm, and every floating-point remainder, by a function of the module. Those of f32 are worked out in f64 and rounded: within 0.51 ulp. Those of
/// f64: within a few units of the last place, pow where the result is far from 1 within some hundred. Angles may be of any size. Remainders are exact.
void define_math(llvm::Module& module);

}  // namespace hone
