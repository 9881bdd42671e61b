// Floats that were bytes before they were saved.
#pragma once

#include <optional>

#include "runtime/data/array.h"

namespace hone {

/// Bytes, and the number that each is multiplied by.
struct ScaledBytes {
  Array bytes;
  double factor;
};

/// `floats` (f32), if they are bytes times a factor, as pixels are that somebody has made 0 to 1: a Converter with that factor gives the same floats, bit by bit. Nothing for others, and where this processor has no fast way back.
/// Reads all of them, or until the first that is something else. The factor is found in the first rows: nothing if these hold one number alone, or happen to have none that are neighbours. Throws kFileRead.
std::optional<ScaledBytes> as_scaled_bytes(const Array& floats);

}  // namespace hone
