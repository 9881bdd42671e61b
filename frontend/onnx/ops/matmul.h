// The matrix product as several operators have it.
#pragma once

#include "frontend/onnx/node.h"

namespace hone::onnx {

/// As numpy.matmul: a vector is a row on the left and a column on the right, and that axis is left out of the result.
Val matrix_product(const ImportNode& node, Val a, Val b);

/// alpha * A' * B' + beta * C of a Gemm, without nodes for factors of 1 or a C that does not count.
Val gemm(const ImportNode& node);

}  // namespace hone::onnx
