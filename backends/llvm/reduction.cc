#include "backends/llvm/reduction.h"

#include <algorithm>

#include "backends/llvm/nest.h"

namespace hone {

namespace {

/// Rounding errors of a sum of n terms of one size grow with the root of n: of so many they stay below 32 units in the last place.
constexpr std::int64_t kLongestF32Sum = 1024;

}  // namespace

bool is_contraction(const Kernel& kernel, const Reduction& reduction, const std::vector<std::uint64_t>& axes_of) {
  const Expr& product = kernel.exprs[reduction.value];
  if (reduction.kind != ReduceKind::kSum or product.op != ScalarOp::kMul or product.dtype != DType::kF32) return false;
  std::uint64_t outer = 0;
  for (std::uint32_t axis = 0; axis < kernel.outer_count; ++axis)
    if (not kernel.axes[axis].extent.is_constant(1)) outer |= std::uint64_t{1} << axis;
  const std::uint64_t a = axes_of[product.operands[0].index] & outer, b = axes_of[product.operands[1].index] & outer;
  return (a & ~b) != 0 and (b & ~a) != 0;
}

bool has_contraction(const Kernel& kernel) {
  const std::vector<std::uint64_t> axes_of = axes_of_expressions(kernel);
  return std::ranges::any_of(kernel.phases, [&](const Phase& phase) {
    return std::ranges::any_of(phase.reductions, [&](const Reduction& reduction) { return is_contraction(kernel, reduction, axes_of); });
  });
}

Dim inner_points(const Kernel& kernel, const Phase& phase) {
  Dim points = 1;
  for (const std::uint32_t axis : phase.inner) points *= kernel.axes[axis].extent;
  return points;
}

DType accumulator_type(const Kernel& kernel, const Phase& phase, const Reduction& reduction) {
  const DType dtype = kernel.exprs[reduction.value].dtype;
  if (reduction.kind != ReduceKind::kSum or dtype != DType::kF32) return dtype;
  const Dim terms = inner_points(kernel, phase);
  const bool is_short = terms.is_constant() and terms.value() <= kLongestF32Sum;
  return is_short or is_contraction(kernel, reduction, axes_of_expressions(kernel)) ? DType::kF32 : DType::kF64;
}

}  // namespace hone
