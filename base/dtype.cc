#include "base/dtype.h"

#include <bit>

namespace hone {

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

float half_to_float(std::uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
std::uint16_t float_to_half(float value) { return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value)); }

std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>((bits >> 16) | 0x40);  // keep a NaN a NaN
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace hone
