#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/file_errors.h"
#include "base/file_system.h"
#include "base/text.h"

namespace hone {

namespace {

constexpr std::size_t kBufferBytes = 256 * 1024;

/// A file that is closed at the end of the scope.
struct OpenFile {
  int file;
  ~OpenFile() {
    if (file > STDERR_FILENO) file_system().close(file);
  }
};

int open_retrying(const std::string& path, int flags, mode_t mode = 0666) {
  int file;
  do file = file_system().open(path, flags | O_CLOEXEC, mode);
  while (file < 0 and errno == EINTR);
  return file;
}

/// What a name stands for when symbolic links are followed, also one that leads to nothing yet.
std::string end_of_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  std::filesystem::path end = path;
  std::error_code is_no_link;
  for (int i = 0; i < kMostLinks; ++i) {
    const std::filesystem::path next = std::filesystem::read_symlink(end, is_no_link);
    if (is_no_link) break;
    end = end.parent_path() / next;
  }
  return end.string();
}

/// All bytes up to the end of `file`.
std::vector<std::byte> read_to_end(int file, const std::string& path, std::uint64_t most_bytes) {
  std::vector<std::byte> bytes;
  std::size_t size = 0;
  while (true) {
    if (size > most_bytes) {
      throw Error(Code::kTooLarge, fmt::format("{} is longer than {}, the most that is read into memory", printable(path, 1000), human_bytes(most_bytes)));
    }
    if (bytes.size() - size < kBufferBytes) bytes.resize(std::max(2 * bytes.size(), kBufferBytes));
    const ssize_t count = file_system().read(file, bytes.data() + size, std::min(bytes.size() - size, kLongestTransfer));
    if (count < 0 and errno == EINTR) continue;
    if (count < 0) throw file_error(Code::kFileRead, "read", path, errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  bytes.resize(size);
  return bytes;
}

/// Writes all of `bytes`; 0, or the error number.
int write_fully(int file, std::span<const std::byte> bytes) {
  while (not bytes.empty()) {
    const ssize_t count = file_system().write(file, bytes.data(), std::min(bytes.size(), kLongestTransfer));
    if (count < 0 and errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return EIO;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

/// A name beside `target` that no file has yet, opened. Negative with errno on failure.
int open_temporary(const std::string& target, std::string* name) {
  static std::atomic<unsigned> counter{0};
  const std::string folder = folder_of(target);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    *name = fmt::format("{}/.{}.{}-{}.tmp", folder, file_name_of(target).substr(0, 200), ::getpid(), counter.fetch_add(1));
    const int file = open_retrying(*name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
    if (file >= 0 or errno != EEXIST) return file;
  }
  return -1;
}

}  // namespace

// ---- reading

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  const OpenFile open{path_ == "-" ? STDIN_FILENO : open_retrying(path_, O_RDONLY)};
  if (open.file < 0) throw file_error(Code::kFileOpen, "open", path_, errno);
  struct stat status {};
  if (file_system().stat_file(open.file, &status) != 0) throw file_error(Code::kFileRead, "read", path_, errno);
  if (S_ISDIR(status.st_mode)) throw file_error(Code::kFileOpen, "open", path_, EISDIR);
  if (S_ISREG(status.st_mode) and status.st_size > 0 and path_ != "-") {
    const auto size = static_cast<std::size_t>(status.st_size);
    if (const void* bytes = file_system().map(open.file, size)) {
      bytes_ = {static_cast<const std::byte*>(bytes), size};
      mapped_ = true;
      return;
    }
  }
  try {
    buffer_ = read_to_end(open.file, path_, limits::kPipeBytes);
  } catch (const std::bad_alloc&) {
    throw Error(Code::kMemory, fmt::format("{} cannot be mapped and does not fit into memory", printable(path_, 1000)), {},
                {"give it as a regular file: that is read piece by piece"});
  }
  bytes_ = buffer_;
}

MappedFile::~MappedFile() { release(); }

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})), buffer_(std::move(other.buffer_)), mapped_(std::exchange(other.mapped_, false)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  release();
  path_ = std::move(other.path_);
  bytes_ = std::exchange(other.bytes_, {});
  buffer_ = std::move(other.buffer_);
  mapped_ = std::exchange(other.mapped_, false);
  return *this;
}

void MappedFile::release() noexcept {
  if (mapped_) file_system().unmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  mapped_ = false;
}

std::string read_file(const std::string& path, std::uint64_t most_bytes) {
  const MappedFile file(path);
  if (file.size() > most_bytes) {
    throw Error(Code::kTooLarge, fmt::format("{} is {} long; at most {} are read", printable(path, 1000), human_bytes(file.size()), human_bytes(most_bytes)),
                {}, {"is it the right file?"});
  }
  return std::string(file.text());
}

// ---- writing

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), target_(path_) {
  if (path_ == "-") {
    file_ = STDOUT_FILENO;
    return;
  }
  struct stat status {};
  const bool exists = file_system().stat_path(path_, &status) == 0;
  if (not exists and errno != ENOENT) throw file_error(Code::kFileOpen, "write", path_, errno);
  if (exists and S_ISDIR(status.st_mode)) throw file_error(Code::kFileOpen, "write", path_, EISDIR);
  if (exists and not S_ISREG(status.st_mode)) {
    file_ = open_retrying(path_, O_WRONLY);
    if (file_ < 0) throw file_error(Code::kFileOpen, "write", path_, errno);
    return;
  }
  if (path_.empty()) throw file_error(Code::kFileOpen, "write", path_, ENOENT);
  target_ = end_of_links(path_);  // a link stays one: what it points to is replaced, or made
  file_ = open_temporary(target_, &temporary_);
  if (file_ < 0) {
    temporary_.clear();
    throw file_error(Code::kFileOpen, "write", path_, errno);
  }
  if (exists) file_system().set_mode(file_, status.st_mode & 07777);  // as good as we may; the content matters
}

AtomicFile::~AtomicFile() { abandon(); }

void AtomicFile::abandon() noexcept {
  if (file_ > STDERR_FILENO) file_system().close(file_);
  file_ = -1;
  if (not temporary_.empty()) file_system().remove(temporary_);
  temporary_.clear();
}

void AtomicFile::fail(int error) const { throw file_error(Code::kFileWrite, "write", path_, error); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  HONE_CHECK(file_ >= 0, "written to after commit()");
  position_ += bytes.size();
  if (buffer_.size() + bytes.size() <= kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return;
  }
  flush();
  if (const int error = write_fully(file_, bytes)) fail(error);
}

void AtomicFile::flush() {
  if (const int error = write_fully(file_, buffer_)) fail(error);
  buffer_.clear();
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  HONE_CHECK(offset + bytes.size() <= position_, "replaces bytes that were not written");
  flush();
  while (not bytes.empty()) {
    const ssize_t count = file_system().write_at(file_, bytes.data(), std::min(bytes.size(), kLongestTransfer), offset);
    if (count < 0 and errno == EINTR) continue;
    if (count <= 0) fail(count < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void AtomicFile::pad_to(std::size_t alignment) {
  const std::size_t beyond = position_ % alignment;
  if (beyond != 0) write(std::vector<std::byte>(alignment - beyond));
}

void AtomicFile::commit() {
  HONE_CHECK(file_ >= 0, "committed twice");
  flush();
  if (temporary_.empty()) {
    if (file_ > STDERR_FILENO and file_system().close(std::exchange(file_, -1)) != 0) fail(errno);
    file_ = -1;
    return;
  }
  if (file_system().sync(file_) != 0) fail(errno);
  if (file_system().close(std::exchange(file_, -1)) != 0) fail(errno);
  if (file_system().rename(temporary_, target_) != 0) fail(errno);
  temporary_.clear();
  try {
    sync_folder(folder_of(target_));
  } catch (const Error& error) {
    throw Error(Code::kFileWrite, fmt::format("{} is written, but it is not sure that it would outlast a power failure: {}", printable(target_, 1000), error.diags().front().message), {}, {"run the command again when the disk is in order"});
  }
}

void write_file_atomically(const std::string& path, const std::function<void(AtomicFile&)>& fill) {
  AtomicFile file(path);
  fill(file);
  file.commit();
}

void write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  write_file_atomically(path, [&](AtomicFile& file) { file.write(bytes); });
}

void write_file_atomically(const std::string& path, std::string_view text) {
  write_file_atomically(path, [&](AtomicFile& file) { file.write(text); });
}

// ---- locks

FolderLock::FolderLock(const std::string& path) : folder_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_ < 0) throw file_error(Code::kFileOpen, "open", path, errno);
  held_ = ::flock(folder_, LOCK_EX | LOCK_NB) == 0 or errno != EWOULDBLOCK;
}

FolderLock::~FolderLock() { ::close(folder_); }

// ---- logs

LogFile::LogFile(std::string path) : path_(std::move(path)) {
  file_ = path_ == "-" ? STDOUT_FILENO : open_retrying(path_, O_RDWR | O_CREAT | O_APPEND);
  if (file_ < 0) throw file_error(Code::kFileOpen, "write", path_, errno);
  OpenFile guard{file_};  // until nothing can throw any more
  struct stat status {};
  if (file_system().stat_file(file_, &status) != 0) throw file_error(Code::kFileOpen, "write", path_, errno);
  regular_ = S_ISREG(status.st_mode) and path_ != "-";
  size_ = regular_ ? static_cast<std::uint64_t>(status.st_size) : 0;
  if (size_ > 0) {
    void* const bytes = file_system().map(file_, size_);
    if (bytes == nullptr) throw file_error(Code::kFileRead, "read", path_, errno);
    const std::size_t end = std::string_view(static_cast<const char*>(bytes), size_).rfind('\n');
    file_system().unmap(bytes, size_);
    const std::uint64_t whole = end == std::string_view::npos ? 0 : end + 1;
    if (whole != size_ and file_system().truncate(file_, whole) != 0) throw file_error(Code::kFileWrite, "write", path_, errno);
    size_ = whole;
  }
  guard.file = -1;
}

LogFile::~LogFile() {
  if (file_ > STDERR_FILENO) file_system().close(file_);
}

LogFile::LogFile(LogFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), size_(other.size_), regular_(other.regular_) {}

LogFile& LogFile::operator=(LogFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(size_, other.size_);
  std::swap(regular_, other.regular_);
  return *this;
}

void LogFile::append_record(std::string_view bytes) {
  if (const int error = write_fully(file_, std::as_bytes(std::span(bytes)))) {
    if (regular_) file_system().truncate(file_, size_);
    throw file_error(Code::kFileWrite, "write", path_, error);
  }
  size_ += bytes.size();
}

void LogFile::sync() {
  if (regular_ and file_system().sync(file_) != 0) throw file_error(Code::kFileWrite, "write", path_, errno);
}

}  // namespace hone
