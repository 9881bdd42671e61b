// One row per ScalarOp: which LLVM instructions it is, on floats and on integers.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <span>

#include "backends/llvm/storage.h"
#include "ir/kernel/kernel.h"

namespace hone {

/// Has the processor an instruction for a * b + c that rounds once?
enum class MultiplyAdd : std::uint8_t { kFused, kApart };

/// The value of an operation, with the meaning that ir/kernel/expr.h gives it. `operand_type` is the type of the operation's operands
/// (for select: of what is selected). Operands are scalars, or vectors of one length (a select's condition may be a scalar all the same). Leaves (constants, indices, loads, temporaries) are the caller's.
llvm::Value* emit_operation(llvm::IRBuilder<>& ir, ScalarOp op, DType operand_type, DType result_type, std::span<llvm::Value* const> operands);

/// Is an f32's a function of float_math.h?
bool is_long_chain(ScalarOp op);

llvm::Value* emit_constant(llvm::IRBuilder<>& ir, DType dtype, double float_value, std::int64_t int_value);

/// The value that a reduction starts with: 0, 1, lowest or highest.
llvm::Value* reduction_start(llvm::IRBuilder<>& ir, ReduceKind kind, DType value_type);

}  // namespace hone
