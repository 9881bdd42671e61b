#include "tools/bus_errors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "base/diag.h"

namespace hone {

namespace {

// Everything below on_bus_error() runs in a signal handler: no memory is taken, and nothing is called that may wait for a lock.

/// Texts that are made beforehand.
struct Message {
  char before[64], behind[512];
};
Message message;
std::atomic_flag is_said;

/// A line of /proc/self/maps: "7f00-7f80 r--p 00000000 fe:01 1234    /data/x.npy".
struct MapsLine {
  char text[PATH_MAX + 128];
  std::size_t size = 0;

  bool holds(std::uintptr_t address) const {
    std::uintptr_t begin = 0, end = 0;
    const char* const last = text + size;
    const auto [dash, problem] = std::from_chars(text, last, begin, 16);
    return problem == std::errc{} and dash != last and std::from_chars(dash + 1, last, end, 16).ec == std::errc{} and begin <= address and address < end;
  }
  /// Of a file that is mapped to be read alone, as MappedFile does; else empty.
  std::string_view path() const {
    const std::string_view line(text, size);
    const std::size_t slash = line.find('/');
    return slash == std::string_view::npos or line.find(" r--p ") > slash ? "" : line.substr(slash);
  }
};

bool find_line(std::uintptr_t address, MapsLine& line) {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  char piece[1024];
  for (ssize_t count; (count = read(file, piece, sizeof piece)) > 0;) {
    for (const char c : std::string_view(piece, static_cast<std::size_t>(count))) {
      if (c != '\n') {
        if (line.size < sizeof line.text) line.text[line.size++] = c;
      } else if (line.holds(address)) {
        close(file);
        return true;
      } else {
        line.size = 0;
      }
    }
  }
  close(file);
  return false;
}

void say(std::string_view text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // then nobody listens
}

extern "C" void on_bus_error(int, siginfo_t* info, void*) {
  MapsLine line;
  const bool is_found = find_line(reinterpret_cast<std::uintptr_t>(info->si_addr), line);
  if (not is_found or line.path().empty()) {
    std::signal(SIGBUS, SIG_DFL);  // and what led here happens again
    return;
  }
  while (is_said.test_and_set()) pause();  // another thread says it, and ends this one, too
  say(message.before);
  say(line.path());
  say(message.behind);
  std::_Exit(exit_code(Code::kFileRead));
}

}  // namespace

void say_bus_errors(std::string_view tool) {
  const bool is_terminal = isatty(STDERR_FILENO) != 0;  // where a line that shows the progress has not ended
  *fmt::format_to_n(message.before, sizeof message.before - 1, "{}error[{}]: cannot read ", is_terminal ? "\n" : "", to_string(Code::kFileRead)).out = '\0';
  *fmt::format_to_n(message.behind, sizeof message.behind - 1,
                    ": what was there when it was opened is gone\n  note: something has shortened the file while it was read, or its disk has failed (see dmesg); a run folder's checkpoints are whole, and with the file "
                    "as it was --resume goes on from them\n  more: {} --explain {}\n",
                    tool, to_string(Code::kFileRead))
       .out = '\0';
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace hone
