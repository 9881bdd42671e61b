#include "benchmarks/training/child.h"

#include <fmt/format.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <set>

#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"

extern char** environ;

namespace hone::benchmarks {

namespace {

std::string own_folder() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  return length <= 0 ? "." : folder_of(std::string(path.data(), static_cast<std::size_t>(length)));
}

/// A file without a name, for what a child writes: it may write much, and nobody reads until it has ended.
class Capture {
 public:
  Capture() : file_(memfd_create("output", MFD_CLOEXEC)) {}
  ~Capture() { close(file_); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  int file() const { return file_; }
  std::string text() const {
    std::string text;
    std::array<char, 65536> block{};
    for (ssize_t count; (count = pread(file_, block.data(), block.size(), static_cast<off_t>(text.size()))) > 0;) text.append(block.data(), static_cast<std::size_t>(count));
    return text;
  }

 private:
  int file_;
};

}  // namespace

ChildRun run_beside(const std::vector<std::string>& words) {
  const std::string program = own_folder() + "/" + words.at(0);
  std::vector<std::string> texts = words;
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  const Capture out, messages;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out.file(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, messages.file(), STDERR_FILENO);
  const auto begin = std::chrono::steady_clock::now();
  pid_t child = 0;
  const int problem = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0)
    throw Error(Code::kUsage, fmt::format("cannot start {}: {}", quoted(program), std::strerror(problem)), {}, {"build all tools: they must lie beside this program"});
  int status = 0;
  while (waitpid(child, &status, 0) < 0 and errno == EINTR) {}
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  if (not WIFEXITED(status) or WEXITSTATUS(status) != 0)
    throw Error(Code::kFileRead, fmt::format("{} ended with {}:\n{}", words.at(0), WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), messages.text()));
  return {out.text(), elapsed.count()};
}

void bind_to_cores(std::int64_t count) {
  cpu_set_t allowed, chosen;
  CPU_ZERO(&chosen);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  std::set<std::string> seen;
  for (int cpu = 0; cpu < CPU_SETSIZE and static_cast<std::int64_t>(seen.size()) < count; ++cpu) {
    if (not CPU_ISSET(cpu, &allowed)) continue;
    std::string siblings = std::to_string(cpu);
    std::ifstream(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu)) >> siblings;
    if (seen.insert(siblings).second) CPU_SET(cpu, &chosen);
  }
  if (static_cast<std::int64_t>(seen.size()) == count) sched_setaffinity(0, sizeof(chosen), &chosen);
}

}  // namespace hone::benchmarks
