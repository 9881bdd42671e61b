#include "tests/support/tools/run_tool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "base/text.h"
#include "tests/support/host_level.h"
#include "tests/support/temp_folder.h"

extern char** environ;

namespace hone::test {

namespace {

struct CommandLine {
  std::vector<std::string> words;
  std::string out;  ///< where standard output goes, if the command says so
};

CommandLine parse_command(const std::string& command) {
  CommandLine line;
  std::vector<std::string> words = split(command, ' ');
  std::erase(words, "");
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == ">" and i + 1 < words.size()) line.out = words[++i];
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
  std::vector<std::string> result = {"HONE_THREADS=1", "HONE_LEVELS=" + host_level()};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::strncmp(*variable, "HONE_", 5) != 0) result.emplace_back(*variable);
  return result;
}

}  // namespace

ToolRun run_tool(const std::string& folder, const std::string& command) {
  const TempFolder captured;
  CommandLine line = parse_command(command);
  std::vector<std::string> variables = environment();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  const std::string out = line.out.empty() ? captured / "out" : line.out, err = captured / "err";
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int problem = posix_spawn(&child, line.words[0].c_str(), &actions, nullptr, pointers(line.words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) throw std::runtime_error("cannot run " + line.words[0] + ": " + std::strerror(problem));
  int status = 0;
  rusage used{};
  if (wait4(child, &status, 0, &used) != child) throw std::runtime_error("lost " + line.words[0]);
  const int exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; };
  return {exit, line.out.empty() ? captured.read("out") : "", captured.read("err"), static_cast<double>(used.ru_maxrss) / 1024,
          seconds(used.ru_utime) + seconds(used.ru_stime)};
}

ToolRun run_well(const std::string& folder, const std::string& command) {
  ToolRun run = run_tool(folder, command);
  EXPECT_EQ(run.exit, 0) << command << "\n" << run.err;
  return run;
}

}  // namespace hone::test
