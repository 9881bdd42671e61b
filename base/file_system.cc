#include "base/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace hone {

int FileSystem::open(const std::string& path, int flags, mode_t mode) { return ::open(path.c_str(), flags, mode); }
int FileSystem::close(int file) { return ::close(file); }
ssize_t FileSystem::read(int file, void* bytes, std::size_t count) { return ::read(file, bytes, count); }
ssize_t FileSystem::read_at(int file, void* bytes, std::size_t count, std::uint64_t offset) {
  return ::pread(file, bytes, count, static_cast<off_t>(offset));
}
ssize_t FileSystem::write(int file, const void* bytes, std::size_t count) { return ::write(file, bytes, count); }
ssize_t FileSystem::write_at(int file, const void* bytes, std::size_t count, std::uint64_t offset) {
  return ::pwrite(file, bytes, count, static_cast<off_t>(offset));
}
int FileSystem::sync(int file) { return ::fsync(file); }
int FileSystem::truncate(int file, std::uint64_t size) { return ::ftruncate(file, static_cast<off_t>(size)); }
int FileSystem::set_mode(int file, mode_t mode) { return ::fchmod(file, mode); }
int FileSystem::stat_file(int file, struct stat* result) { return ::fstat(file, result); }
int FileSystem::stat_path(const std::string& path, struct stat* result) { return ::stat(path.c_str(), result); }
int FileSystem::stat_link(const std::string& path, struct stat* result) { return ::lstat(path.c_str(), result); }

void* FileSystem::map(int file, std::size_t count) {
  void* const bytes = ::mmap(nullptr, count, PROT_READ, MAP_PRIVATE, file, 0);
  return bytes == MAP_FAILED ? nullptr : bytes;
}

int FileSystem::unmap(void* bytes, std::size_t count) { return ::munmap(bytes, count); }
int FileSystem::rename(const std::string& from, const std::string& to) { return ::rename(from.c_str(), to.c_str()); }
int FileSystem::remove(const std::string& path) { return ::unlink(path.c_str()); }
int FileSystem::make_folder(const std::string& path) { return ::mkdir(path.c_str(), 0777); }
int FileSystem::remove_folder(const std::string& path) { return ::rmdir(path.c_str()); }

int FileSystem::list_folder(const std::string& path, std::vector<std::string>* names) {
  DIR* const folder = ::opendir(path.c_str());
  if (folder == nullptr) return -1;
  errno = 0;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." and name != "..") names->push_back(name);
    errno = 0;  // readdir tells its end from an error only by this
  }
  const int error = errno;
  ::closedir(folder);
  errno = error;
  return error == 0 ? 0 : -1;
}

namespace {

constinit std::atomic<FileSystem*> replacement{nullptr};

}  // namespace

FileSystem& file_system() {
  static FileSystem real;
  FileSystem* const other = replacement.load();
  return other != nullptr ? *other : real;
}

ScopedFileSystem::ScopedFileSystem(FileSystem& other) : previous_(replacement.exchange(&other)) {}
ScopedFileSystem::~ScopedFileSystem() { replacement.store(previous_); }

void FaultyFileSystem::fail(FileCall call, int nth, int error, bool for_good) {
  const std::lock_guard lock(mutex_);
  faults_[call] = {nth, error, for_good};
}

void FaultyFileSystem::fail_any(int nth, int error) {
  const std::lock_guard lock(mutex_);
  any_fault_ = {nth, error, false};
}

void FaultyFileSystem::set_longest_transfer(std::size_t count) {
  const std::lock_guard lock(mutex_);
  longest_transfer_ = count;
}

void FaultyFileSystem::set_disk_space(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  disk_space_ = bytes;
}

int FaultyFileSystem::calls(FileCall call) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(call);
  return found == counts_.end() ? 0 : found->second;
}

int FaultyFileSystem::calls() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

bool FaultyFileSystem::allow(FileCall call) {
  const std::lock_guard lock(mutex_);
  const int nth = ++counts_[call];
  if (const auto fault = faults_.find(call); fault != faults_.end()) {
    const Fault& wanted = fault->second;
    if (nth == wanted.nth or (wanted.for_good and nth > wanted.nth)) return errno = wanted.error, false;
  }
  if (call == FileCall::kClose) return true;
  if (++count_; any_fault_ and count_ == any_fault_->nth) return errno = any_fault_->error, false;
  return true;
}

bool FaultyFileSystem::take_space(std::size_t* count) {
  const std::lock_guard lock(mutex_);
  if (longest_transfer_) *count = std::min(*count, *longest_transfer_);
  if (not disk_space_) return true;
  if (*disk_space_ == 0 and *count > 0) return errno = ENOSPC, false;
  *count = static_cast<std::size_t>(std::min<std::uint64_t>(*count, *disk_space_));
  *disk_space_ -= *count;
  return true;
}

int FaultyFileSystem::open(const std::string& path, int flags, mode_t mode) { return allow(FileCall::kOpen) ? FileSystem::open(path, flags, mode) : -1; }

int FaultyFileSystem::close(int file) {
  const bool allowed = allow(FileCall::kClose);
  const int error = errno;
  const int result = FileSystem::close(file);  // a close that fails has still closed the file
  if (allowed) return result;
  errno = error;
  return -1;
}

std::size_t FaultyFileSystem::shortened(std::size_t count) const {
  const std::lock_guard lock(mutex_);
  return longest_transfer_ ? std::min(count, *longest_transfer_) : count;
}

ssize_t FaultyFileSystem::read(int file, void* bytes, std::size_t count) {
  return allow(FileCall::kRead) ? FileSystem::read(file, bytes, shortened(count)) : -1;
}

ssize_t FaultyFileSystem::read_at(int file, void* bytes, std::size_t count, std::uint64_t offset) {
  return allow(FileCall::kRead) ? FileSystem::read_at(file, bytes, shortened(count), offset) : -1;
}

ssize_t FaultyFileSystem::write(int file, const void* bytes, std::size_t count) {
  return allow(FileCall::kWrite) and take_space(&count) ? FileSystem::write(file, bytes, count) : -1;
}

ssize_t FaultyFileSystem::write_at(int file, const void* bytes, std::size_t count, std::uint64_t offset) {
  return allow(FileCall::kWrite) and take_space(&count) ? FileSystem::write_at(file, bytes, count, offset) : -1;
}

int FaultyFileSystem::sync(int file) { return allow(FileCall::kSync) ? FileSystem::sync(file) : -1; }
int FaultyFileSystem::truncate(int file, std::uint64_t size) { return allow(FileCall::kTruncate) ? FileSystem::truncate(file, size) : -1; }
int FaultyFileSystem::set_mode(int file, mode_t mode) { return allow(FileCall::kStat) ? FileSystem::set_mode(file, mode) : -1; }
int FaultyFileSystem::stat_file(int file, struct stat* result) { return allow(FileCall::kStat) ? FileSystem::stat_file(file, result) : -1; }
int FaultyFileSystem::stat_path(const std::string& path, struct stat* result) { return allow(FileCall::kStat) ? FileSystem::stat_path(path, result) : -1; }
int FaultyFileSystem::stat_link(const std::string& path, struct stat* result) { return allow(FileCall::kStat) ? FileSystem::stat_link(path, result) : -1; }
void* FaultyFileSystem::map(int file, std::size_t count) { return allow(FileCall::kMap) ? FileSystem::map(file, count) : nullptr; }
int FaultyFileSystem::rename(const std::string& from, const std::string& to) { return allow(FileCall::kRename) ? FileSystem::rename(from, to) : -1; }
int FaultyFileSystem::remove(const std::string& path) { return allow(FileCall::kRemove) ? FileSystem::remove(path) : -1; }
int FaultyFileSystem::make_folder(const std::string& path) { return allow(FileCall::kMakeFolder) ? FileSystem::make_folder(path) : -1; }
int FaultyFileSystem::remove_folder(const std::string& path) { return allow(FileCall::kRemove) ? FileSystem::remove_folder(path) : -1; }
int FaultyFileSystem::list_folder(const std::string& path, std::vector<std::string>* names) {
  return allow(FileCall::kList) ? FileSystem::list_folder(path, names) : -1;
}

}  // namespace hone
