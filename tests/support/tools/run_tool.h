// Runs the tools as a user does: as processes, in a folder, by a command line.
#pragma once

#include <functional>
#include <string>

namespace hone::test {

struct ToolRun {
  int exit = 0;         ///< the exit code; 128 + N if signal N ended it
  std::string out;      ///< standard output
  std::string err;      ///< standard error
  double peak_mib = 0;  ///< the most memory that it held at once
  double seconds = 0;   ///< of processor time
};

/// Runs `command` in `folder`: words between blanks, the first one a tool of this build ("hone-run"), before it perhaps variables of its environment (NAME=VALUE); "> FILE" at the end sends standard output to FILE, and "< FILE" takes standard input from there.
/// One thread, so that tests may run side by side; no terminal.
ToolRun run_tool(const std::string& folder, const std::string& command);

/// run_tool() with a test failure, which shows what was said, when the exit code is not 0.
ToolRun run_well(const std::string& folder, const std::string& command);

/// As run_tool(), and sends it `signal` when it has run for so many seconds, if it still runs then.
ToolRun run_and_signal(const std::string& folder, const std::string& command, double seconds, int signal);
/// As run_tool(), and sends it `signal` when what it says on standard error contains `words`, or, if it never says them, after a minute.
ToolRun run_and_signal_at(const std::string& folder, const std::string& command, const std::string& words, int signal);

/// As run_tool(), and calls `act` at that moment.
ToolRun run_and_act_at(const std::string& folder, const std::string& command, const std::string& words, const std::function<void()>& act);

/// As run_well(), with standard error on a terminal of so many columns. `columns_now`, if given, is asked with all that was shown so far after each output, and
/// decides how wide the terminal is from then on. What was shown is in `err`, with the terminal's line ends ("\r\n").
ToolRun run_on_terminal(const std::string& folder, const std::string& command, int columns, const std::function<int(const std::string&)>& columns_now = {});

}  // namespace hone::test
