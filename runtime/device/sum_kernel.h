// The kernel by which an NVIDIA GPU adds up what several replicas have in its memory: PTX, written for so many terms.
#pragma once

#include <string>

#include "base/dtype.h"

namespace hone::cuda {

inline constexpr const char* kSumKernel = "hone_sum";
/// Terms that one kernel has parameters for.
inline constexpr int kMostTerms = 64;
inline constexpr unsigned kSumThreads = 256;

/// kSumKernel(terms' addresses, sums' addresses, begin, end): elements [begin, end) of the terms, added up as runtime/collective/tree_sum.h has it, go to each of the sums. f32, f64, bf16, i32, i64.
std::string sum_ptx(DType dtype, int terms, int sums);

}  // namespace hone::cuda
