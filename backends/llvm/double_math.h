// f64 functions as straight-line IR, for scalars and vectors: what the scalars of an update need, so that no kernel of a step calls libm.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace hone {

/// e^x for f64 x: within 1 ulp.
llvm::Value* emit_double_exp(llvm::IRBuilder<>& ir, llvm::Value* x);

/// base^x for f64 x and a finite base above 0, as C's pow: within 2 ulp, 0 and infinities where it leaves the range, NaN for NaN.
llvm::Value* emit_power_of_constant(llvm::IRBuilder<>& ir, double base, llvm::Value* x);

/// base^x for f64, as C's pow, its special cases included: within 2 ulp.
llvm::Value* emit_double_power(llvm::IRBuilder<>& ir, llvm::Value* base, llvm::Value* x);

}  // namespace hone
