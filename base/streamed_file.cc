#include "base/streamed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/file_errors.h"
#include "base/file_system.h"
#include "base/files.h"
#include "base/text.h"

namespace hone {

namespace {

constexpr std::size_t kPieceBytes = 256 * 1024;

/// Not /tmp where that can be helped: it is often memory.
std::string scratch_folder() {
  if (const char* named = std::getenv("TMPDIR"); named != nullptr and is_folder(named)) return named;
  return is_folder("/var/tmp") ? "/var/tmp" : "/tmp";
}

int open_retrying(const std::string& path, int flags) {
  int file;
  do file = file_system().open(path, flags | O_CLOEXEC, 0600);
  while (file < 0 and errno == EINTR);
  return file;
}

}  // namespace

StreamedFile::StreamedFile(std::string path) : StreamedFile(std::move(path), -1) {
  file_ = path_ == "-" ? STDIN_FILENO : open_retrying(path_, O_RDONLY);
  if (file_ < 0) throw file_error(Code::kFileOpen, "open", path_, errno);
  struct stat status {};
  if (file_system().stat_file(file_, &status) != 0) throw file_error(Code::kFileRead, "read", path_, errno);
  if (S_ISDIR(status.st_mode)) throw file_error(Code::kFileOpen, "open", path_, EISDIR);
  if ((S_ISCHR(status.st_mode) or S_ISBLK(status.st_mode)) and path_ != "-")  // some have no end
    throw Error(Code::kFileOpen, fmt::format("cannot open {}: it is a device, not a file", printable(path_, 1000)), {}, {"give a file, or - for standard input"});
  if (S_ISREG(status.st_mode) and path_ != "-") size_ = static_cast<std::uint64_t>(status.st_size);
  else copy_to_scratch();
}

void StreamedFile::copy_to_scratch() {
  StreamedFile copy = scratch();
  std::vector<std::byte> piece(kPieceBytes);
  while (true) {
    const ssize_t count = file_system().read(file_, piece.data(), piece.size());
    if (count < 0 and errno == EINTR) continue;
    if (count < 0) throw file_error(Code::kFileRead, "read", path_, errno);
    if (count == 0) break;
    copy.append(std::span(piece).first(static_cast<std::size_t>(count)));
  }
  std::swap(file_, copy.file_);
  size_ = copy.size_;
}

StreamedFile StreamedFile::scratch() {
  static std::atomic<unsigned> counter{0};
  const std::string folder = scratch_folder();
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const std::string path = fmt::format("{}/.hone-scratch-{}-{}", folder, ::getpid(), counter.fetch_add(1));
    const int file = open_retrying(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
    if (file < 0 and errno == EEXIST) continue;
    if (file < 0) throw file_error(Code::kFileWrite, "write", path, errno);
    file_system().remove(path);
    return {path, file};
  }
  throw file_error(Code::kFileWrite, "write", folder, EEXIST);
}

StreamedFile::~StreamedFile() {
  if (file_ > STDERR_FILENO) file_system().close(file_);
}

StreamedFile::StreamedFile(StreamedFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), size_(std::exchange(other.size_, 0)) {}

StreamedFile& StreamedFile::operator=(StreamedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(size_, other.size_);
  return *this;
}

void StreamedFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (not to.empty()) {
    const ssize_t count = file_system().read_at(file_, to.data(), std::min(to.size(), kLongestTransfer), offset);
    if (count < 0 and errno == EINTR) continue;
    if (count < 0) throw file_error(Code::kFileRead, "read", path_, errno);
    if (count == 0)
      throw Error(Code::kFileRead, fmt::format("cannot read {}: it ends at byte {}", printable(path_, 1000), offset), {},
                  {"something has shortened the file while it was read"});
    to = to.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void StreamedFile::append(std::span<const std::byte> bytes) {
  while (not bytes.empty()) {
    const ssize_t count = file_system().write_at(file_, bytes.data(), std::min(bytes.size(), kLongestTransfer), size_);
    if (count < 0 and errno == EINTR) continue;
    if (count <= 0) throw with_note(file_error(Code::kFileWrite, "write", path_, count < 0 ? errno : EIO), "what does not fit into memory goes there: TMPDIR=FOLDER names another place");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    size_ += static_cast<std::uint64_t>(count);
  }
}

std::uint64_t file_bytes(const std::string& path) {
  struct stat status {};
  const bool regular = file_system().stat_path(path, &status) == 0 and S_ISREG(status.st_mode);
  return regular ? static_cast<std::uint64_t>(status.st_size) : 0;
}

}  // namespace hone
