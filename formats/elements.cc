#include "formats/elements.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diag.h"
#include "base/limits.h"
#include "base/text.h"

namespace hone {

std::size_t bytes_of_shape(DType dtype, std::span<const std::int64_t> shape, const std::string& name, const Loc& loc) {
  if (shape.size() > limits::kRank) {
    throw Error(Code::kTooLarge, fmt::format("{}: {} axes, where at most {} are taken", name, shape.size(), limits::kRank), loc);
  }
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0 or __builtin_mul_overflow(count, extent, &count) or count > limits::kTensorElements) {
      throw Error(Code::kTooLarge, fmt::format("{}: shape {} is {}", name, shape_text(shape), extent < 0 ? "negative" : "beyond the limit of 2^40 elements"),
                  loc, {"the file is damaged or made up"});
    }
  }
  return static_cast<std::size_t>(count) * size_of(dtype);
}

void swap_bytes(std::span<std::byte> bytes, std::size_t size) {
  if (size < 2) return;
  for (std::size_t i = 0; i + size <= bytes.size(); i += size)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i), bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
}

void normalize_bools(std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) byte = std::byte{byte != std::byte{0}};
}

}  // namespace hone
