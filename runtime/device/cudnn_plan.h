// Graphs of cuDNN's operations, and ways of the library's to compute them: which of its engines are taken, and how they run. All but running goes without a GPU, if one is described.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/device/cuda_stream.h"
#include "runtime/device/cudnn.h"
#include "runtime/library/rows.h"

namespace hone::cudnn {

/// cudnnDataType_t of f32, f16 and bf16.
int type_of(DType dtype);

/// A tensor as the library counts: extents of axes, wherever their elements lie.
struct TensorLayout {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> extents, strides;
};
std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& extents);

/// A way to compute a graph on a device, one of those whose numbers are as they should be, and that takes no more scratch. Operands that are narrow may be multiplied by tensor cores, f32 only
/// where it may be TF32; else it is multiplied as it is. It is always term by term, by no other algorithm, and sums come in one order.
struct Plan {
  Descriptor config, plan;
  std::size_t scratch = 0;
  std::string name;  ///< "recommended 0": in the library's order, which is the same in every run
};
/// What a graph multiplies.
struct Factors {
  bool are_f32 = false;
  bool tf32 = false;  ///< they may be TF32
};
/// The first that it recommends, at most so many; those that it falls back on only where there is no other. Throws Refused if there is none. The graph outlives them.
std::vector<Plan> choose_plans(const Library& library, const Descriptor& graph, const Descriptor& device, const Factors& factors, std::size_t most_scratch, std::size_t most);

/// Puts it into the stream; `pointers` are of the graph's tensors with these ids. Throws Error kDeviceLost.
void put_plan(const Library& library, Handle handle, const Plan& plan, cuda::StreamHandle stream, std::span<const std::int64_t> ids, std::span<void* const> pointers, std::byte* workspace);

}  // namespace hone::cudnn
