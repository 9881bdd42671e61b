// Where the rows of an array lie: bytes in memory, mapped, or read from a file where they are wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/files.h"
#include "base/streamed_file.h"
#include "base/tensor.h"

namespace hone {

/// Files up to this size in all are mapped and stay in memory once they were read; larger ones are read into the caller's memory each time, which takes a call of the system for each row of a shuffled batch, and a thread that small steps have no core for.
/// It holds Fashion-MNIST in f32 (179 MiB).
inline constexpr std::uint64_t kMappedBytes = std::uint64_t{256} << 20;

class RowBytes {
 public:
  explicit RowBytes(Tensor tensor) : owner_(std::move(tensor)) {}
  explicit RowBytes(MappedFile file) : owner_(std::move(file)) {}
  explicit RowBytes(StreamedFile file) : owner_(std::move(file)) {}

  std::uint64_t size() const;
  /// All of them where they lie; null when they have to be read.
  const std::byte* data() const;
  /// Copies bytes from `offset` on. Throws kFileRead.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  /// Are they a tensor's, whose bools are 0 or 1?
  bool is_tensor() const { return std::holds_alternative<Tensor>(owner_); }

 private:
  std::variant<Tensor, MappedFile, StreamedFile> owner_;
};

/// The bytes of a file, mapped or streamed. Throws kFileOpen, kFileRead.
std::shared_ptr<const RowBytes> open_row_bytes(const std::string& path, bool streamed);

/// Rows of equal length in one place.
struct RowPart {
  std::shared_ptr<const RowBytes> bytes;
  std::int64_t row_count = 0;
  std::uint64_t offset = 0;            ///< of row 0
  std::uint64_t stride = 0;            ///< bytes from one row to the next: fewer than a row has where rows overlap, more where something lies between
  std::vector<std::uint64_t> offsets;  ///< of each row, where they lie anyhow; else empty

  std::uint64_t offset_of(std::int64_t row) const {
    return offsets.empty() ? offset + static_cast<std::uint64_t>(row) * stride : offsets[static_cast<std::size_t>(row)];
  }
};

}  // namespace hone
