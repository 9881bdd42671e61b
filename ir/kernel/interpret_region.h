// What a region op does with its bodies, over whole tensors: the interpreter's loops. The meaning stands in ir/ops/regions.cc.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/tensor.h"
#include "ir/op.h"

namespace hone {

/// Runs body `body` once.
using RunBody = std::function<std::vector<Tensor>(std::size_t body, std::span<const Tensor> given)>;

/// The results of a region node with these operands. `trips`: attribute kTrips as a number. `result_types`: element types as stored, all sizes numbers.
std::vector<Tensor> interpret_region(const Node& node, std::span<const Tensor> operands, std::int64_t trips, std::span<const Type> result_types, const RunBody& run);

}  // namespace hone
