// f32 transcendentals as straight-line IR, so that loops with them become vector code. Usable for any target of LLVM.
// Each has an error of at most 2 ulp over all floats; overflow, underflow to denormals, infinities and NaN come out as in C's functions.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace hone {

llvm::Value* emit_exp(llvm::IRBuilder<>& ir, llvm::Value* x);
llvm::Value* emit_log(llvm::IRBuilder<>& ir, llvm::Value* x);
llvm::Value* emit_tanh(llvm::IRBuilder<>& ir, llvm::Value* x);
llvm::Value* emit_sigmoid(llvm::IRBuilder<>& ir, llvm::Value* x);
llvm::Value* emit_erf(llvm::IRBuilder<>& ir, llvm::Value* x);

}  // namespace hone
