#include "backends/cuda/ptxas.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/text.h"

extern char** environ;  // POSIX

namespace hone {

namespace {

/// A file in memory that a child process reaches by its path. No name on disk: nothing to clean up, and nobody to meet.
class SharedFile {
 public:
  explicit SharedFile(const char* name) : descriptor_(memfd_create(name, 0)) { check(descriptor_ >= 0, "memfd_create"); }
  ~SharedFile() { close(descriptor_); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }
  void write(std::string_view bytes) const {
    while (not bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      check(count > 0 or errno == EINTR, "write");
      if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  std::string read() const {
    check(lseek(descriptor_, 0, SEEK_SET) == 0, "lseek");
    std::string bytes;
    for (std::size_t size = 0;;) {
      bytes.resize(size + 65536);
      const ssize_t count = ::read(descriptor_, bytes.data() + size, bytes.size() - size);
      check(count >= 0 or errno == EINTR, "read");
      if (count > 0) size += static_cast<std::size_t>(count);
      if (count == 0) return bytes.substr(0, size);
    }
  }

 private:
  static void check(bool works, const char* call) {
    if (not works) internal_error(__FILE__, __LINE__, fmt::format("{} failed while assembling kernels: {}", call, std::strerror(errno)));
  }

  int descriptor_;
};

int run(const std::vector<std::string>& arguments, int output) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) internal_error(__FILE__, __LINE__, fmt::format("{} cannot be started: {}", arguments[0], std::strerror(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 and errno == EINTR) {
  }
  return status;
}

constexpr int kOldestRelease = 1108;

}  // namespace

std::optional<std::string> find_ptxas() {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("PATH"); path != nullptr) folders = split(path, ':');
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr and *home != '\0') folders.push_back(std::string(home) + "/bin");
  folders.emplace_back("/usr/local/cuda/bin");
  for (const std::string& folder : folders) {
    std::string file = folder + "/ptxas";
    if (not folder.empty() and access(file.c_str(), X_OK) == 0 and release_of(file) >= kOldestRelease) return file;
  }
  return std::nullopt;
}

int ptxas_release(std::string_view text) {
  constexpr std::string_view kWord = "release ";
  const std::size_t at = text.find(kWord);
  if (at == std::string_view::npos) return 0;
  const char *from = text.data() + at + kWord.size(), *end = text.data() + text.size();
  int major = 0, minor = 0;
  const auto [dot, error] = std::from_chars(from, end, major);
  if (error != std::errc() or dot == end or *dot != '.' or std::from_chars(dot + 1, end, minor).ec != std::errc()) return 0;
  return major >= 0 and major < 1000 and minor >= 0 and minor < 100 ? 100 * major + minor : 0;
}

int release_of(const std::string& ptxas) {
  const SharedFile version("version.txt");
  return run({ptxas, "--version"}, version.descriptor()) == 0 ? ptxas_release(version.read()) : 0;
}

Assembled assemble(const std::string& ptxas, std::string_view ptx, const std::string& gpu) {
  const SharedFile source("kernels.ptx"), object("kernels.cubin"), report("ptxas.txt");
  source.write(ptx);
  const int status = run({ptxas, "-v", "-arch=" + gpu, source.path(), "-o", object.path()}, report.descriptor());
  Assembled assembled{.cubin = {}, .report = report.read()};
  HONE_CHECK(status == 0, fmt::format("ptxas refuses the kernels for {}: {}", gpu, printable(assembled.report, 2000)));
  const std::string bytes = object.read();
  assembled.cubin.resize(bytes.size());
  std::memcpy(assembled.cubin.data(), bytes.data(), bytes.size());
  return assembled;
}

}  // namespace hone
