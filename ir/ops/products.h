// What sums of products of two operands have in common: matrix products and convolutions.
#pragma once

#include "ir/op.h"

namespace hone {

/// The element type of a product: the operands', or what the attribute `to` says. Sums are taken in the operands' arithmetic type, and rounded once where that is wider.
inline DType product_type(const Infer& infer) {
  if (not infer.attrs.has(kTo)) return infer.dtype(0);
  const DType to = infer.attrs[kTo];
  infer.require(to == infer.dtype(0) or to == info(infer.dtype(0)).arithmetic, Code::kType, "`to` must be the operands' type or the one that they are widened to");
  return to;
}

}  // namespace hone
