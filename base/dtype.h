// Element types. Storage-only types (f16, bf16) are widened to f32 for arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

enum class DType : std::uint8_t { kF32, kF64, kF16, kBF16, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kBool };

inline constexpr int kDTypeCount = 13;

struct DTypeInfo {
  std::string_view name;  ///< "f32", "i64", "bool"
  std::size_t size;       ///< bytes
  bool is_float;
  bool is_signed;         ///< false for bool
};

const DTypeInfo& info(DType dtype);

inline std::string_view to_string(DType dtype) { return info(dtype).name; }
inline std::size_t size_of(DType dtype) { return info(dtype).size; }
inline bool is_float(DType dtype) { return info(dtype).is_float; }
inline bool is_integer(DType dtype) { return not info(dtype).is_float and dtype != DType::kBool; }

/// The dtype named "f32", ...; nullopt if there is none.
std::optional<DType> dtype_from_name(std::string_view name);

/// The DType of a C++ element type. bool tensors hold one byte (0 or 1) an element.
template <typename T> inline constexpr DType kDTypeOf = [] { static_assert(sizeof(T) == 0, "not an element type"); return DType::kF32; }();
template <> inline constexpr DType kDTypeOf<float> = DType::kF32;
template <> inline constexpr DType kDTypeOf<double> = DType::kF64;
template <> inline constexpr DType kDTypeOf<std::int8_t> = DType::kI8;
template <> inline constexpr DType kDTypeOf<std::int16_t> = DType::kI16;
template <> inline constexpr DType kDTypeOf<std::int32_t> = DType::kI32;
template <> inline constexpr DType kDTypeOf<std::int64_t> = DType::kI64;
template <> inline constexpr DType kDTypeOf<std::uint8_t> = DType::kU8;
template <> inline constexpr DType kDTypeOf<std::uint16_t> = DType::kU16;
template <> inline constexpr DType kDTypeOf<std::uint32_t> = DType::kU32;
template <> inline constexpr DType kDTypeOf<std::uint64_t> = DType::kU64;
template <> inline constexpr DType kDTypeOf<bool> = DType::kBool;

/// IEEE half and bfloat16 as storage: exact widening, rounding to nearest even.
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);
inline float bfloat16_to_float(std::uint16_t bits) { return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16); }
std::uint16_t float_to_bfloat16(float value);

}  // namespace hone
