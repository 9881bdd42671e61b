// Pixels to numbers, several at a time where the processor can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hone {

/// A factor in two parts, whose sum is closer to it than one float is.
struct SplitFactor {
  float high, low;
};

/// The factor, if this processor has a fast way and if that way gives for each of the 256 bytes the same bits as rounding its product in double once; else
/// nothing.
std::optional<SplitFactor> factor_for_bytes(double factor);

/// to[i] = from[i] * factor, for a factor that factor_for_bytes() gave.
void scale_bytes(const std::uint8_t* from, float* to, std::size_t count, SplitFactor factor);

}  // namespace hone
