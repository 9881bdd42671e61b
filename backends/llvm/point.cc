#include "backends/llvm/point.h"

#include <llvm/IR/MDBuilder.h>

#include "backends/llvm/emit.h"
#include "base/check.h"

namespace hone {

namespace {

llvm::FastMathFlags float_flags() {
  llvm::FastMathFlags flags;  // no arcp: a vector loop and its scalar rest would round quotients differently, and results depend on the range's split
  flags.setAllowContract();
  flags.setNoSignedZeros();
  return flags;
}

}  // namespace

DType accumulator_type(const Kernel& kernel, const Reduction& reduction) {
  const DType dtype = kernel.exprs[reduction.value].dtype;
  return reduction.kind == ReduceKind::kSum and dtype == DType::kF32 ? DType::kF64 : dtype;
}

Point::Point(llvm::Module& module, const Kernel& kernel, const Nest& nest, HalfConversion half, std::int64_t lanes)
    : ir(module.getContext()), kernel_(kernel), nest_(nest), half_(half), lanes_(lanes), entry_(module.getContext()), values_(kernel.exprs.size()) {
  make_function(module);
  ir.setFastMathFlags(float_flags());
  load_arguments();
  make_alias_scopes();
  make_temps();
  indices_.resize(kernel.axes.size());
  for (std::size_t axis = 0; axis < indices_.size(); ++axis)
    if (nest.dropped[axis]) indices_[axis] = ir.getInt64(0);
}

void Point::make_function(llvm::Module& module) {
  HONE_CHECK(module.getFunction(kernel_.name) == nullptr, "two kernels named " + kernel_.name);
  llvm::Type *pointer = ir.getPtrTy(), *i64 = ir.getInt64Ty();
  auto* type = llvm::FunctionType::get(ir.getVoidTy(), {pointer, pointer, i64, i64}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kernel_.name, module);
  function_->setDoesNotThrow();
  function_->addFnAttr("reciprocal-estimates", "none");
  const char* const names[] = {"buffers", "sizes", "begin", "end"};
  for (unsigned i = 0; i < 4; ++i) function_->getArg(i)->setName(names[i]);
  for (unsigned i = 0; i < 2; ++i)
    for (const auto attribute : {llvm::Attribute::NoAlias, llvm::Attribute::NoCapture, llvm::Attribute::ReadOnly}) function_->addParamAttr(i, attribute);
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

void Point::make_temps() {
  const auto variable = [this](DType dtype) {
    llvm::Type* type = storage_type(ir.getContext(), dtype);
    return entry_.CreateAlloca(lanes_ == 1 ? type : llvm::ArrayType::get(type, static_cast<std::uint64_t>(lanes_)));
  };
  for (const Phase& phase : kernel_.phases) {
    for (const Reduction& reduction : phase.reductions) {
      Temp& temp = temps_.emplace_back();
      temp.result = kernel_.exprs[reduction.value].dtype;
      temp.dtype = accumulator_type(kernel_, reduction);
      temp.value = variable(temp.dtype);
      if (reduction.kind == ReduceKind::kArgMax or reduction.kind == ReduceKind::kArgMin) temp.position = variable(DType::kI64);
    }
  }
}

void Point::leave() {
  for (std::size_t i = marks_.back(); i < computed_.size(); ++i) values_[computed_[i].index] = nullptr;
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

llvm::Value* Point::value(ExprId id) {
  if (values_[id.index] == nullptr) {
    llvm::Value* computed = compute(id);
    values_[id.index] = computed;
    computed_.push_back(id);
  }
  return values_[id.index];
}

llvm::Value* Point::compute(ExprId id) {
  const Expr& e = kernel_.exprs[id];
  switch (e.op) {
    case ScalarOp::kConstFloat:
    case ScalarOp::kConstInt: return emit_constant(ir, e.dtype, e.float_value, e.int_value);
    case ScalarOp::kIndex: HONE_CHECK(indices_[e.slot] != nullptr, "kernel " + kernel_.name + " reads an index outside its loop"); return indices_[e.slot];
    case ScalarOp::kSize: return size(Size::of(e.size, nest_.arguments));
    case ScalarOp::kLoad: return load(e, nest_.loads.at(id));
    case ScalarOp::kTemp: {
      const Temp& temp = temps_[e.slot];
      if (temp.position != nullptr) return read(temp.position, DType::kI64);
      llvm::Value* sum = read(temp.value, temp.dtype);
      return temp.dtype == temp.result ? sum : ir.CreateFPTrunc(sum, ir.getFloatTy());
    }
    case ScalarOp::kRoundTo: return round_to(ir, StorageRounding::unpacked(e.slot), value(e.operands[0]), half_);
    default: break;
  }
  const int count = info(e.op).operands;
  std::vector<llvm::Value*> operands;
  for (int i = 0; i < count; ++i) operands.push_back(value(e.operands[i]));
  return emit_operation(ir, e.op, kernel_.exprs[e.operands[count - 1]].dtype, e.dtype, operands);
}

llvm::Value* Point::load(const Expr& load, const Offset& offset) {
  const DType dtype = kernel_.buffers[load.slot].dtype;
  const auto read_element = [&] {
    llvm::Value* element = ir.CreateLoad(storage_type(ir.getContext(), dtype), address(load.slot, offset));
    annotated(llvm::cast<llvm::LoadInst>(element), load.slot);
    return widen(ir, dtype, element, half_);
  };
  if (not load.guard.valid()) return read_element();
  llvm::Value* guard = value(load.guard);
  for (const auto& [id, coefficient] : offset.values) value(id);  // before the branch, so that they stay known behind it
  llvm::BasicBlock* before = ir.GetInsertBlock();
  llvm::Value* element = nullptr;
  llvm::BasicBlock* inside = nullptr;
  when(guard, [&] {
    element = read_element();
    inside = ir.GetInsertBlock();
  });
  llvm::PHINode* result = ir.CreatePHI(element->getType(), 2);
  result->addIncoming(element, inside);
  result->addIncoming(llvm::Constant::getNullValue(element->getType()), before);
  return result;
}

void Point::store(const Store& store, const Offset& offset, llvm::Value* value) {
  const DType dtype = kernel_.buffers[store.buffer].dtype;
  llvm::Value* at = address(store.buffer, offset);
  if (store.combine != Combine::kReplace) {
    llvm::LoadInst* old = annotated(ir.CreateLoad(storage_type(ir.getContext(), dtype), at), store.buffer);
    llvm::Value* const both[] = {widen(ir, dtype, old, half_), value};
    const DType type = kernel_.exprs[store.value].dtype;
    value = emit_operation(ir, operation_of(store.combine), type, type, both);
  }
  annotated(ir.CreateStore(narrow(ir, dtype, value, half_), at), store.buffer);
}

llvm::Value* Point::offset_value(const Offset& offset) {
  llvm::Value* sum = nullptr;
  const auto add = [&](llvm::Value* value, const Size& coefficient) {
    llvm::Value* term = coefficient.is_constant(1) ? value : ir.CreateNSWMul(value, size(coefficient));
    sum = sum == nullptr ? term : ir.CreateNSWAdd(sum, term);
  };
  if (not offset.constant.is_constant(0)) sum = size(offset.constant);
  for (const auto& [id, coefficient] : offset.values) add(value(id), coefficient);
  const std::uint32_t last = lanes_ > 1 ? nest_.outer.back() : UINT32_MAX;  // what changes most often is added last
  for (const auto& [axis, coefficient] : offset.axes)
    if (axis != last) add(indices_[axis], coefficient);
  if (const auto at = offset.axes.find(last); at != offset.axes.end()) add(indices_[last], at->second);
  return sum == nullptr ? ir.getInt64(0) : sum;
}

llvm::Value* Point::address(std::uint32_t buffer, const Offset& offset) {
  return ir.CreateInBoundsGEP(storage_type(ir.getContext(), kernel_.buffers[buffer].dtype), buffers_[buffer], offset_value(offset));
}

llvm::Value* Point::variable_address(llvm::AllocaInst* variable) {
  if (lanes_ == 1) return variable;
  return ir.CreateInBoundsGEP(variable->getAllocatedType(), variable, {ir.getInt64(0), lane_});
}

llvm::Value* Point::read(llvm::AllocaInst* variable, DType dtype) {
  llvm::LoadInst* stored = in_group(ir.CreateLoad(storage_type(ir.getContext(), dtype), variable_address(variable)));
  return dtype == DType::kBool ? widen(ir, dtype, stored, half_) : stored;
}

void Point::write(llvm::AllocaInst* variable, DType dtype, llvm::Value* value) {
  in_group(ir.CreateStore(dtype == DType::kBool ? narrow(ir, dtype, value, half_) : value, variable_address(variable)));
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
