#include "ir/kernel/kernel.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "ir/kernel/scalar_math.h"

// Invariants of a kernel:
//   K1  every expression's operands, index and guard are expressions before it; as many operands as its operation takes
//   K2  the outer axes exist; a phase's inner axes exist, are no outer axes, and each stands once
//   K3  a phase reads the indices of the outer axes and of its own inner axes only
//   K4  a load or store names a buffer, has one i64 index per axis and a bool guard (or none); a load has the buffer's arithmetic type
//   K5  a temporary is read only in phases after the one that reduces it, with no scatter phase between, and with the reduction's type
//   K6  reductions are numbered 0, 1, ... in order; the type is i64 for arg kinds, else the value's; bool has max and min only
//   K7  a store writes to a kWrite buffer a value of the buffer's arithmetic type
//   K8  only a scatter phase combines with what is there; it has one outer axis, which it does not read and whose extent is its destinations' first, and no reductions
//   K9  every kWrite buffer is stored to
//   K10 types: indices and sizes are i64, conditions bool, operands of one operation of one type; no expression is f16 or bf16

namespace hone {

namespace {

std::string text_or_name(const Kernel& kernel) {
  try {
    return print(kernel);
  } catch (const std::exception&) {  // too broken to print
    return kernel.name;
  }
}

class KernelVerifier {
 public:
  explicit KernelVerifier(const Kernel& kernel) : kernel_(kernel) {}

  void run() {
    for (std::size_t i = 0; i < kernel_.exprs.size(); ++i) check_expr(ExprId(i));
    require(kernel_.outer_count <= kernel_.axes.size(), "K2", "more outer axes than axes");
    if (const auto& triangle = kernel_.triangle) require(triangle->low < kernel_.axes.size() and triangle->high < kernel_.axes.size() and triangle->low != triangle->high, "K2", "a triangle of axes that do not exist");
    for (const Phase& phase : kernel_.phases) check_phase(phase);
    for (std::uint32_t i = 0; i < kernel_.buffers.size(); ++i)
      require(kernel_.buffers[i].access == Access::kRead or stored_.contains(i), "K9", "buffer " + kernel_.buffers[i].name + " is never stored to");
  }

 private:
  void require(bool holds, const char* invariant, const std::string& what) const {
    HONE_CHECK(holds, std::string("kernel invariant ") + invariant + ": " + what + "\n" + text_or_name(kernel_));
  }
  const Expr& expr(ExprId id) const {
    require(id.index < kernel_.exprs.size(), "K1", "an id that is no expression");
    return kernel_.exprs[id];
  }
  DType type(ExprId id) const { return expr(id).dtype; }

  void check_expr(ExprId id) const {
    const Expr& e = kernel_.exprs[id];
    const std::string name(info(e.op).name);
    const auto before = [&](ExprId operand) { require(operand.index < id.index, "K1", name + " reads an expression that does not stand before it"); };
    for (int i = 0; i < info(e.op).operands; ++i) before(e.operands[i]);
    for (const ExprId index : e.index) before(index);
    if (e.guard.valid()) before(e.guard);
    require(e.dtype == arithmetic_type(e.dtype), "K10", name + " of a storage-only type");
    if (e.op == ScalarOp::kIndex or e.op == ScalarOp::kSize) require(e.dtype == DType::kI64, "K10", name + " is not i64");
    if (e.op == ScalarOp::kIndex) require(e.slot < kernel_.axes.size(), "K2", "index of an axis that does not exist");
    if (e.op == ScalarOp::kLoad) {
      check_access(e.slot, e.index, e.guard);
      require(e.dtype == arithmetic_type(kernel_.buffers[e.slot].dtype), "K4", "a load of another type than its buffer " + kernel_.buffers[e.slot].name);
    }
    if (e.op == ScalarOp::kRoundTo) {
      const DType rounded = StorageRounding::unpacked(e.slot).dtype;
      require(static_cast<int>(rounded) < kDTypeCount and is_storage_only(rounded) and e.dtype == arithmetic_type(rounded), "K10", name + " of a wrong type");
      require(type(e.operands[0]) == e.dtype or (type(e.operands[0]) == DType::kF64 and is_float(rounded)), "K10", name + " of another type");
    }
    if (info(e.op).operands == 2) require(type(e.operands[0]) == type(e.operands[1]), "K10", name + " of two types");
    if (is_comparison(e.op)) require(e.dtype == DType::kBool, "K10", "a comparison that is not bool");
    if (e.op == ScalarOp::kSelect)
      require(type(e.operands[0]) == DType::kBool and type(e.operands[1]) == e.dtype and type(e.operands[2]) == e.dtype, "K10", "select of mixed types");
  }

  void check_access(std::uint32_t slot, const std::vector<ExprId>& index, ExprId guard) const {
    require(slot < kernel_.buffers.size(), "K4", "a buffer that does not exist");
    const KernelBuffer& buffer = kernel_.buffers[slot];
    require(index.size() == buffer.shape.size(), "K4", "buffer " + buffer.name + " is indexed with a wrong number of indices");
    for (const ExprId id : index) require(type(id) == DType::kI64, "K4", "an index of buffer " + buffer.name + " is not i64");
    require(not guard.valid() or type(guard) == DType::kBool, "K4", "a guard that is not bool");
  }

  void check_phase(const Phase& phase) {
    std::vector<bool> readable(kernel_.axes.size());
    for (std::uint32_t axis = 0; axis < kernel_.outer_count; ++axis) readable[axis] = not phase.scatter;
    for (const std::uint32_t axis : phase.inner) {
      require(axis >= kernel_.outer_count and axis < kernel_.axes.size() and not readable[axis], "K2", "a wrong inner axis");
      readable[axis] = true;
    }
    std::vector<ExprId> roots;
    for (const Reduction& reduction : phase.reductions) roots.push_back(reduction.value);
    for (const Store& store : phase.stores) {
      roots.push_back(store.value);
      if (store.guard.valid()) roots.push_back(store.guard);
      roots.insert(roots.end(), store.index.begin(), store.index.end());
    }
    for (const ExprId root : roots) expr(root);
    check_reads(roots, readable, phase.scatter);
    for (const Store& store : phase.stores) check_store(store, phase);
    require(not phase.scatter or (kernel_.outer_count == 1 and phase.reductions.empty()), "K8", "a scatter phase has one outer axis and no reductions");
    for (const Reduction& reduction : phase.reductions) check_reduction(reduction);
    if (phase.scatter) first_temp_ = temps_.size();
  }

  void check_reads(const std::vector<ExprId>& roots, const std::vector<bool>& readable, bool scatter) const {
    std::vector<bool> used(kernel_.exprs.size());
    for (const ExprId root : roots) used[root.index] = true;
    for (std::size_t i = kernel_.exprs.size(); i-- > 0;) {
      if (not used[i]) continue;
      const Expr& e = kernel_.exprs[ExprId(i)];
      if (e.op == ScalarOp::kIndex) require(readable[e.slot], scatter ? "K8" : "K3", "a phase reads the index of axis " + kernel_.axes[e.slot].name);
      if (e.op == ScalarOp::kTemp) {
        const bool earlier = e.slot >= first_temp_ and e.slot < temps_.size();
        require(earlier and temps_[e.slot] == e.dtype, "K5", "temporary t" + std::to_string(e.slot) + " is read before it is reduced, or as another type");
        require(not scatter, "K8", "a scatter phase reads a temporary");
      }
      for (int k = 0; k < info(e.op).operands; ++k) used[e.operands[k].index] = true;
      for (const ExprId index : e.index) used[index.index] = true;
      if (e.guard.valid()) used[e.guard.index] = true;
    }
  }

  void check_store(const Store& store, const Phase& phase) {
    check_access(store.buffer, store.index, store.guard);
    const KernelBuffer& buffer = kernel_.buffers[store.buffer];
    require(buffer.access == Access::kWrite, "K7", "a store to " + buffer.name + ", which is only read");
    require(type(store.value) == arithmetic_type(buffer.dtype), "K7", "a store to " + buffer.name + " of another type");
    require(phase.scatter or store.combine == Combine::kReplace, "K8", "a store that combines outside a scatter phase");
    require(store.combine == Combine::kReplace or buffer.dtype != DType::kBool or store.combine == Combine::kMax or store.combine == Combine::kMin, "K8",
            "a sum or product of bool");
    if (phase.scatter)
      require(kernel_.outer_count == 1 and not buffer.shape.empty() and buffer.shape[0] == kernel_.axes[0].extent, "K8",
              "the outer axis of a scatter phase is not the first axis of " + buffer.name);
    stored_[store.buffer] = true;
  }

  void check_reduction(const Reduction& reduction) {
    const bool arg = reduction.kind == ReduceKind::kArgMax or reduction.kind == ReduceKind::kArgMin;
    require(reduction.temp == temps_.size(), "K6", "reductions are not numbered in order");
    require(reduction.dtype == (arg ? DType::kI64 : type(reduction.value)), "K6", "a reduction of another type than its value");
    const bool ordered = reduction.kind != ReduceKind::kSum and reduction.kind != ReduceKind::kProd;
    require(ordered or type(reduction.value) != DType::kBool, "K6", "a sum or product of bool");
    temps_.push_back(reduction.dtype);
  }

  const Kernel& kernel_;
  std::vector<DType> temps_;    // types of the reductions so far
  std::size_t first_temp_ = 0;  // those before it are gone
  std::map<std::uint32_t, bool> stored_;
};

}  // namespace

std::string_view to_string(ReduceKind kind) {
  constexpr std::string_view kNames[] = {"sum", "prod", "max", "min", "argmax", "argmin"};
  return kNames[static_cast<std::size_t>(kind)];
}

ScalarOp operation_of(Combine combine) {
  constexpr ScalarOp kOperations[] = {ScalarOp::kAdd, ScalarOp::kMul, ScalarOp::kMax, ScalarOp::kMin};
  HONE_CHECK(combine != Combine::kReplace, "replacing is no operation");
  return kOperations[static_cast<std::size_t>(combine) - 1];
}

Dim Kernel::outer_size() const {
  Dim size = 1;
  for (std::uint32_t axis = 0; axis < outer_count; ++axis) size *= axes[axis].extent;
  return size;
}

std::vector<Dim> size_arguments(const Kernel& kernel) {
  std::vector<Dim> sizes;
  const auto add = [&sizes](const Dim& dim) {
    if (not dim.is_constant() and std::ranges::find(sizes, dim) == sizes.end()) sizes.push_back(dim);
  };
  for (const KernelAxis& axis : kernel.axes) add(axis.extent);
  for (const KernelBuffer& buffer : kernel.buffers)
    for (const Dim& dim : buffer.shape) add(dim);
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) add(kernel.exprs[ExprId(i)].size);
  return sizes;
}

void verify(const Kernel& kernel) { KernelVerifier(kernel).run(); }

}  // namespace hone
