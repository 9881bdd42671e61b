// Calls a generic function with the C++ type of a dtype: by_dtype(DType::kF32, [&]<typename T>() { ... }).
#pragma once

#include "base/check.h"
#include "base/dtype.h"

namespace hone::host {

/// For the types that C++ computes with; f16 and other storage types are cast to f32 before a host function sees them.
template <typename Function>
void by_dtype(DType dtype, Function function) {
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
    default: break;
  }
  HONE_CHECK(false, "a host function called with a storage type");
}

}  // namespace hone::host
