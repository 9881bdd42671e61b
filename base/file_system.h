// The system calls behind base/files.h, in one table that a test can replace so that any of them fails on purpose.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace hone {

/// Bytes that are read or written by one call; Linux itself stops a little below 2 GiB.
inline constexpr std::size_t kLongestTransfer = std::size_t{1} << 30;

/// The calls, and as base class the real ones. Each behaves like the POSIX call of its name: -1 (or null) and errno on failure.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const std::string& path, int flags, mode_t mode);
  virtual int close(int file);
  virtual ssize_t read(int file, void* bytes, std::size_t count);
  virtual ssize_t read_at(int file, void* bytes, std::size_t count, std::uint64_t offset);
  virtual ssize_t write(int file, const void* bytes, std::size_t count);
  virtual ssize_t write_at(int file, const void* bytes, std::size_t count, std::uint64_t offset);
  virtual int sync(int file);
  virtual int truncate(int file, std::uint64_t size);
  virtual int set_mode(int file, mode_t mode);
  virtual int stat_file(int file, struct stat* result);
  virtual int stat_path(const std::string& path, struct stat* result);  ///< follows symbolic links
  virtual int stat_link(const std::string& path, struct stat* result);  ///< does not
  /// Maps `count` > 0 bytes from the start, read-only; null on failure.
  virtual void* map(int file, std::size_t count);
  virtual int unmap(void* bytes, std::size_t count);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int remove(const std::string& path);
  virtual int make_folder(const std::string& path);
  virtual int remove_folder(const std::string& path);
  virtual int list_folder(const std::string& path, std::vector<std::string>* names);
};

/// The file system in force: the real one, or the innermost ScopedFileSystem's.
FileSystem& file_system();

/// Puts another file system in force, for all threads, until it goes out of scope. For tests.
class ScopedFileSystem {
 public:
  explicit ScopedFileSystem(FileSystem& replacement);
  ~ScopedFileSystem();
  ScopedFileSystem(const ScopedFileSystem&) = delete;
  ScopedFileSystem& operator=(const ScopedFileSystem&) = delete;

 private:
  FileSystem* previous_;
};

enum class FileCall : std::uint8_t { kOpen, kClose, kRead, kWrite, kSync, kTruncate, kStat, kMap, kRename, kRemove, kMakeFolder, kList };

/// The real file system with faults: the Nth call of a kind, or the Nth call of any kind, fails. Thread safe.
class FaultyFileSystem : public FileSystem {
 public:
  /// The `nth` call (1 is the first) of `call` fails with `error`; with `for_good` so does each one after it.
  void fail(FileCall call, int nth, int error, bool for_good = false);
  /// The `nth` call of any kind but kClose fails with `error`.
  void fail_any(int nth, int error);
  /// A read or write moves at most `count` bytes.
  void set_longest_transfer(std::size_t count);
  /// Writes beyond `bytes` in all fail with ENOSPC; the one that meets the end is cut short, as on a real full disk.
  void set_disk_space(std::uint64_t bytes);
  /// How often `call` was made.
  int calls(FileCall call) const;
  /// How many calls but kClose were made.
  int calls() const;

  int open(const std::string& path, int flags, mode_t mode) override;
  int close(int file) override;
  ssize_t read(int file, void* bytes, std::size_t count) override;
  ssize_t read_at(int file, void* bytes, std::size_t count, std::uint64_t offset) override;
  ssize_t write(int file, const void* bytes, std::size_t count) override;
  ssize_t write_at(int file, const void* bytes, std::size_t count, std::uint64_t offset) override;
  int sync(int file) override;
  int truncate(int file, std::uint64_t size) override;
  int set_mode(int file, mode_t mode) override;
  int stat_file(int file, struct stat* result) override;
  int stat_path(const std::string& path, struct stat* result) override;
  int stat_link(const std::string& path, struct stat* result) override;
  void* map(int file, std::size_t count) override;
  int rename(const std::string& from, const std::string& to) override;
  int remove(const std::string& path) override;
  int make_folder(const std::string& path) override;
  int remove_folder(const std::string& path) override;
  int list_folder(const std::string& path, std::vector<std::string>* names) override;

 private:
  struct Fault {
    int nth;
    int error;
    bool for_good;
  };
  /// Counts the call; false, with errno set, when it is to fail.
  bool allow(FileCall call);
  /// `count`, or the longest transfer if that is less.
  std::size_t shortened(std::size_t count) const;
  /// How many of `count` bytes may be written; nothing left: false, with errno set.
  bool take_space(std::size_t* count);

  mutable std::mutex mutex_;
  std::map<FileCall, Fault> faults_;
  std::optional<Fault> any_fault_;
  std::map<FileCall, int> counts_;
  int count_ = 0;
  std::optional<std::size_t> longest_transfer_;
  std::optional<std::uint64_t> disk_space_;
};

}  // namespace hone
