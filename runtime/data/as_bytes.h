// Floats of which there are few different ones, as bytes.
#pragma once

#include <optional>

#include "runtime/data/array.h"
#include "runtime/data/convert.h"

namespace hone {

/// Bytes, and what makes the floats of them that they stand for, bit by bit.
struct BytesForFloats {
  Array bytes;
  Converter converter;
};

/// `floats` (f32), if at most 256 of them differ, as pixels do whatever was done to each: divided by 255, a mean taken away, divided by a deviation. Nothing for others, and where this processor has no fast way back: bytes times a factor need AVX2,
/// all others AVX-512 VBMI. Reads all of them, or until it is seen that there are too many, which the first rows tell of most. Throws kFileRead.
std::optional<BytesForFloats> as_bytes(const Array& floats);

}  // namespace hone
