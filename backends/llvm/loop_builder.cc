#include "backends/llvm/loop_builder.h"

namespace hone {

std::vector<llvm::Value*> LoopBuilder::coordinates(const Nest& nest, std::span<const std::uint32_t> axes, llvm::Value* flat) {
  std::vector<llvm::Value*> result(axes.size());
  for (std::size_t i = result.size(); i-- > 1;) {
    llvm::Value* extent = point_.size(nest.extents[axes[i]]);
    result[i] = ir_.CreateURem(flat, extent);
    flat = ir_.CreateUDiv(flat, extent);
  }
  result[0] = flat;
  return result;
}

llvm::Value* LoopBuilder::points(const Nest& nest, std::span<const std::uint32_t> axes) {
  llvm::Value* points = ir_.getInt64(1);
  for (const std::uint32_t axis : axes) points = ir_.CreateNSWMul(points, point_.size(nest.extents[axis]));
  return points;
}

void LoopBuilder::go_to(const Nest& nest, std::span<const std::uint32_t> axes, llvm::Value* flat) {
  if (axes.empty()) return;
  const std::vector<llvm::Value*> indices = coordinates(nest, axes, flat);
  for (std::size_t i = 0; i < axes.size(); ++i) point_.set_index(axes[i], indices[i]);
}

llvm::MDNode* LoopBuilder::metadata(LoopTraits traits, llvm::MDNode* group) const {
  llvm::LLVMContext& context = ir_.getContext();
  const auto property = [&context](const char* name, llvm::Metadata* value) {
    std::vector<llvm::Metadata*> fields = {llvm::MDString::get(context, name)};
    if (value != nullptr) fields.push_back(value);
    return llvm::MDNode::get(context, fields);
  };
  const auto number = [&](std::int64_t value) { return llvm::ConstantAsMetadata::get(ir_.getInt32(static_cast<std::uint32_t>(value))); };
  std::vector<llvm::Metadata*> properties = {nullptr, property("llvm.loop.mustprogress", nullptr)};
  if (group != nullptr) properties.push_back(property("llvm.loop.parallel_accesses", group));
  if (traits.unroll == 1) properties.push_back(property("llvm.loop.unroll.disable", nullptr));
  if (traits.unroll > 1) properties.push_back(property("llvm.loop.unroll.count", number(traits.unroll)));
  if (traits.vectors > 0) properties.push_back(property("llvm.loop.interleave.count", number(traits.vectors)));
  llvm::MDNode* loop = llvm::MDNode::getDistinct(context, properties);
  loop->replaceOperandWith(0, loop);
  return loop;
}

}  // namespace hone
