// What sums of products of two operands have in common: matrix products and convolutions.
#pragma once

#include "ir/op.h"

namespace hone {

/// f32 factors may be rounded to TF32, to 11 binary digits, where the device multiplies those faster. What does not, and the interpreter, take them as they are.
inline constexpr AttrKey<bool> kTf32("tf32");

/// The element type of a product: the operands', or what the attribute `to` says. Sums are taken in the operands' arithmetic type, and rounded once where that is wider.
inline DType product_type(const Infer& infer) {
  if (not infer.attrs.has(kTo)) return infer.dtype(0);
  const DType to = infer.attrs[kTo];
  infer.require(to == infer.dtype(0) or to == info(infer.dtype(0)).arithmetic, Code::kType, "`to` must be the operands' type or the one that they are widened to");
  return to;
}

}  // namespace hone
