// What activation functions are made of, for nodes and for cells alike.
#pragma once

#include "ir/builder.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

inline Val zero_like(Val x) { return x.builder().scalar(0, x.dtype()); }

/// x above 0, `below` elsewhere; the derivative at 0 is that of `below`, as in PyTorch.
inline Val above_zero(Val x, Val below) { return op::where(op::greater(x, zero_like(x)), x, below); }

/// e^(x / alpha) - 1 below 0 and at 0, where its derivative is 1 / alpha; 0 above, so that neither it nor its gradient overflows where it is not used.
inline Val exp_below_zero(Val x, double alpha = 1) {
  const Val below = op::where(op::greater(x, zero_like(x)), zero_like(x), x);
  return op::exp(alpha == 1 ? below : below / alpha) - 1.0;
}

inline Val elu(Val x, double alpha) { return above_zero(x, exp_below_zero(x) * alpha); }

inline Val thresholded_relu(Val x, double alpha) { return op::where(op::greater(x, x.builder().scalar(alpha, x.dtype())), x, zero_like(x)); }

inline Val hard_sigmoid(Val x, double alpha, double beta) { return op::clip(x * alpha + beta, zero_like(x), x.builder().scalar(1, x.dtype())); }

}  // namespace hone::onnx
