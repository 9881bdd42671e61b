// BlockThreads: the threads of a block and the memory that they share, of a GPU or played by a processor.
#pragma once

#include <llvm/IR/IntrinsicsNVPTX.h>

#include "backends/llvm/loop_builder.h"

namespace hone {

class BlockThreads {
 public:
  BlockThreads(llvm::Module& module, Point& point, std::int64_t threads) : module_(module), point_(point), ir_(point.ir), loops_(point), threads_(threads) {}

  std::int64_t count() const { return threads_; }
  /// Number of this block, and of all of the launch: i64.
  llvm::Value* block() { return on_gpu() ? special_register(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x) : point_.argument(2); }
  llvm::Value* blocks() { return on_gpu() ? special_register(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x) : point_.argument(3); }

  /// body(thread) in each thread; behind it a barrier. Values that `body` computes are forgotten.
  template <typename Body>
  void each(Body body) {
    if (not on_gpu()) return loops_.loop(ir_.getInt64(0), ir_.getInt64(static_cast<std::uint64_t>(threads_)), {.unroll = 1}, body);
    point_.enter();
    body(special_register(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x));
    point_.leave();
    ir_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
  }

  /// Elements that all threads of the block see.
  llvm::Value* shared(llvm::Type* element, std::int64_t count);

 private:
  bool on_gpu() const { return point_.signature() == Signature::kLaunch; }
  llvm::Value* special_register(llvm::Intrinsic::ID id) { return ir_.CreateZExt(ir_.CreateIntrinsic(id, {}, {}), ir_.getInt64Ty()); }

  llvm::Module& module_;
  Point& point_;
  llvm::IRBuilder<>& ir_;
  LoopBuilder loops_;
  std::int64_t threads_;
};

}  // namespace hone
