// Zip archives: what .npz needs of them. Stored and deflated entries, zip64, sizes from the central directory (so data
// descriptors do not matter), checksums, and caps against archives made to explode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"

namespace hone {

struct ZipEntry {
  std::string name;
  std::uint16_t method = 0;  ///< 0 stored, 8 deflated
  std::uint32_t crc = 0;
  std::uint64_t packed_bytes = 0;
  std::uint64_t bytes = 0;          ///< unpacked
  std::uint64_t header_offset = 0;  ///< of the local header
};

/// An archive in memory or mapped; the bytes outlive it.
class ZipReader {
 public:
  /// Reads the central directory. `name` is what messages call the archive. Throws kDataFormat (not a zip archive, damaged, encrypted, entries that
  /// overlap), kTooLarge (more entries or bytes than limits allow).
  ZipReader(std::span<const std::byte> bytes, std::string name);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// The unpacked bytes, checksum verified. Stored entries are not copied: `buffer` stays empty and the span is into the archive.
  std::span<const std::byte> read(const ZipEntry& entry, std::vector<std::byte>& buffer) const;
  /// The first `count` unpacked bytes, or all if there are fewer; without a checksum.
  std::vector<std::byte> read_start(const ZipEntry& entry, std::size_t count) const;

 private:
  std::span<const std::byte> packed(const ZipEntry& entry) const;
  std::string label(const ZipEntry& entry) const;
  void refuse_overlaps() const;

  std::span<const std::byte> bytes_;
  std::string name_;
  std::vector<ZipEntry> entries_;
};

/// Writes stored entries one after another into a file that its owner commits.
class ZipWriter {
 public:
  explicit ZipWriter(AtomicFile& file) : file_(file) {}
  /// An entry whose content is `parts`, one after the other.
  void add(const std::string& name, std::span<const std::span<const std::byte>> parts);
  /// Writes the central directory. Nothing may be added after it.
  void finish();

 private:
  AtomicFile& file_;
  std::vector<ZipEntry> entries_;
};

}  // namespace hone
