// How elements look in memory and as values, and the conversions between the two. Those of floats are built from the rows of base/float_format.h.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "base/float_format.h"

namespace hone {

/// As a value: f32 or i32 for types that are storage only, i1 for bool.
llvm::Type* value_type(llvm::LLVMContext& context, DType dtype);
/// In memory: integers of the element's bytes for types that are storage only, i8 for bool.
llvm::Type* storage_type(llvm::LLVMContext& context, DType dtype);

/// `element`, or where `like` is a vector, a vector of as many.
llvm::Type* shaped_like(const llvm::Value* like, llvm::Type* element);

/// Does the target convert f16 by an instruction? If not, integer arithmetic does it.
enum class HalfConversion : std::uint8_t { kInstruction, kArithmetic };

// These take scalars and vectors alike.
llvm::Value* widen(llvm::IRBuilder<>& ir, DType storage, llvm::Value* loaded, HalfConversion half);
/// Floats are rounded to nearest even, integers keep their low bits.
llvm::Value* narrow(llvm::IRBuilder<>& ir, DType storage, llvm::Value* value, HalfConversion half);
/// `value`, f32, f64 or i32, as if stored by `to` and loaded.
llvm::Value* round_to(llvm::IRBuilder<>& ir, StorageRounding to, llvm::Value* value, HalfConversion half);

}  // namespace hone
