// Calls a generic function with the C++ type of a dtype: by_dtype(DType::kF32, [&]<typename T>() { ... }).
#pragma once

#include <cstdint>

#include "base/check.h"
#include "base/dtype.h"

namespace hone {

/// Is there a C++ type that holds one element? Floats that are storage only have none.
inline bool has_cpp_type(DType dtype) { return not(is_float(dtype) and is_storage_only(dtype)); }

/// The type that holds one element in memory: integers of fewer than 8 bits are held by those of 8, others by themselves.
inline DType held_as(DType dtype) {
  switch (dtype) {
    case DType::kI2:
    case DType::kI4: return DType::kI8;
    case DType::kU2:
    case DType::kU4: return DType::kU8;
    default: return dtype;
  }
}

/// `function` for the C++ type of `dtype`, which must have one: an internal error for storage types.
template <typename Function>
decltype(auto) by_dtype(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kF32: return function.template operator()<float>();
    case DType::kF64: return function.template operator()<double>();
    case DType::kI8: return function.template operator()<std::int8_t>();
    case DType::kI16: return function.template operator()<std::int16_t>();
    case DType::kI32: return function.template operator()<std::int32_t>();
    case DType::kI64: return function.template operator()<std::int64_t>();
    case DType::kU8: return function.template operator()<std::uint8_t>();
    case DType::kU16: return function.template operator()<std::uint16_t>();
    case DType::kU32: return function.template operator()<std::uint32_t>();
    case DType::kU64: return function.template operator()<std::uint64_t>();
    case DType::kBool: return function.template operator()<bool>();
    default: internal_error(__FILE__, __LINE__, "a dtype without a C++ type");
  }
}

}  // namespace hone
