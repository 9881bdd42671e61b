#include "tests/collective/faults.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace hone::test {

namespace {

class File {
 public:
  explicit File(int number) : number_(number) {}
  ~File() {
    if (number_ >= 0) close(number_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

/// Is it connected to another, over TCP? What goes over loopback is the launcher's: MPI leaves that out between processes, and the way from a process to what launched it does not leave the machine.
bool is_connection(int socket) {
  int type = 0;
  socklen_t size = sizeof type;
  sockaddr_storage peer{};
  socklen_t peer_size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 or type != SOCK_STREAM) return false;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0 or peer.ss_family != AF_INET) return false;
  return ntohl(reinterpret_cast<const sockaddr_in&>(peer).sin_addr.s_addr) >> 24 != 127;
}

/// Another number for what the process has under `number`.
int taken_from(int process, int number) { return static_cast<int>(syscall(SYS_pidfd_getfd, process, number, 0)); }

/// Does the thread run no more? "PID (NAME) STATE ..."
bool is_stopped(const std::filesystem::path& thread) {
  std::ifstream file(thread / "stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t name_end = text.rfind(") ");
  return name_end == std::string::npos or std::string_view("TtZX").find(text[name_end + 2]) != std::string_view::npos;
}

/// While it lives, no thread of the process runs.
class Stopped {
 public:
  explicit Stopped(pid_t process) : process_(process) {
    kill(process_, SIGSTOP);
    std::error_code gone;
    for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process_), gone))
      for (int i = 0; i < 1000 and not is_stopped(thread.path()); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~Stopped() { kill(process_, SIGCONT); }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

 private:
  pid_t process_;
};

}  // namespace

bool can_reach_into_processes() {
  const File self(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  if (self.number() < 0) return false;
  const File taken(taken_from(self.number(), 2));
  return taken.number() >= 0 and File(open("/proc/self/mem", O_RDWR | O_CLOEXEC)).number() >= 0;
}

int close_connections(pid_t process) {
  const File owner(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  int closed = 0;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process), gone)) {
    const File taken(taken_from(owner.number(), std::stoi(entry.path().filename().string())));
    if (taken.number() >= 0 and is_connection(taken.number()) and shutdown(taken.number(), SHUT_RDWR) == 0) ++closed;
  }
  return closed;
}

int flip_bit(pid_t process, std::span<const std::byte> bytes) {
  const Stopped stopped(process);  // else a copy may be freed, and its place used for something else, before the bit is written
  const File memory(open(fmt::format("/proc/{}/mem", process).c_str(), O_RDWR | O_CLOEXEC));
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  int flipped = 0;
  for (std::string line; std::getline(maps, line);) {  // BEGIN-END rw-p OFFSET DEVICE INODE [PATH]
    std::istringstream words(line);
    std::size_t begin = 0, end = 0, inode = 0;
    char dash = 0;
    std::string rights, offset, device;
    words >> std::hex >> begin >> dash >> end >> rights >> offset >> device >> std::dec >> inode;
    if (not rights.starts_with("rw") or inode != 0) continue;
    std::vector<std::byte> content(end - begin);
    const ssize_t got = pread(memory.number(), content.data(), content.size(), static_cast<off_t>(begin));
    if (got <= 0) continue;
    content.resize(static_cast<std::size_t>(got));
    for (auto at = content.begin(); (at = std::search(at, content.end(), bytes.begin(), bytes.end())) != content.end(); ++at) {
      const auto middle = at + static_cast<std::ptrdiff_t>(bytes.size() / 2);  // a copy may just have been freed, and its ends be the allocator's
      const std::byte changed = *middle ^ std::byte{1};
      flipped += pwrite(memory.number(), &changed, 1, static_cast<off_t>(begin) + (middle - content.begin())) == 1 ? 1 : 0;
    }
  }
  return flipped;
}

}  // namespace hone::test
