// Integer power for kernels: C has none, so the module gets its own function, square and multiply.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace hone {

enum class ExponentSign : std::uint8_t { kSigned, kUnsigned };

/// base^exponent modulo 2^64 of two i64. A negative exponent leaves 1 or -1 for those bases, else 0.
llvm::Value* call_integer_power(llvm::IRBuilder<>& ir, llvm::Value* base, llvm::Value* exponent, ExponentSign sign);

}  // namespace hone
