// Hashes that tell contents apart: of this version of Hone on this machine and others, but no protection against who wants two contents to have the same one.
#pragma once

#include <fmt/format.h>
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hone {

/// With the hash of what came before as `seed`, that of both.
inline std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t seed = 0) { return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed); }
inline std::uint64_t hash_of(std::string_view text, std::uint64_t seed = 0) { return hash_of(std::as_bytes(std::span(text)), seed); }

/// XXH3's 128 bits as 32 hexadecimal digits.
inline std::string wide_hash_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace hone
