#include "runtime/plan/panels.h"

#include <cstring>

#include "base/check.h"

namespace hone::plan {

namespace {

/// Calls copy(bytes from the start in panels, bytes from the start row-major, number of bytes) for each piece that is contiguous in both.
template <typename Copy>
void for_each_piece(const std::vector<std::int64_t>& shape, std::int64_t element, const Panels& panels, Copy copy) {
  std::int64_t before = 1, behind = 1;  // points of the other axes
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (i != panels.axis) (i < panels.axis ? before : behind) *= shape[i];
  const std::int64_t pieces = shape[panels.axis] / panels.width, run = behind == 1 ? panels.width : 1;
  std::int64_t lies = 0;
  for (std::int64_t piece = 0; piece < pieces; ++piece)
    for (std::int64_t a = 0; a < before; ++a)
      for (std::int64_t b = 0; b < behind; ++b)
        for (std::int64_t i = 0; i < panels.width; i += run, lies += run)
          copy(lies * element, (((a * pieces + piece) * panels.width + i) * behind + b) * element, static_cast<std::size_t>(run * element));
}

}  // namespace

Shape panel_shape(const Shape& shape, const Panels& panels) {
  HONE_CHECK(panels.axis < shape.size() and panels.width > 0 and shape[panels.axis].is_constant() and shape[panels.axis].value() % panels.width == 0,
             "panels that do not divide the axis");
  Shape lies = {shape[panels.axis].value() / panels.width};
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (i != panels.axis) lies.push_back(shape[i]);
  lies.emplace_back(panels.width);
  return lies;
}

void copy_to_panels(const Tensor& tensor, const Panels& panels, std::byte* to) {
  const std::byte* from = tensor.bytes().data();
  for_each_piece(tensor.shape(), static_cast<std::int64_t>(size_of(tensor.dtype())), panels,
                 [=](std::int64_t lies, std::int64_t row_major, std::size_t bytes) { std::memcpy(to + lies, from + row_major, bytes); });
}

Tensor from_panels(const std::byte* from, DType dtype, const std::vector<std::int64_t>& shape, const Panels& panels) {
  return Tensor::make(dtype, shape, [&](std::span<std::byte> to) {
    for_each_piece(shape, static_cast<std::int64_t>(size_of(dtype)), panels,
                   [&](std::int64_t lies, std::int64_t row_major, std::size_t bytes) { std::memcpy(to.data() + row_major, from + lies, bytes); });
  });
}

}  // namespace hone::plan
