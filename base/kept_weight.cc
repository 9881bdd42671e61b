#include "base/kept_weight.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"

namespace hone {

namespace {

/// How far apart the channels' elements lie: element i is of channel i / inner % channels.
struct Channels {
  std::size_t count = 0, inner = 1;

  Channels(const std::vector<std::int64_t>& shape, std::size_t axis) : count(static_cast<std::size_t>(shape.at(axis))) {
    for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= static_cast<std::size_t>(shape[i]);
  }
  std::size_t of(std::size_t element) const { return element / inner % count; }
};

}  // namespace

KeptWeight keep_as(const Tensor& value, DType dtype, std::size_t axis) {
  if (dtype != DType::kI8) return {value.cast(dtype), {}};
  constexpr float kLargest = 127;
  const Tensor plain = value.cast(DType::kF32);
  const std::span<const float> elements = plain.data<float>();
  const Channels channels(value.shape(), axis);
  std::vector<float> scales(channels.count);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    float& largest = scales[channels.of(i)];
    const float magnitude = std::abs(elements[i]);
    if (std::isnan(magnitude) or magnitude > largest) largest = magnitude;
  }
  for (float& scale : scales) scale /= kLargest;
  const Tensor stored = Tensor::make(DType::kI8, value.shape(), [&](std::span<std::byte> bytes) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const float scale = scales[channels.of(i)], steps = scale > 0 and std::isfinite(scale) ? std::nearbyint(elements[i] / scale) : 0;
      bytes[i] = static_cast<std::byte>(static_cast<std::int8_t>(std::clamp(steps, -kLargest, kLargest)));  // a denormal scale is no exact 127th
    }
  });
  return {stored, Tensor::of<float>({static_cast<std::int64_t>(channels.count)}, std::span<const float>(scales))};
}

Tensor widened(const KeptWeight& kept, std::size_t axis, DType dtype) {
  if (kept.stored.dtype() != DType::kI8) return kept.stored.cast(dtype);
  const Channels channels(kept.stored.shape(), axis);
  const std::span<const float> scales = kept.scales.data<float>();
  HONE_CHECK(scales.size() == channels.count, "a weight has as many scales as its axis has elements");
  const std::span<const std::int8_t> steps = kept.stored.data<std::int8_t>();
  return Tensor::make(DType::kF32, kept.stored.shape(),
                      [&](std::span<std::byte> bytes) {
                        auto* const values = reinterpret_cast<float*>(bytes.data());
                        for (std::size_t i = 0; i < steps.size(); ++i) values[i] = static_cast<float>(steps[i]) * scales[channels.of(i)];
                      })
      .cast(dtype);
}

}  // namespace hone
