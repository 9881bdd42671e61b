// One row per ScalarOp: which LLVM instructions it is, on floats and on integers. Also how elements look in memory and as values.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <span>

#include "ir/kernel/kernel.h"

namespace hone {

/// As a value: f16 and bf16 are float, bool is i1.
llvm::Type* value_type(llvm::LLVMContext& context, DType dtype);
/// In memory: f16 and bf16 are i16, bool is i8.
llvm::Type* storage_type(llvm::LLVMContext& context, DType dtype);

/// Does the target convert f16 by an instruction? If not, integer arithmetic does it.
enum class HalfConversion : std::uint8_t { kInstruction, kArithmetic };

llvm::Value* widen(llvm::IRBuilder<>& ir, DType storage, llvm::Value* loaded, HalfConversion half);
/// Floats are rounded to nearest even.
llvm::Value* narrow(llvm::IRBuilder<>& ir, DType storage, llvm::Value* value, HalfConversion half);

/// The value of an operation, with the meaning that ir/kernel/expr.h gives it. `operand_type` is the type of the operation's operands
/// (for select: of what is selected). Leaves (constants, indices, loads, temporaries) are the caller's.
llvm::Value* emit_operation(llvm::IRBuilder<>& ir, ScalarOp op, DType operand_type, DType result_type, std::span<llvm::Value* const> operands);

llvm::Value* emit_constant(llvm::IRBuilder<>& ir, DType dtype, double float_value, std::int64_t int_value);

/// The value that a reduction starts with: 0, 1, lowest or highest.
llvm::Value* reduction_start(llvm::IRBuilder<>& ir, ReduceKind kind, DType value_type);

}  // namespace hone
