// Lp norms: what LpNormalization, LpPool and GlobalLpPool have in common.
#pragma once

#include "frontend/onnx/node.h"

namespace hone::onnx {

/// The attribute p, 1 or more; 2 if absent.
double norm_order(const ImportNode& node);
/// x to the power p; no element of x is below 0.
Val power(Val x, double p);
/// The p-th root of x; its gradient is 0 where x is 0, where the root has no slope.
Val root(Val x, double p);

}  // namespace hone::onnx
