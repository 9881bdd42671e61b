#include "backends/llvm/block_threads.h"

namespace hone {

llvm::Value* BlockThreads::shared(llvm::Type* element, std::int64_t count) {
  if (not on_gpu()) return point_.array(element, count);
  constexpr unsigned kSharedMemory = 3;  // an address space of NVPTX
  auto* type = llvm::ArrayType::get(element, static_cast<std::uint64_t>(count));
  auto* memory = new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::InternalLinkage, llvm::PoisonValue::get(type), point_.function()->getName() + "_shared", nullptr,
                                          llvm::GlobalValue::NotThreadLocal, kSharedMemory);
  memory->setAlignment(llvm::Align(16));
  return memory;
}

}  // namespace hone
