#include "backends/llvm/integer_power.h"

#include <llvm/IR/Module.h>

namespace hone {

namespace {

/// i64 (i64 base, i64 exponent) for an exponent of at least 0.
llvm::Function* power_function(llvm::Module& module) {
  constexpr const char* kName = "hone.integer_power";
  if (llvm::Function* function = module.getFunction(kName)) return function;
  llvm::IRBuilder<> ir(module.getContext());
  auto* type = llvm::FunctionType::get(ir.getInt64Ty(), {ir.getInt64Ty(), ir.getInt64Ty()}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::InternalLinkage, kName, module);
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();
  function->addFnAttr(llvm::Attribute::WillReturn);
  auto* entry = llvm::BasicBlock::Create(module.getContext(), "entry", function);
  auto* loop = llvm::BasicBlock::Create(module.getContext(), "loop", function);
  auto* exit = llvm::BasicBlock::Create(module.getContext(), "exit", function);
  ir.SetInsertPoint(entry);
  ir.CreateBr(loop);
  ir.SetInsertPoint(loop);
  llvm::PHINode* result = ir.CreatePHI(ir.getInt64Ty(), 2, "result");
  llvm::PHINode* factor = ir.CreatePHI(ir.getInt64Ty(), 2, "factor");
  llvm::PHINode* bits = ir.CreatePHI(ir.getInt64Ty(), 2, "bits");
  llvm::Value* odd = ir.CreateICmpNE(ir.CreateAnd(bits, 1), ir.getInt64(0));
  llvm::Value* next = ir.CreateSelect(odd, ir.CreateMul(result, factor), result);
  llvm::Value* rest = ir.CreateLShr(bits, 1);
  result->addIncoming(ir.getInt64(1), entry);
  result->addIncoming(next, loop);
  factor->addIncoming(function->getArg(0), entry);
  factor->addIncoming(ir.CreateMul(factor, factor), loop);
  bits->addIncoming(function->getArg(1), entry);
  bits->addIncoming(rest, loop);
  ir.CreateCondBr(ir.CreateICmpNE(rest, ir.getInt64(0)), loop, exit);
  ir.SetInsertPoint(exit);
  ir.CreateRet(next);
  return function;
}

}  // namespace

llvm::Value* call_integer_power(llvm::IRBuilder<>& ir, llvm::Value* base, llvm::Value* exponent, ExponentSign sign) {
  llvm::Function* function = power_function(*ir.GetInsertBlock()->getModule());
  if (sign == ExponentSign::kUnsigned) return ir.CreateCall(function, {base, exponent});
  llvm::Value* negative = ir.CreateICmpSLT(exponent, ir.getInt64(0));
  llvm::Value* power = ir.CreateCall(function, {base, ir.CreateSelect(negative, ir.CreateAnd(exponent, 1), exponent)});
  llvm::Value* is_unit = ir.CreateICmpULE(ir.CreateAdd(base, ir.getInt64(1)), ir.getInt64(2));  // -1, 0 or 1
  llvm::Value* truncated = ir.CreateSelect(ir.CreateAnd(is_unit, ir.CreateICmpNE(base, ir.getInt64(0))), power, ir.getInt64(0));
  return ir.CreateSelect(negative, truncated, power);
}

}  // namespace hone
