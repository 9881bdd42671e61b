// How a kernel's reductions accumulate.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/kernel/kernel.h"

namespace hone {

/// Is it a sum of f32 products in which each factor varies along an outer axis along which the other does not: matmul, convolution?
/// `axes_of` is axes_of_expressions(kernel).
bool is_contraction(const Kernel& kernel, const Reduction& reduction, const std::vector<std::uint64_t>& axes_of);

/// Is one of the kernel's reductions a contraction?
bool has_contraction(const Kernel& kernel);

/// How many points the phase's inner space has.
Dim inner_points(const Kernel& kernel, const Phase& phase);

/// In what a reduction of `phase` accumulates: its value's type, but long sums of f32 in f64, so that they (batch statistics, losses) lose nothing. Short ones,
/// and contractions of any length, stay in f32, as in every library's softmax and matmul: f64 halves the lanes.
DType accumulator_type(const Kernel& kernel, const Phase& phase, const Reduction& reduction);

}  // namespace hone
