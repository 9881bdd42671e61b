// Nest: the loops of a kernel as they are emitted. Axes of extent 1 are gone, adjacent axes that every access walks contiguously are one,
// and each access is one linear form over the remaining axes, so that unit strides can be seen.
#pragma once

#include <map>
#include <vector>

#include "backends/llvm/size.h"
#include "ir/kernel/kernel.h"

namespace hone {

/// The element number that an access touches: constant + sum of coefficient * axis index + sum of coefficient * value.
struct Offset {
  Size constant;
  std::map<std::uint32_t, Size> axes;  ///< by kernel axis
  std::map<ExprId, Size> values;       ///< i64 expressions that are no linear form: loaded indices, quotients
};

struct Nest {
  std::vector<Dim> arguments;                     ///< size_arguments(kernel)
  std::vector<Size> extents;                      ///< by kernel axis; a merged axis has the extent of all that are merged into it
  std::vector<bool> dropped;                      ///< by kernel axis: extent 1, its index is 0
  std::vector<std::uint32_t> outer;               ///< remaining kernel axes, outermost first
  std::vector<std::vector<std::uint32_t>> inner;  ///< the same for each phase
  std::map<ExprId, Offset> loads;                 ///< of every load that a phase reaches
  std::vector<std::vector<Offset>> stores;        ///< by phase and store
};

Nest make_nest(const Kernel& kernel);

/// An i64 expression over the axes that are left. Of merged axes only accesses are known.
Offset linear_form(const Kernel& kernel, const Nest& nest, ExprId id);

/// Every expression that phase number `phase` evaluates at a point, in topological order.
std::vector<ExprId> expressions_of(const Kernel& kernel, std::size_t phase);

/// By expression: the kernel axes whose index its value depends on, as a bit set.
std::vector<std::uint64_t> axes_of_expressions(const Kernel& kernel);

/// How an access moves when one axis' index grows by one. `axes_of` is axes_of_expressions(kernel).
enum class Stride : std::uint8_t { kNone, kOne, kOther };
Stride stride_along(const Offset& offset, std::uint32_t axis, const std::vector<std::uint64_t>& axes_of);

/// Do all stores move by one element along the axis?
bool is_contiguous_in_stores(const Nest& nest, std::uint32_t axis, const std::vector<std::uint64_t>& axes_of);

/// Should the points of the innermost outer axis be computed side by side, a block of them as vector lanes, with every inner loop outside?
/// True where that makes accesses contiguous that the inner loops would walk with a stride: column sums, matmul, convolution.
bool runs_across_outer(const Kernel& kernel, const Nest& nest);

}  // namespace hone
