// Elements as files hold them: how many bytes they take, and how they become what a Tensor holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/diag.h"
#include "base/dtype.h"

namespace hone {

/// The bytes that elements of `dtype` in `shape` take. Throws kTooLarge, beginning with `name`, for a negative extent, more than
/// limits::kRank axes or more than limits::kTensorElements elements. To be asked before anything is allocated.
std::size_t bytes_of_shape(DType dtype, std::span<const std::int64_t> shape, const std::string& name, const Loc& loc = {});

/// Reverses the bytes of each element of `size` bytes.
void swap_bytes(std::span<std::byte> bytes, std::size_t size);

/// Turns every byte but 0 into 1: a C++ bool of any other value is undefined.
void normalize_bools(std::span<std::byte> bytes);

/// The bytes that `count` elements take in an ONNX file, where elements of 4 and 2 bits are packed, the first in a byte's lowest bits.
std::size_t packed_bytes(DType dtype, std::size_t count);
/// Elements of a type of fewer than 8 bits, packed in a file: one to a byte of `elements`, integers with their sign. Bits behind the last are ignored.
void unpack_elements(DType dtype, std::span<const std::byte> packed, std::span<std::byte> elements);
std::string pack_elements(DType dtype, std::span<const std::byte> elements);

}  // namespace hone
