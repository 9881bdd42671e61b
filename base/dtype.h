// Element types. Storage-only types (f16, bf16, the floats of 8 and 4 bits, the integers of 4 and 2 bits) are widened for arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

// A number of an enumerator stands in plans: new ones go to the end. What the floats' names mean: base/float_format.h.
enum class DType : std::uint8_t {
  kF32, kF64, kF16, kBF16, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kBool,
  kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF8E8M0, kF4E2M1, kI4, kU4, kI2, kU2
};

struct DTypeInfo {
  std::string_view name;  ///< "f32", "i64", "bool"
  std::size_t size;       ///< bytes of an element in a tensor
  int bits;               ///< that count: fewer than 8 are packed in ONNX files, and one to a byte (integers with their sign) in tensors
  bool is_float;
  bool is_signed;         ///< false for bool
  DType arithmetic;       ///< the type that kernels compute in
};

inline constexpr DTypeInfo kDTypes[] = {
    {"f32", 4, 32, true, true, DType::kF32},
    {"f64", 8, 64, true, true, DType::kF64},
    {"f16", 2, 16, true, true, DType::kF32},
    {"bf16", 2, 16, true, true, DType::kF32},
    {"i8", 1, 8, false, true, DType::kI8},
    {"i16", 2, 16, false, true, DType::kI16},
    {"i32", 4, 32, false, true, DType::kI32},
    {"i64", 8, 64, false, true, DType::kI64},
    {"u8", 1, 8, false, false, DType::kU8},
    {"u16", 2, 16, false, false, DType::kU16},
    {"u32", 4, 32, false, false, DType::kU32},
    {"u64", 8, 64, false, false, DType::kU64},
    {"bool", 1, 8, false, false, DType::kBool},
    {"f8e4m3fn", 1, 8, true, true, DType::kF32},
    {"f8e4m3fnuz", 1, 8, true, true, DType::kF32},
    {"f8e5m2", 1, 8, true, true, DType::kF32},
    {"f8e5m2fnuz", 1, 8, true, true, DType::kF32},
    {"f8e8m0", 1, 8, true, false, DType::kF32},
    {"f4e2m1", 1, 4, true, true, DType::kF32},
    {"i4", 1, 4, false, true, DType::kI32},
    {"u4", 1, 4, false, false, DType::kI32},
    {"i2", 1, 2, false, true, DType::kI32},
    {"u2", 1, 2, false, false, DType::kI32},
};

inline constexpr int kDTypeCount = sizeof(kDTypes) / sizeof(kDTypes[0]);

constexpr const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<int>(dtype)]; }

constexpr std::string_view to_string(DType dtype) { return info(dtype).name; }
constexpr std::size_t size_of(DType dtype) { return info(dtype).size; }
constexpr bool is_float(DType dtype) { return info(dtype).is_float; }
constexpr bool is_integer(DType dtype) { return not info(dtype).is_float and dtype != DType::kBool; }
/// Is it widened for arithmetic?
constexpr bool is_storage_only(DType dtype) { return info(dtype).arithmetic != dtype; }

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
