// LoopBuilder: counted loops around the code of a point.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/llvm/point.h"

namespace hone {

/// What may be said of a loop to LLVM.
struct LoopTraits {
  bool parallel = false;    ///< innermost, and its iterations touch memory independently: it may become vector code without run-time checks
  std::int64_t unroll = 0;  ///< 0: as LLVM likes; 1: not; n: n times
  std::uint32_t vectors = 0;  ///< how many of them an iteration works on, if they become vectors; 0: as LLVM likes
};

class LoopBuilder {
 public:
  explicit LoopBuilder(Point& point) : point_(point), ir_(point.ir) {}

  /// body(i) for i in [from, to), `step` apart. Values that `body` computes are forgotten.
  template <typename Body>
  void strided(llvm::Value* from, llvm::Value* to, llvm::Value* step, LoopTraits traits, Body body) {
    llvm::BasicBlock *before = ir_.GetInsertBlock(), *head = point_.new_block("loop"), *inside = point_.new_block("inside"), *after = point_.new_block("after");
    ir_.CreateBr(head);
    ir_.SetInsertPoint(head);
    llvm::PHINode* i = ir_.CreatePHI(ir_.getInt64Ty(), 2, "i");
    i->addIncoming(from, before);
    ir_.CreateCondBr(ir_.CreateICmpSLT(i, to), inside, after);
    ir_.SetInsertPoint(inside);
    llvm::MDNode* group = traits.parallel ? llvm::MDNode::getDistinct(ir_.getContext(), {}) : nullptr;
    point_.set_access_group(group);
    point_.enter();
    body(i);
    point_.leave();
    point_.set_access_group(nullptr);
    i->addIncoming(ir_.CreateNSWAdd(i, step), ir_.GetInsertBlock());
    ir_.CreateBr(head)->setMetadata(llvm::LLVMContext::MD_loop, metadata(traits, group));
    ir_.SetInsertPoint(after);
  }
  template <typename Body>
  void loop(llvm::Value* from, llvm::Value* to, LoopTraits traits, Body body) {
    strided(from, to, ir_.getInt64(1), traits, body);
  }

  /// The index on each of `axes`, of which there is at least one, of the point number `flat` of the space that they span, row-major.
  std::vector<llvm::Value*> coordinates(const Nest& nest, std::span<const std::uint32_t> axes, llvm::Value* flat);

  /// How many points `axes` span.
  llvm::Value* points(const Nest& nest, std::span<const std::uint32_t> axes);
  /// Goes to the point number `flat` of the space that `axes`, of which there may be none, span.
  void go_to(const Nest& nest, std::span<const std::uint32_t> axes, llvm::Value* flat);

  /// One or the other. Values that they compute are forgotten.
  template <typename Then, typename Otherwise>
  void branch(llvm::Value* condition, Then then, Otherwise otherwise) {
    llvm::BasicBlock *yes = point_.new_block("then"), *no = point_.new_block("else"), *after = point_.new_block("after");
    ir_.CreateCondBr(condition, yes, no);
    const auto side = [&](llvm::BasicBlock* block, const auto& body) {
      ir_.SetInsertPoint(block);
      point_.enter();
      body();
      point_.leave();
      ir_.CreateBr(after);
    };
    side(yes, then);
    side(no, otherwise);
    ir_.SetInsertPoint(after);
  }

 private:
  llvm::MDNode* metadata(LoopTraits traits, llvm::MDNode* group) const;

  Point& point_;
  llvm::IRBuilder<>& ir_;
};

}  // namespace hone
