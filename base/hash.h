// Hashes that tell contents apart: of this version of Hone on this machine and others, but no protection against who wants two contents to have the same one.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hone {

/// With the hash of what came before as `seed`, that of both.
inline std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t seed = 0) { return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed); }
inline std::uint64_t hash_of(std::string_view text, std::uint64_t seed = 0) { return hash_of(std::as_bytes(std::span(text)), seed); }

}  // namespace hone
