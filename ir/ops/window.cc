#include "ir/ops/window.h"

namespace hone {

Window window_at(Compute& c, std::span<const Dim> inputs, const Scalar* o, const Scalar* k) {
  Window window;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Scalar at = o[i] * static_cast<double>(c.attrs[kStrides][i]) + k[i] * static_cast<double>(c.attrs[kDilations][i]) - c.size(c.attrs[kPadsBegin][i]);
    window.inside = both(window.inside, expr::logical_and(expr::greater_equal(at, c.index_constant(0)), expr::less(at, c.size(inputs[i]))));
    window.at.push_back(at);
  }
  return window;
}

Window output_at(Compute& c, std::span<const Dim> outputs, const Scalar* s, const Scalar* k) {
  Window window;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::int64_t stride = c.attrs[kStrides][i];
    const Scalar scaled = s[i] + c.size(c.attrs[kPadsBegin][i]) - k[i] * static_cast<double>(c.attrs[kDilations][i]);
    const Scalar at = stride == 1 ? scaled : expr::floordiv(scaled, c.index_constant(stride));
    window.inside = both(window.inside, expr::logical_and(expr::greater_equal(at, c.index_constant(0)), expr::less(at, c.size(outputs[i]))));
    if (stride != 1) window.inside = expr::logical_and(window.inside, expr::equal(at * static_cast<double>(stride), scaled));
    window.at.push_back(at);
  }
  return window;
}

Attrs with_spatial(const Attrs& attrs, const Shape& shape) {
  Attrs changed = attrs;
  changed.set(kSpatial = Shape(shape.begin() + 2, shape.end()));
  return changed;
}

}  // namespace hone
