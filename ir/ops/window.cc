#include "ir/ops/window.h"

namespace hone {

namespace {

bool never_negative(const Dim& dim) { return dim.is_constant() and dim.value() >= 0; }

/// The conditions under which `at`, of least value `low` and greatest value `high`, lies in [0, extent).
Scalar within(Compute& c, Scalar at, const Dim& low, const Dim& high, const Dim& extent) {
  const Scalar begins = never_negative(low) ? Scalar{} : expr::greater_equal(at, c.index_constant(0));
  return never_negative(extent - 1 - high) ? begins : both(begins, expr::less(at, c.size(extent)));
}

}  // namespace

Window window_at(Compute& c, std::span<const Dim> inputs, std::span<const Dim> outputs, std::span<const Dim> windows, const Scalar* o, const Scalar* k) {
  Window window;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::int64_t stride = c.attrs[kStrides][i], dilation = c.attrs[kDilations][i];
    const Dim pad = c.attrs[kPadsBegin][i], last = (outputs[i] - 1) * Dim(stride) + (windows[i] - 1) * Dim(dilation) - pad;
    const Scalar at = o[i] * static_cast<double>(stride) + k[i] * static_cast<double>(dilation) - c.size(pad);
    window.inside = both(window.inside, within(c, at, Dim(0) - pad, last, inputs[i]));
    window.at.push_back(at);
  }
  return window;
}

Ints covers(const Attrs& attrs) {
  Ints counts;
  for (std::size_t i = 0; i < attrs[kKernel].size(); ++i) {
    const std::int64_t kernel = attrs[kKernel][i], stride = attrs[kStrides][i];
    counts.push_back(attrs[kDilations][i] == 1 ? (kernel + stride - 1) / stride : kernel);
  }
  return counts;
}

Cover cover_at(Compute& c, std::span<const Dim> inputs, std::span<const Dim> outputs, const Scalar* s, const Scalar* j) {
  Cover cover;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::int64_t stride = c.attrs[kStrides][i], dilation = c.attrs[kDilations][i], kernel = c.attrs[kKernel][i];
    const Dim pad = c.attrs[kPadsBegin][i];
    const Scalar padded = s[i] + c.size(pad);
    Scalar output, position, fits;
    if (dilation == 1) {  // the last window that begins at or before s, and those before it
      const Scalar last = stride == 1 ? padded : expr::floordiv(padded, c.index_constant(stride));
      output = last - j[i];
      position = stride == 1 ? j[i] : padded - output * static_cast<double>(stride);
      if (kernel % stride != 0) fits = expr::less(position, c.index_constant(kernel));
    } else {
      const Scalar scaled = padded - j[i] * static_cast<double>(dilation);
      output = stride == 1 ? scaled : expr::floordiv(scaled, c.index_constant(stride));
      position = j[i];
      if (stride != 1) fits = expr::equal(output * static_cast<double>(stride), scaled);
    }
    const bool only_window = dilation == 1 and kernel <= stride;
    const Dim first = only_window ? floordiv(pad, stride) : Dim(-1);
    fits = both(fits, within(c, output, first, floordiv(inputs[i] - 1 + pad, stride), outputs[i]));
    cover.inside = both(cover.inside, fits);
    cover.output.push_back(output);
    cover.window.push_back(position);
  }
  return cover;
}

Attrs with_spatial(const Attrs& attrs, const Shape& shape) {
  Attrs changed = attrs;
  const std::span<const Dim> extents = spatial(attrs, shape);
  changed.set(kSpatial = Shape(extents.begin(), extents.end()));
  return changed;
}

}  // namespace hone
