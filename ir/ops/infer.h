// Shape rules that several entries share.
#pragma once

#include <optional>

#include "ir/op.h"

namespace hone {

/// The type of operand I.
template <std::size_t I>
std::vector<Type> like_input(Infer& infer) {
  return {infer.type(I)};
}

/// Elementwise over all operands: one element type, shapes broadcast.
std::vector<Type> infer_elementwise(Infer& infer);
/// The same with float operands only.
std::vector<Type> infer_float_elementwise(Infer& infer);
/// The same, giving bool.
std::vector<Type> infer_compare(Infer& infer);

/// All axes 0..rank-1.
Ints all_axes(std::size_t rank);
/// all_axes without `axis`.
Ints all_axes_but(std::size_t rank, std::size_t axis);
/// The only axis that is not 1; nothing where there are several, or none.
std::optional<std::size_t> only_axis(const Shape& shape);

}  // namespace hone
