// Decompression with caps: what a small hostile file may become is limited in bytes and in ratio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/limits.h"

namespace hone {

/// Unpacks raw deflate data that become exactly `size` bytes. `name` is what messages call them. Memory is touched only as far as there are data for it.
/// Throws kDataFormat when the data are damaged, or become more or less.
std::vector<std::byte> inflate_raw(std::span<const std::byte> packed, std::size_t size, const std::string& name);

/// The first `count` bytes (or all, if there are fewer) of raw deflate data.
std::vector<std::byte> inflate_raw_start(std::span<const std::byte> packed, std::size_t count, const std::string& name);

/// Unpacks a gzip file (several members in a row, too). Memory grows with what has really been unpacked, never with what a header claims.
/// Throws kDataFormat (damaged, cut off) or kTooLarge (beyond limits::kDecompressedBytes or kDecompressedRatio). What becomes more than `enough` bytes is given up
/// there: the result is then longer than that, and what follows is not looked at.
std::vector<std::byte> gunzip(std::span<const std::byte> packed, const std::string& name, std::uint64_t enough = limits::kDecompressedBytes);

/// The CRC-32 that zip and gzip use.
std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace hone
