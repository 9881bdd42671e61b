#include "formats/elements.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/diag.h"
#include "base/limits.h"
#include "base/text.h"

namespace hone {

std::size_t bytes_of_shape(DType dtype, std::span<const std::int64_t> shape, const std::string& name, const Loc& loc) {
  if (shape.size() > limits::kRank) {
    throw Error(Code::kTooLarge, fmt::format("{}: {} axes, where at most {} are taken", name, shape.size(), limits::kRank), loc, {"the file is damaged or made up"});
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

std::size_t packed_bytes(DType dtype, std::size_t count) { return (count * static_cast<std::size_t>(info(dtype).bits) + 7) / 8; }

void unpack_elements(DType dtype, std::span<const std::byte> packed, std::span<std::byte> elements) {
  const auto bits = static_cast<std::size_t>(info(dtype).bits);
  HONE_CHECK(bits < 8 and packed.size() == packed_bytes(dtype, elements.size()), "packed elements of a wrong size");
  const bool extends = info(dtype).is_signed and not info(dtype).is_float;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto raised = static_cast<std::uint8_t>(std::to_integer<unsigned>(packed[i * bits / 8]) >> (i * bits % 8) << (8 - bits));
    elements[i] = extends ? static_cast<std::byte>(static_cast<std::int8_t>(raised) >> (8 - bits)) : static_cast<std::byte>(raised >> (8 - bits));
  }
}

std::string pack_elements(DType dtype, std::span<const std::byte> elements) {
  const auto bits = static_cast<std::size_t>(info(dtype).bits);
  std::string packed(packed_bytes(dtype, elements.size()), '\0');
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const unsigned element = std::to_integer<unsigned>(elements[i]) & ((1U << bits) - 1);
    packed[i * bits / 8] = static_cast<char>(static_cast<unsigned char>(packed[i * bits / 8]) | element << (i * bits % 8));
  }
  return packed;
}

}  // namespace hone
