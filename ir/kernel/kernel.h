// Kernel: one loop nest. An outer index space whose points are independent, and at each point a short list of phases over an inner space.
//
//   for each outer point (in parallel):
//     for each phase, in order:
//       for each point of the phase's inner space, row-major:
//         accumulate the phase's reductions; perform its stores
//
// A reduction's temporary may be read by later phases only (not by its own phase). Row temporaries are the reductions' results.
// In one kernel every use of an intermediate reads it at the index where it was produced.
//
// A *scatter* phase stores into a destination whose first index is computed. It is not run per outer point: the single outer axis is the destination's
// first axis, and a call for the outer range [begin, end) runs the phase's whole inner space once and performs those stores whose first index lies in
// the range. So every destination row has one owner, and what meets at one element meets in index order: deterministic for any number of threads.
//
// Compiled form: void name(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end): the outer points begin..end-1 of the
// flattened (row-major) outer space; `sizes` are the values of size_arguments(kernel), in that order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/kernel/expr.h"

namespace hone {

enum class Access : std::uint8_t { kRead, kWrite };

struct KernelBuffer {
  std::string name;
  DType dtype;
  Shape shape;  ///< row-major, contiguous
  Access access;
};

struct KernelAxis {
  std::string name;
  Dim extent;
};

enum class ReduceKind : std::uint8_t {
  kSum,
  kProd,
  kMax,     ///< NaN if any element is
  kMin,
  kArgMax,  ///< i64: flattened inner position of the first largest element (the first NaN, if any)
  kArgMin,
};
std::string_view to_string(ReduceKind kind);

struct Reduction {
  ReduceKind kind;
  ExprId value;
  std::uint32_t temp;  ///< read as kTemp with this slot; number of the reduction in the kernel
  DType dtype;         ///< of the result: value's, or i64 for arg kinds. Starts at 0, 1, -inf/lowest, +inf/highest, position 0.
};

/// What a store does to the element that is there. All but kReplace only in a scatter phase.
enum class Combine : std::uint8_t { kReplace, kAdd, kMul, kMax, kMin };
/// The operation that combines; not for kReplace.
ScalarOp operation_of(Combine combine);

struct Store {
  std::uint32_t buffer;
  std::vector<ExprId> index;  ///< one i64 per axis of the buffer
  ExprId value;               ///< of the buffer's type (f32 for f16 and bf16 buffers)
  ExprId guard;               ///< where it is false nothing is stored; invalid: always
  Combine combine = Combine::kReplace;
};

struct Phase {
  std::vector<std::uint32_t> inner;  ///< axis numbers, outermost first; empty: one point
  std::vector<Reduction> reductions;
  std::vector<Store> stores;
  bool scatter = false;
};

/// Points whose index along one axis is at most the one along another.
struct Triangle {
  std::uint32_t low, high;  ///< axes
  bool operator==(const Triangle&) const = default;
};

struct Kernel {
  std::string name;
  std::vector<KernelBuffer> buffers;  ///< operands first, then results
  std::vector<KernelAxis> axes;       ///< the outer ones first
  std::uint32_t outer_count = 0;
  std::vector<Phase> phases;
  ExprPool exprs;
  /// It runs again and again on what it and its neighbours made, as in a loop. So threads share out the rows of a contraction, as they do the elements of its neighbours,
  /// and each reads what it has written itself; its columns would be cheaper for once, as then each thread reads its own part of a weight.
  bool repeats = false;
  /// Of a contraction: elsewhere the terms of phase 0 are 0, or, where both axes are outer ones, nobody wants the sums. Code may leave them out; then a sum that nobody wants is any number.
  std::optional<Triangle> triangle = {};

  /// Number of outer points.
  Dim outer_size() const;
};

/// The distinct symbolic sizes that the kernel's extents, buffer shapes and size expressions mention, in order of first appearance.
std::vector<Dim> size_arguments(const Kernel& kernel);

/// Pseudo-code that a person can read:
///   kernel dense(x: f32[N,784], w: f32[784,10]) -> y: f32[N,10]
///     for n in N, m in 10:
///       t0 = sum over k in 784: x[n, k] * w[k, m]
///       y[n, m] = t0
std::string print(const Kernel& kernel);

/// Numbered invariants K1.. of a kernel; throws HONE_CHECK naming the invariant and the kernel.
void verify(const Kernel& kernel);

}  // namespace hone
