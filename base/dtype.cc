#include "base/dtype.h"

#include <bit>

namespace hone {

namespace {
constexpr DTypeInfo kInfo[kDTypeCount] = {
    {"f32", 4, true, true},   {"f64", 8, true, true},    {"f16", 2, true, true},    {"bf16", 2, true, true},   {"i8", 1, false, true},
    {"i16", 2, false, true},  {"i32", 4, false, true},   {"i64", 8, false, true},   {"u8", 1, false, false},   {"u16", 2, false, false},
    {"u32", 4, false, false}, {"u64", 8, false, false},  {"bool", 1, false, false},
};
}  // namespace

const DTypeInfo& info(DType dtype) { return kInfo[static_cast<int>(dtype)]; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kInfo[i].name == name) return static_cast<DType>(i);
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
