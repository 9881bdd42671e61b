#include "runtime/plan/panels.h"

#include <cstring>

#include "base/check.h"

namespace hone::plan {

namespace {

/// Copies pieces of rows: calls copy(where they lie in panels, where else, bytes).
template <typename Copy>
void for_each_piece(const Tensor& tensor, const Panels& panels, Copy copy) {
  const std::vector<std::int64_t>& shape = tensor.shape();
  std::int64_t before = 1, behind = 1;  // points of the other axes
  for (std::size_t i = 0; i < shape.size(); ++i) (i < panels.axis ? before : behind) *= i == panels.axis ? 1 : shape[i];
  const std::int64_t pieces = shape[panels.axis] / panels.width;
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype()));
  std::int64_t lies = 0;
  for (std::int64_t piece = 0; piece < pieces; ++piece)
    for (std::int64_t a = 0; a < before; ++a)
      for (std::int64_t b = 0; b < behind; ++b)
        for (std::int64_t i = 0; i < panels.width; ++i, ++lies) copy(lies * size, ((a * pieces + piece) * panels.width + i) * behind * size + b * size, size);
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

Tensor to_panels(const Tensor& tensor, const Panels& panels) {
  return Tensor::make(tensor.dtype(), tensor.shape(), [&](std::span<std::byte> bytes) {
    for_each_piece(tensor, panels, [&](std::int64_t lies, std::int64_t elsewhere, std::int64_t size) {
      std::memcpy(bytes.data() + lies, tensor.bytes().data() + elsewhere, static_cast<std::size_t>(size));
    });
  });
}

Tensor from_panels(const Tensor& tensor, const Panels& panels) {
  return Tensor::make(tensor.dtype(), tensor.shape(), [&](std::span<std::byte> bytes) {
    for_each_piece(tensor, panels, [&](std::int64_t lies, std::int64_t elsewhere, std::int64_t size) {
      std::memcpy(bytes.data() + elsewhere, tensor.bytes().data() + lies, static_cast<std::size_t>(size));
    });
  });
}

}  // namespace hone::plan
