// What all tools share: flags, messages, exit codes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dims.h"

namespace hone {

/// A flag, or an argument without one. Every flag can also be set by the environment: --log-every by HONE_LOG_EVERY; one that is given several times by lines of it, and one whose value is left out by 1.
struct Flag {
  using Target = std::variant<bool*, std::int64_t*, std::optional<std::int64_t>*, double*, std::string*, std::optional<std::string>*, std::vector<std::string>*>;
  std::string name;   ///< "--epochs", "-o,--out", or "PLAN" for an argument
  std::string value;  ///< what its value is called in the help: "E"; "" for a switch
  std::string doc;
  Target target;  ///< must live until the command has run; a list may be given several times, one value each; of an optional text the value may be left out, and is "" then
  bool required = false;
  std::string for_flag = {};  ///< the flag that it says more of, without which it changes nothing: "--run-dir"; a note says so
};

struct Command {
  std::string name;  ///< "train"; "" for a tool without subcommands
  std::string doc;
  std::vector<Flag> flags;
  std::function<int()> run;  ///< gives the exit code
};

struct Tool {
  std::string name;  ///< "hone-run"
  std::string doc;
  std::vector<Command> commands;
};

/// Parses, runs the command, and turns every exception into messages on standard error and an exit code: that of the Error; 70 for a mistake in Hone;
/// 6 when memory ran out; 2 for a wrong flag or value, naming the nearest right one. So is a mapped file that is shortened meanwhile (tools/bus_errors.h).
int run_tool(const Tool& tool, int argc, const char* const* argv);

/// Data for standard output, which is flushed. Throws Error kFileWrite.
void print_data(std::string_view text);
/// A line on standard error.
void print_message(std::string_view line);

/// What a flag says in bytes: "2GiB". Throws Error kUsage, with that example, for what is no number of bytes, or 0.
std::int64_t bytes_of_flag(std::string_view flag, std::string_view text, std::string_view example);

/// Takes --dim NAME=OTHER, a size that is another one of the model's, out of `items`. Throws Error kUsage for one that is said to be two others.
std::map<std::string, std::string> take_equal_sizes(std::vector<std::string>& items);

/// What --dim NAME=NUMBER says, each time that it is given. Throws Error kUsage for what is no such thing, and for less than `least`.
DimBindings sizes_of_flag(const std::vector<std::string>& items, std::uint64_t least = 0);

/// What --batch says, 0 where it is not given. Throws Error kUsage below that.
void check_batch_flag(std::int64_t batch);

}  // namespace hone
