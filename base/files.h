// The one I/O layer. Every file Hone reads or writes goes through here, so every failure says the same thing in the same
// way: kFileOpen, kFileRead or kFileWrite with the path, the system's reason and a way out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"

namespace hone {

/// A file's bytes, mapped read-only: nothing is read before it is looked at, so it may be larger than memory. Pipes and "-"
/// (standard input) are read to the end instead. The file must not be shortened while it is mapped:
/// who looks at what is gone gets SIGBUS, which Hone's tools say, and programs of others may.
class MappedFile {
 public:
  /// Throws kFileOpen (missing, a folder, no permission; names a similar file beside it) or kFileRead.
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  std::size_t size() const { return bytes_.size(); }

 private:
  void release() noexcept;

  std::string path_;
  std::span<const std::byte> bytes_;
  std::vector<std::byte> buffer_;  // the bytes, when they could not be mapped
  bool mapped_ = false;
};

/// The whole file (or standard input, for "-") as text. Throws kFileOpen, kFileRead, or kTooLarge beyond `most_bytes`.
std::string read_file(const std::string& path, std::uint64_t most_bytes = limits::kTextFileBytes);

/// Writes a file so that under its name there is always either the old content or all of the new. Bytes go to a temporary
/// file beside the target; commit() syncs it, renames it and syncs the folder. Without commit() (an exception) the temporary
/// is removed. A target that is no regular file ("-" for standard output, /dev/null, a pipe) is written straight through.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends. Throws kFileWrite.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Replaces bytes already written, such as a header that was not known at first. Not for pipes.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Appends zero bytes until position() is a multiple of `alignment`.
  void pad_to(std::size_t alignment);
  /// How many bytes were appended.
  std::uint64_t position() const { return position_; }
  /// Where the file will be.
  const std::string& path() const { return path_; }
  /// Makes the file visible under its name. Nothing may be written after it.
  void commit();

 private:
  void flush();
  void abandon() noexcept;
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::string target_;     // path_ with symbolic links followed, also to what is not there yet
  std::string temporary_;  // empty when written straight through
  int file_ = -1;
  std::uint64_t position_ = 0;
  std::vector<std::byte> buffer_;
};

/// AtomicFile around `fill`, or around some bytes. An exception from `fill` leaves everything as it was.
void write_file_atomically(const std::string& path, const std::function<void(AtomicFile&)>& fill);
void write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::string& path, std::string_view text);

/// A file of lines that only grows, such as metrics.jsonl. Each line is written whole: a last line that an earlier run
/// left unfinished is cut off on opening, and a line that could not be written completely is taken back. A new file may
/// hold records of another form instead.
class LogFile {
 public:
  /// Opens or creates it. Throws kFileOpen.
  explicit LogFile(std::string path);
  ~LogFile();
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&& other) noexcept;

  /// Writes `line` and a line end in one call. `line` holds no line end. Throws kFileWrite.
  void append(std::string_view line) { append_record(std::string(line) + "\n"); }
  /// Writes `bytes` as they are in one call. Throws kFileWrite.
  void append_record(std::string_view bytes);
  /// Forces what was appended to the disk. Throws kFileWrite.
  void sync();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
  bool regular_ = true;
};

/// Keeps others out of a folder who ask this way, too, as long as it lives and the process does (flock).
class FolderLock {
 public:
  /// Throws kFileOpen for what is no folder.
  explicit FolderLock(const std::string& path);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  /// False if another one has it. Where the file system knows no locks, everybody has it.
  bool is_held() const { return held_; }

 private:
  int folder_ = -1;
  bool held_ = true;
};

/// "a/b.onnx" -> "a"; "b.onnx" -> "."; "/b" -> "/".
std::string folder_of(const std::string& path);
/// "a/b.onnx" -> "b.onnx".
std::string file_name_of(const std::string& path);
bool file_exists(const std::string& path);
bool is_folder(const std::string& path);
/// The names in a folder, sorted, without "." and "..". Throws kFileOpen.
std::vector<std::string> list_folder(const std::string& path);
/// Makes the folder and those above it that are missing. Throws kFileWrite.
void make_folders(const std::string& path);
/// Renames a file or folder and syncs the folder it lands in. Throws kFileWrite.
void rename_durably(const std::string& from, const std::string& to);
/// Syncs a folder, so that names made in it survive a power failure. Throws kFileWrite.
void sync_folder(const std::string& path);
/// Removes a file; a missing one is fine. Throws kFileWrite.
void remove_file(const std::string& path);
/// Removes a folder and all in it, following no symbolic link; a missing one is fine. Throws kFileWrite.
void remove_tree(const std::string& path);

}  // namespace hone
