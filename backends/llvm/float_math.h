// f32 transcendentals as straight-line IR, for scalars and vectors, so that loops with them become vector code. Usable for any target of LLVM.
// Errors over all floats: exp and log at most 1.3 ulp, sigmoid 2.2, erf 1.9 and tanh 2.5 (2.6 and 2.9 where no instruction multiplies and adds at once); overflow, infinities and NaN come
// out as in C's functions. exp is 0 below 2^-125.5, so that it needs but one power of two: threads that train flush what is below 2^-126 anyway.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace hone {

llvm::Value* emit_exp(llvm::IRBuilder<>& ir, llvm::Value* x);
llvm::Value* emit_log(llvm::IRBuilder<>& ir, llvm::Value* x);
llvm::Value* emit_tanh(llvm::IRBuilder<>& ir, llvm::Value* x);
llvm::Value* emit_sigmoid(llvm::IRBuilder<>& ir, llvm::Value* x);
llvm::Value* emit_erf(llvm::IRBuilder<>& ir, llvm::Value* x);

}  // namespace hone
