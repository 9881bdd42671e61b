// Convolution as several operators have it.
#pragma once

#include "frontend/onnx/node.h"

namespace hone::onnx {

/// `x` convolved with `weight` as the node's attributes say (kernel_shape, strides, dilations, pads, auto_pad, group).
Val convolution(const ImportNode& node, Val x, Val weight);

}  // namespace hone::onnx
