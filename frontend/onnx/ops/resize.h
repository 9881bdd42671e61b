// Resize and Upsample, and what other interpolating operators share with them.
#pragma once

#include "frontend/onnx/node.h"

namespace hone::onnx {

/// The type in which values of x are interpolated: floats that hold them.
DType working_type(DType dtype);

/// Operand `i`, which is never learned: an initializer of several floats there is no weight, as it would be elsewhere.
Val fixed(const ImportNode& node, std::size_t i);

std::vector<Val> import_resize(const ImportNode& node);

}  // namespace hone::onnx
