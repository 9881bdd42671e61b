// Files that may be larger than memory, read piece by piece where they are wanted, and scratch files without a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hone {

/// A file whose bytes are read into the caller's memory, so that the process itself never grows with it. Several threads may read at once.
class StreamedFile {
 public:
  /// Opens for reading. What is no regular file (a pipe, "-") is copied to a scratch file first. Throws kFileOpen, kFileRead, kFileWrite.
  explicit StreamedFile(std::string path);
  /// An empty file without a name, which is gone when it is closed; in $TMPDIR, else /var/tmp, else /tmp. Throws kFileWrite.
  static StreamedFile scratch();
  ~StreamedFile();
  StreamedFile(StreamedFile&& other) noexcept;
  StreamedFile& operator=(StreamedFile&& other) noexcept;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Bytes from `offset` on, as many as `to` takes. Throws kFileRead, also when the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  /// Adds to the end of a scratch file. Throws kFileWrite.
  void append(std::span<const std::byte> bytes);

 private:
  StreamedFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
  void copy_to_scratch();

  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

/// The length of a regular file; 0 of everything else, also of what is not there.
std::uint64_t file_bytes(const std::string& path);

}  // namespace hone
