#include "tests/support/tools/run_tool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "base/text.h"
#include "tests/support/temp_folder.h"

extern char** environ;

namespace hone::test {

namespace {

struct CommandLine {
  std::vector<std::string> variables;  ///< of the environment, NAME=VALUE
  std::vector<std::string> words;
  std::string in = "/dev/null", out;  ///< where standard input comes from and output goes, if the command says so
};

CommandLine parse_command(const std::string& command) {
  CommandLine line;
  std::vector<std::string> words = split(command, ' ');
  std::erase(words, "");
  for (std::string& word : words)
    if (word == "''") word.clear();
  while (not words.empty() and words[0].find('=') != std::string::npos) {
    line.variables.push_back(words[0]);
    words.erase(words.begin());
  }
  for (std::size_t i = 0; i < words.size(); ++i)
    if ((words[i] == ">" or words[i] == "<") and i + 1 < words.size()) (words[i] == ">" ? line.out : line.in) = words[i + 1], ++i;
    else line.words.push_back(words[i]);
  line.words.at(0) = std::string(HONE_BIN_DIR) + "/" + line.words.at(0);
  return line;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// What the tools themselves would read from outside, and what makes threads wait for each other, is left out; so is code for other processors.
std::vector<std::string> environment() {
  std::vector<std::string> result = {"HONE_THREADS=1", "HONE_LEVELS=native"};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::strncmp(*variable, "HONE_", 5) != 0) result.emplace_back(*variable);
  return result;
}

pid_t start(const std::string& folder, CommandLine& line, const std::string& out, const std::string& err) {
  std::vector<std::string> variables = environment();
  variables.insert(variables.end(), line.variables.begin(), line.variables.end());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, 0, line.in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGHUP);  // whatever it does to the tests
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int problem = posix_spawn(&child, line.words[0].c_str(), &actions, &attributes, pointers(line.words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (problem != 0) throw std::runtime_error("cannot run " + line.words[0] + ": " + std::strerror(problem));
  return child;
}

ToolRun wait_for(pid_t child) {
  int status = 0;
  rusage used{};
  if (wait4(child, &status, 0, &used) != child) throw std::runtime_error("lost a tool");
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), "", "", static_cast<double>(used.ru_maxrss) / 1024,
          seconds(used.ru_utime) + seconds(used.ru_stime)};
}

/// The side of a terminal on which a person would sit.
struct Terminal {
  explicit Terminal(int columns) {
    if (side < 0 or grantpt(side) != 0 or unlockpt(side) != 0) throw std::runtime_error("no pseudo-terminal");
    resize(columns);
  }
  ~Terminal() { close(side); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  void resize(int columns) const {
    const winsize size = {.ws_row = 24, .ws_col = static_cast<unsigned short>(columns), .ws_xpixel = 0, .ws_ypixel = 0};
    if (ioctl(side, TIOCSWINSZ, &size) != 0) throw std::runtime_error("the terminal keeps its size");
  }
  int side = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
};

}  // namespace

ToolRun run_tool(const std::string& folder, const std::string& command) {
  const TempFolder captured;
  CommandLine line = parse_command(command);
  ToolRun result = wait_for(start(folder, line, line.out.empty() ? captured / "out" : line.out, captured / "err"));
  if (line.out.empty()) result.out = captured.read("out");
  result.err = captured.read("err");
  return result;
}

namespace {

/// Does so with the tool's process when `is_time` says it.
ToolRun run_until(const std::string& folder, const std::string& command, const std::function<void(pid_t)>& act, const std::function<bool(const std::string& err)>& is_time) {
  const TempFolder captured;
  CommandLine line = parse_command(command);
  const pid_t child = start(folder, line, captured / "out", captured / "err");
  siginfo_t state{};
  while (not is_time(captured.read("err")) and (waitid(P_PID, static_cast<id_t>(child), &state, WEXITED | WNOHANG | WNOWAIT), state.si_pid == 0)) usleep(200);
  act(child);  // it has not been waited for, so the number is its own still
  ToolRun result = wait_for(child);
  result.out = captured.read("out");
  result.err = captured.read("err");
  return result;
}

/// It says these words, or has had a minute to do so.
std::function<bool(const std::string& err)> said(const std::string& words) {
  return [words, begin = std::chrono::steady_clock::now()](const std::string& err) {
    return err.find(words) != std::string::npos or std::chrono::steady_clock::now() - begin > std::chrono::minutes(1);
  };
}

}  // namespace

ToolRun run_and_signal(const std::string& folder, const std::string& command, double seconds, int signal) {
  const auto begin = std::chrono::steady_clock::now();
  return run_until(folder, command, [&](pid_t child) { kill(child, signal); }, [&](const std::string&) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >= seconds; });
}

ToolRun run_and_signal_at(const std::string& folder, const std::string& command, const std::string& words, int signal) {
  return run_until(folder, command, [&](pid_t child) { kill(child, signal); }, said(words));
}

ToolRun run_and_act_at(const std::string& folder, const std::string& command, const std::string& words, const std::function<void()>& act) {
  return run_until(folder, command, [&](pid_t) { act(); }, said(words));
}

ToolRun run_on_terminal(const std::string& folder, const std::string& command, int columns, const std::function<int(const std::string&)>& columns_now) {
  const TempFolder captured;
  CommandLine line = parse_command(command);
  const Terminal terminal(columns);
  const pid_t child = start(folder, line, captured / "out", ptsname(terminal.side));
  std::string shown;
  char piece[4096];
  for (ssize_t count = 0; (count = read(terminal.side, piece, sizeof piece)) > 0;) {  // fails when nobody has the other side open any more
    shown.append(piece, static_cast<std::size_t>(count));
    if (columns_now) terminal.resize(columns_now(shown));
  }
  ToolRun result = wait_for(child);
  result.out = captured.read("out");
  result.err = shown;
  EXPECT_EQ(result.exit, 0) << command << "\n" << result.err;
  return result;
}

ToolRun run_well(const std::string& folder, const std::string& command) {
  ToolRun run = run_tool(folder, command);
  EXPECT_EQ(run.exit, 0) << command << "\n" << run.err;
  return run;
}

}  // namespace hone::test
