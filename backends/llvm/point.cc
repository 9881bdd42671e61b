#include "backends/llvm/point.h"

#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "backends/llvm/emit.h"
#include "backends/llvm/reduction.h"
#include "base/check.h"

namespace hone {

namespace {

llvm::FastMathFlags float_flags() {
  llvm::FastMathFlags flags;  // no arcp: a vector loop and its scalar rest would round quotients differently, and results depend on the range's split
  flags.setAllowContract();
  flags.setNoSignedZeros();
  return flags;
}

/// axes_of_expressions; a temporary depends on the outer point.
std::vector<std::uint64_t> dependences(const Kernel& kernel) {
  std::vector<std::uint64_t> sets = axes_of_expressions(kernel);
  const std::uint64_t outer = kernel.outer_count == 0 ? 0 : ~std::uint64_t{0} >> (64 - kernel.outer_count);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const Expr& e = kernel.exprs[ExprId(i)];
    if (e.op == ScalarOp::kTemp) sets[i] |= outer;
    for (int k = 0; k < info(e.op).operands; ++k) sets[i] |= sets[e.operands[k].index];
    for (const ExprId index : e.index) sets[i] |= sets[index.index];
    if (e.guard.valid()) sets[i] |= sets[e.guard.index];
  }
  return sets;
}

}  // namespace

Point::Point(llvm::Module& module, const Kernel& kernel, const Nest& nest, HalfConversion half, MultiplyAdd multiply_add, Signature signature)
    : ir(module.getContext()), kernel_(kernel), nest_(nest), half_(half), multiply_add_(multiply_add), signature_(signature), entry_(module.getContext()), depends_(dependences(kernel)) {
  if (signature == Signature::kLaunch) {
    make_launched_function(module);
  } else {
    make_function(module);
    load_arguments();
  }
  ir.setFastMathFlags(float_flags());
  make_alias_scopes();
  indices_.resize(kernel.axes.size());
  for (std::size_t axis = 0; axis < indices_.size(); ++axis)
    if (nest.dropped[axis]) indices_[axis] = ir.getInt64(0);
}

void Point::make_function(llvm::Module& module) {
  llvm::Type *pointer = ir.getPtrTy(), *i64 = ir.getInt64Ty();
  std::vector<llvm::Type*> arguments = {pointer, pointer, i64, i64};
  if (signature_ == Signature::kBlock) arguments.insert(arguments.end(), 2, i64);
  begin_function(module, arguments);
  const char* const names[] = {"buffers", "sizes", "begin", "end", "block", "blocks"};
  for (unsigned i = 0; i < arguments.size(); ++i) function_->getArg(i)->setName(names[i]);
  for (unsigned i = 0; i < 2; ++i)
    for (const auto attribute : {llvm::Attribute::NoAlias, llvm::Attribute::NoCapture, llvm::Attribute::ReadOnly}) function_->addParamAttr(i, attribute);
}

/// Sizes and addresses are arguments of their own, which a GPU keeps in constant memory.
void Point::make_launched_function(llvm::Module& module) {
  constexpr unsigned kGlobalMemory = 1;  // an address space of NVPTX
  std::vector<llvm::Type*> arguments(kernel_.buffers.size(), llvm::PointerType::get(module.getContext(), kGlobalMemory));
  arguments.insert(arguments.end(), nest_.arguments.size() + 2, ir.getInt64Ty());
  begin_function(module, arguments);
  function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  for (unsigned i = 0; i < kernel_.buffers.size(); ++i) {
    buffers_.push_back(function_->getArg(i));
    buffers_.back()->setName(kernel_.buffers[i].name);
    if (kernel_.buffers[i].access == Access::kRead) function_->addParamAttr(i, llvm::Attribute::ReadOnly);
  }
  const auto sizes = static_cast<unsigned>(nest_.arguments.size());
  for (unsigned i = 0; i < sizes; ++i) arguments_.push_back(function_->getArg(static_cast<unsigned>(kernel_.buffers.size()) + i));
  first_argument_ = static_cast<unsigned>(kernel_.buffers.size()) + sizes;
}

void Point::begin_function(llvm::Module& module, llvm::ArrayRef<llvm::Type*> arguments) {
  HONE_CHECK(module.getFunction(kernel_.name) == nullptr, "two kernels named " + kernel_.name);
  function_ = llvm::Function::Create(llvm::FunctionType::get(ir.getVoidTy(), arguments, false), llvm::Function::ExternalLinkage, kernel_.name, module);
  function_->setDoesNotThrow();
  function_->addFnAttr("reciprocal-estimates", "none");
  llvm::BasicBlock *entry = new_block("entry"), *body = new_block("body");
  entry_.SetInsertPoint(entry);
  entry_.SetInsertPoint(entry_.CreateBr(body));
  ir.SetInsertPoint(body);
}

void Point::load_arguments() {
  llvm::MDNode* nothing = llvm::MDNode::get(ir.getContext(), {});
  for (unsigned i = 0; i < kernel_.buffers.size(); ++i) {
    llvm::Value* slot = entry_.CreateConstInBoundsGEP1_64(ir.getPtrTy(), function_->getArg(0), i);
    llvm::LoadInst* pointer = entry_.CreateLoad(ir.getPtrTy(), slot, kernel_.buffers[i].name);
    pointer->setMetadata(llvm::LLVMContext::MD_invariant_load, nothing);
    buffers_.push_back(pointer);
  }
  for (unsigned i = 0; i < nest_.arguments.size(); ++i) {
    llvm::Value* slot = entry_.CreateConstInBoundsGEP1_64(ir.getInt64Ty(), function_->getArg(1), i);
    llvm::LoadInst* size = entry_.CreateLoad(ir.getInt64Ty(), slot, nest_.arguments[i].text());
    size->setMetadata(llvm::LLVMContext::MD_invariant_load, nothing);
    arguments_.push_back(size);
  }
}

/// One alias scope a buffer. An access is free of all buffers but those that may be the same memory.
void Point::make_alias_scopes() {
  llvm::MDBuilder metadata(ir.getContext());
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain(kernel_.name);
  std::vector<llvm::Metadata*> scopes;
  for (const KernelBuffer& buffer : kernel_.buffers) scopes.push_back(metadata.createAnonymousAliasScope(domain, buffer.name));
  for (std::uint32_t i = 0; i < scopes.size(); ++i) {
    std::vector<llvm::Metadata*> others;
    for (std::uint32_t k = 0; k < scopes.size(); ++k)
      if (k != i and not may_share_memory(kernel_, i, k) and not may_share_memory(kernel_, k, i)) others.push_back(scopes[k]);
    scope_.push_back(llvm::MDNode::get(ir.getContext(), scopes[i]));
    no_alias_.push_back(llvm::MDNode::get(ir.getContext(), others));
  }
}

llvm::AllocaInst* Point::array(llvm::Type* element, std::int64_t count) {
  llvm::AllocaInst* elements = variable(llvm::ArrayType::get(element, static_cast<std::uint64_t>(count)));
  elements->setAlignment(llvm::Align(64));
  return elements;
}

void Point::make_temps() {
  const std::size_t cells = grid_.rows.size() * grid_.columns.size();
  const auto variables = [&](DType dtype) {
    std::vector<llvm::Value*> made;
    for (std::size_t i = 0; i < cells; ++i) made.push_back(variable(cell_type(dtype)));
    return made;
  };
  temps_.clear();
  for (const Phase& phase : kernel_.phases) {
    for (const Reduction& reduction : phase.reductions) {
      Temp& temp = temps_.emplace_back();
      temp.result = kernel_.exprs[reduction.value].dtype;
      temp.dtype = accumulator_type(kernel_, phase, reduction);
      temp.cells = variables(temp.dtype);
      if (reduction.kind == ReduceKind::kArgMax or reduction.kind == ReduceKind::kArgMin) temp.positions = variables(DType::kI64);
    }
  }
}

void Point::set_grid(PointGrid grid) {
  grid_ = std::move(grid);
  set_cell(0, 0);
}

llvm::Value* Point::index(std::uint32_t axis) const {
  if (axis == grid_.row_axis) return grid_.rows[row_];
  if (axis == grid_.column_axis) return grid_.columns[column_];
  return indices_[axis];
}

llvm::Value* Point::spread(llvm::Value* value) { return grid_.lanes == 1 or value->getType()->isVectorTy() ? value : ir.CreateVectorSplat(grid_.lanes, value); }

llvm::Type* Point::cell_type(DType dtype) {
  llvm::Type* type = value_type(ir.getContext(), dtype);
  return grid_.lanes == 1 ? type : llvm::FixedVectorType::get(type, grid_.lanes);
}

void Point::leave() {
  for (std::size_t i = marks_.back(); i < computed_.size(); ++i) values_.erase(computed_[i]);
  computed_.resize(marks_.back());
  marks_.pop_back();
}

llvm::Value* Point::size(const Size& size) {
  llvm::Value*& known = sizes_[size.terms()];
  if (known != nullptr) return known;
  llvm::Value* sum = nullptr;
  for (const auto& [product, coefficient] : size.terms()) {
    llvm::Value* term = product.empty() ? entry_.getInt64(static_cast<std::uint64_t>(coefficient)) : nullptr;
    for (const std::uint32_t argument : product) term = term == nullptr ? arguments_[argument] : entry_.CreateNSWMul(term, arguments_[argument]);
    if (not product.empty() and coefficient != 1) term = entry_.CreateNSWMul(term, entry_.getInt64(static_cast<std::uint64_t>(coefficient)));
    sum = sum == nullptr ? term : entry_.CreateNSWAdd(sum, term);
  }
  return known = sum == nullptr ? entry_.getInt64(0) : sum;
}

/// The first of the cells at which the expression has the value that it has here.
std::size_t Point::slot_of(ExprId id) const {
  const auto depends_on = [&](std::uint32_t axis) { return axis != PointGrid::kNone and (depends_[id.index] >> axis & 1) != 0; };
  return (depends_on(grid_.row_axis) ? row_ * grid_.columns.size() : 0) + (depends_on(grid_.column_axis) ? column_ : 0);
}

llvm::Value* Point::value(ExprId id) {
  const std::pair key(id.index, slot_of(id));
  if (const auto known = values_.find(key); known != values_.end()) return known->second;
  llvm::Value* computed = compute(id);
  values_.emplace(key, computed);
  computed_.push_back(key);
  return computed;
}

llvm::Value* Point::compute(ExprId id) {
  const auto replaced = replaced_.find(id);
  return replaced != replaced_.end() ? replaced->second() : formula(id);
}

llvm::Value* Point::formula(ExprId id) {
  const Expr& e = kernel_.exprs[id];
  switch (e.op) {
    case ScalarOp::kConstFloat:
    case ScalarOp::kConstInt: return emit_constant(ir, e.dtype, e.float_value, e.int_value);
    case ScalarOp::kIndex: {
      llvm::Value* first = index(e.slot);
      HONE_CHECK(first != nullptr, "kernel " + kernel_.name + " reads an index outside its loop");
      return e.slot == grid_.lane_axis ? ir.CreateNSWAdd(spread(first), ir.CreateStepVector(cell_type(DType::kI64))) : first;
    }
    case ScalarOp::kSize: return size(Size::of(e.size, nest_.arguments));
    case ScalarOp::kLoad: return load(e, nest_.loads.at(id));
    case ScalarOp::kTemp: {
      const Temp& temp = temps_[e.slot];
      if (not temp.positions.empty()) return read(temp.positions[cell()], DType::kI64);
      llvm::Value* sum = read(temp.cells[cell()], temp.dtype);
      return temp.dtype == temp.result ? sum : ir.CreateFPTrunc(sum, cell_type(temp.result));
    }
    case ScalarOp::kRoundTo: return round_to(ir, StorageRounding::unpacked(e.slot), value(e.operands[0]), half_);
    default: return operate(e);
  }
}

llvm::Value* Point::operate(const Expr& e) {
  const int count = info(e.op).operands;
  std::vector<llvm::Value*> operands;
  bool any_vector = false;
  for (int i = 0; i < count; ++i) {
    operands.push_back(value(e.operands[i]));
    any_vector = any_vector or operands.back()->getType()->isVectorTy();
  }
  if (any_vector)
    for (llvm::Value*& operand : operands) operand = spread(operand);
  // A product is rounded before it is added to, but in a kernel's own sums: several kernels may work out one value, in each next to other operations, and where it
  // is compared (with the largest of them, say) it must be the same in all.
  const llvm::IRBuilder<>::FastMathFlagGuard guard(ir);
  llvm::FastMathFlags flags = ir.getFastMathFlags();
  if (e.op == ScalarOp::kAdd or e.op == ScalarOp::kSub) flags.setAllowContract(false);
  ir.setFastMathFlags(flags);
  return emit_operation(ir, e.op, kernel_.exprs[e.operands[count - 1]].dtype, e.dtype, operands);
}

llvm::Value* Point::load(const Expr& load, const Offset& offset) {
  llvm::Value* guard = load.guard.valid() ? value(load.guard) : nullptr;
  for (const auto& [id, coefficient] : offset.values) value(id);  // before a branch, so that they stay known behind it
  if (guard == nullptr) return load_lanes(load.slot, offset, mask());
  if (guard->getType()->isVectorTy()) return load_lanes(load.slot, offset, both_masks(guard, mask()));
  llvm::BasicBlock* before = ir.GetInsertBlock();
  llvm::Value* element = nullptr;
  llvm::BasicBlock* inside = nullptr;
  when(guard, [&] {
    element = load_lanes(load.slot, offset, mask());
    inside = ir.GetInsertBlock();
  });
  llvm::PHINode* result = ir.CreatePHI(element->getType(), 2);
  result->addIncoming(element, inside);
  result->addIncoming(llvm::Constant::getNullValue(element->getType()), before);
  return result;
}

llvm::Value* Point::unguarded(ExprId load) {
  const Offset& offset = nest_.loads.at(load);
  for (const auto& [id, coefficient] : offset.values) value(id);
  return load_lanes(kernel_.exprs[load].slot, offset, mask());
}

llvm::Value* Point::both_masks(llvm::Value* a, llvm::Value* b) { return b == nullptr ? a : ir.CreateAnd(a, b); }

bool Point::has_vector_value(const Offset& offset) {
  return std::ranges::any_of(offset.values, [&](const auto& term) { return value(term.first)->getType()->isVectorTy(); });
}

/// Of neighbouring elements of all lanes.
llvm::Align Point::alignment(DType dtype) const { return llvm::Align(size_of(dtype) * (grid_.are_aligned ? grid_.lanes : 1)); }

llvm::Value* Point::begins_at_multiples_of(std::uint32_t bytes) {
  llvm::Value* bits = ir.getInt64(0);
  for (llvm::Value* buffer : buffers_) bits = ir.CreateOr(bits, ir.CreatePtrToInt(buffer, ir.getInt64Ty()));
  return ir.CreateICmpEQ(ir.CreateAnd(bits, bytes - 1), ir.getInt64(0));
}

/// Do the lanes touch neighbouring elements?
bool Point::is_contiguous(const Offset& offset) {
  const auto step = offset.axes.find(grid_.lane_axis);
  return step != offset.axes.end() and step->second.is_constant(1) and not has_vector_value(offset);
}

/// A scalar, where the lanes do not differ and there is no mask of this load's own; elements that are not loaded are 0.
llvm::Value* Point::load_lanes(std::uint32_t buffer, const Offset& offset, llvm::Value* mask) {
  const DType dtype = kernel_.buffers[buffer].dtype;
  llvm::Type* element = storage_type(ir.getContext(), dtype);
  const bool differs = offset.axes.contains(grid_.lane_axis) or has_vector_value(offset);
  llvm::Value* loaded = nullptr;
  if (not differs and mask == this->mask()) {
    loaded = annotated(ir.CreateLoad(element, ir.CreateInBoundsGEP(element, buffers_[buffer], offset_value(offset))), buffer);
  } else {
    auto* type = llvm::FixedVectorType::get(element, grid_.lanes);
    llvm::Value* zero = llvm::Constant::getNullValue(type);
    if (not is_contiguous(offset)) {
      llvm::Value* at = ir.CreateGEP(element, buffers_[buffer], scattered_offset(offset));
      loaded = annotated(ir.CreateMaskedGather(type, at, llvm::Align(size_of(dtype)), mask, zero), buffer);
    } else if (mask == nullptr) {
      loaded = annotated(ir.CreateAlignedLoad(type, ir.CreateInBoundsGEP(element, buffers_[buffer], offset_value(offset)), alignment(dtype)), buffer);
    } else {
      loaded = annotated(ir.CreateMaskedLoad(type, ir.CreateGEP(element, buffers_[buffer], offset_value(offset)), alignment(dtype), mask, zero), buffer);
    }
  }
  return widen(ir, dtype, loaded, half_);
}

void Point::store(const Store& store, const Offset& offset, llvm::Value* value, llvm::Value* mask) {
  const DType dtype = kernel_.buffers[store.buffer].dtype;
  llvm::Type* element = storage_type(ir.getContext(), dtype);
  if (grid_.lanes > 1) {
    value = narrow(ir, dtype, spread(value), half_);
    if (not is_contiguous(offset)) {
      llvm::Value* at = ir.CreateGEP(element, buffers_[store.buffer], scattered_offset(offset));
      annotated(ir.CreateMaskedScatter(value, at, llvm::Align(size_of(dtype)), mask), store.buffer);
      return;
    }
    llvm::Value* at = ir.CreateGEP(element, buffers_[store.buffer], offset_value(offset));
    if (mask == nullptr) annotated(ir.CreateAlignedStore(value, at, alignment(dtype)), store.buffer);
    else annotated(ir.CreateMaskedStore(value, at, alignment(dtype), mask), store.buffer);
    return;
  }
  llvm::Value* at = ir.CreateInBoundsGEP(element, buffers_[store.buffer], offset_value(offset));
  if (store.combine != Combine::kReplace) {
    llvm::LoadInst* old = annotated(ir.CreateLoad(element, at), store.buffer);
    llvm::Value* const both[] = {widen(ir, dtype, old, half_), value};
    const DType type = kernel_.exprs[store.value].dtype;
    value = emit_operation(ir, operation_of(store.combine), type, type, both);
  }
  annotated(ir.CreateStore(narrow(ir, dtype, value, half_), at), store.buffer);
}

void Point::prefetch(std::uint32_t buffer, const Offset& offset, bool soon) {
  llvm::Type* element = storage_type(ir.getContext(), kernel_.buffers[buffer].dtype);
  llvm::Value* at = ir.CreateGEP(element, buffers_[buffer], offset_value(offset));  // perhaps behind the last element: not in bounds
  const std::uint32_t to_write = kernel_.buffers[buffer].access == Access::kWrite ? 1 : 0;
  ir.CreateIntrinsic(llvm::Intrinsic::prefetch, {at->getType()}, {at, ir.getInt32(to_write), ir.getInt32(soon ? 3 : 2), ir.getInt32(1)});
}

/// Of the first lane.
llvm::Value* Point::offset_value(const Offset& offset) {
  llvm::Value* sum = nullptr;
  const auto add = [&](llvm::Value* value, const Size& coefficient) {
    llvm::Value* term = coefficient.is_constant(1) ? value : ir.CreateNSWMul(value, size(coefficient));
    sum = sum == nullptr ? term : ir.CreateNSWAdd(sum, term);
  };
  if (not offset.constant.is_constant(0)) sum = size(offset.constant);
  for (const auto& [id, coefficient] : offset.values)
    if (not value(id)->getType()->isVectorTy()) add(value(id), coefficient);
  for (const auto& [axis, coefficient] : offset.axes) add(index(axis), coefficient);
  return sum == nullptr ? ir.getInt64(0) : sum;
}

/// Of every lane.
llvm::Value* Point::scattered_offset(const Offset& offset) {
  llvm::Value* sum = spread(offset_value(offset));
  const auto add = [&](llvm::Value* value, const Size& coefficient) { sum = ir.CreateNSWAdd(sum, ir.CreateNSWMul(value, spread(size(coefficient)))); };
  for (const auto& [id, coefficient] : offset.values)
    if (value(id)->getType()->isVectorTy()) add(value(id), coefficient);
  if (const auto step = offset.axes.find(grid_.lane_axis); step != offset.axes.end()) add(ir.CreateStepVector(cell_type(DType::kI64)), step->second);
  return sum;
}

/// A variable may be one of an array's vectors, or several of them: all begin at a cache line.
llvm::Align Point::alignment_of_variable(llvm::Type* type) const {
  constexpr std::uint64_t kCacheLine = 64;
  return std::min(function_->getParent()->getDataLayout().getPrefTypeAlign(type), llvm::Align(kCacheLine));
}

llvm::Value* Point::read(llvm::Value* variable, DType dtype) {
  llvm::Type* type = cell_type(dtype);
  return in_group(ir.CreateAlignedLoad(type, variable, alignment_of_variable(type)));
}

void Point::write(llvm::Value* variable, llvm::Value* value) {
  value = spread(value);
  in_group(ir.CreateAlignedStore(value, variable, alignment_of_variable(value->getType())));
}

template <typename Access>
Access* Point::in_group(Access* access) {
  if (access_group_ != nullptr) access->setMetadata(llvm::LLVMContext::MD_access_group, access_group_);
  return access;
}

template <typename Access>
Access* Point::annotated(Access* access, std::uint32_t buffer) {
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, scope_[buffer]);
  access->setMetadata(llvm::LLVMContext::MD_noalias, no_alias_[buffer]);
  return in_group(access);
}

}  // namespace hone
