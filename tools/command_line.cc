#include "tools/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/other_names.h"
#include "base/recipe.h"
#include "base/text.h"
#include "tools/bus_errors.h"
#include "tools/error_pages.h"

namespace hone {

namespace {

constexpr int kInternalExit = 70;  // EX_SOFTWARE of sysexits.h
constexpr int kMemoryExit = 6;
constexpr std::string_view kNoValue = "{}";  // what CLI11 gives for a value that was left out

bool is_argument(const Flag& flag) { return not flag.name.starts_with('-'); }

/// "--log-every" of "-l,--log-every"
std::string long_name(const Flag& flag) { return flag.name.substr(flag.name.rfind(',') + 1); }

std::string environment_name(const Flag& flag) {
  std::string name = "HONE_";
  for (const char c : long_name(flag).substr(2)) name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

/// The parser takes the largest number for larger ones, and says no more than "a number" of one with a point.
std::string not_whole(const std::string& text) {
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error == std::errc::result_out_of_range) return fmt::format("{} is beyond all numbers that are taken", quoted(text));
  if (error == std::errc{} and *end == '.') return fmt::format("a whole number is expected, and {} was found", quoted(text));
  return "";
}

CLI::Option* add_option(CLI::App& app, const Flag& flag) {
  const std::string& name = flag.name;
  return std::visit(
      [&](auto* target) -> CLI::Option* {
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (std::is_same_v<T, bool>) {
          return app.add_flag(name, *target, flag.doc);
        } else if constexpr (std::is_same_v<T, std::optional<std::int64_t>>) {
          return app.add_option_function<std::int64_t>(name, [target](const std::int64_t& value) { *target = value; }, flag.doc)->check(not_whole);
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          return app.add_option(name, *target, flag.doc)->capture_default_str()->check(not_whole);
        } else if constexpr (std::is_same_v<T, std::optional<std::string>>) {
          const auto take = [target](const CLI::results_t& values) { return *target = values.empty() or values[0] == kNoValue ? "" : values[0], true; };
          return app.add_option(name, take, flag.doc)->expected(0, 1);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          return app.add_option(name, *target, flag.doc)->type_size(1)->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args(false);
        } else {
          return app.add_option(name, *target, flag.doc)->capture_default_str();
        }
      },
      flag.target);
}

/// `is_meant`: the environment is asked for the flags of that command alone. Commands share what their flags set, and what another one reads from there would overwrite what was typed.
void add_flags(CLI::App& app, const Command& command, bool is_meant) {
  for (const Flag& flag : command.flags) {
    CLI::Option* option = add_option(app, flag);
    if (not std::holds_alternative<bool*>(flag.target)) option->type_name(flag.value);
    if (is_meant and not is_argument(flag)) option->envname(environment_name(flag));
    if (flag.required) option->required();
  }
  app.allow_extras();  // what is left over is reported by refuse_extras(), with the nearest flag
}

/// "hone-run train"
std::string words_of(const Tool& tool, const std::string& command) { return command.empty() ? tool.name : tool.name + " " + command; }

[[noreturn]] void usage_error(const Tool& tool, const std::string& command, std::string message, std::string note = "") {
  if (note.empty()) note = fmt::format("see {} --help", words_of(tool, command));
  throw Error(Code::kUsage, std::move(message), {}, {std::move(note)});
}

/// The flag of the command that has this name among its own, or null.
const Flag* find_flag(const Command& command, std::string_view name) {
  for (const Flag& flag : command.flags)
    for (const std::string& each : split(flag.name, ','))
      if (not is_argument(flag) and each == name) return &flag;
  return nullptr;
}

/// "--train NAME=FILE,..."
std::string with_value(const Flag& flag) { return long_name(flag) + (flag.value.empty() ? "" : " " + flag.value); }

/// "did you mean --train NAME=FILE,...? (data to train on)"
std::string flag_meant(const Flag& flag) { return fmt::format("did you mean {}? ({})", with_value(flag), flag.doc); }

/// For a flag that the command has not: what another name for it, another command or the recipe calls so, or is spelled like it.
std::string hint_for_flag(const Tool& tool, const Command& command, const std::string& name) {
  for (const std::string& other : split(flags_for_other_name(name), ' '))
    if (const Flag* flag = find_flag(command, other)) return flag_meant(*flag);
  const bool says_where_to = name == "-o" or name == "--out" or flags_for_other_name(name).starts_with("--out");
  if (says_where_to and find_flag(command, "--out") == nullptr) return fmt::format("{} writes to standard output: put > FILE behind the command", tool.name);
  std::vector<std::string> known = {"--help"}, commands;
  for (const Flag& flag : command.flags)
    if (not is_argument(flag))
      for (const std::string& each : split(flag.name, ',')) known.push_back(each);
  for (const Command& each : tool.commands)
    if (find_flag(each, name) != nullptr) commands.push_back(words_of(tool, each.name));
  if (not commands.empty()) return fmt::format("it is a flag of {}", join(commands, ", "));
  std::string word = name.substr(std::min(name.size(), name.find_first_not_of('-')));
  std::ranges::replace(word, '-', '_');
  if (const Flag* set = find_flag(command, "--set"); set != nullptr and not word.empty()) {
    for (const RecipeKey& key : recipe_keys())
      if (key.name.substr(key.name.rfind('.') + 1) == word or key.name == word + ".kind" or key.name == word + ".list") return fmt::format("the recipe says it: --set {}=VALUE", key.name);
    const std::string other = hint_for_other_name("recipe", word);
    if (not other.empty()) return fmt::format("the recipe says it (--set KEY=VALUE): {}", other);
  }
  return did_you_mean(name, known);
}

/// For an argument too many: a flag whose value looks like that.
std::string hint_for_argument(const Command& command, const std::string& argument) {
  const std::size_t dot = argument.rfind('.');
  for (const Flag& flag : command.flags) {
    if (is_argument(flag)) continue;
    const bool same_ending = dot != std::string::npos and dot + 2 < argument.size() and flag.value.ends_with(argument.substr(dot)), is_named = flag.value.starts_with("NAME=FILE") and flag.required;
    if (same_ending or is_named) return flag_meant(flag);
  }
  return "";
}

std::vector<std::string> names_of_commands(const Tool& tool) {
  std::vector<std::string> names;
  for (const Command& command : tool.commands)
    if (not command.name.empty()) names.push_back(command.name);
  return names;
}

/// The first argument that nothing took; `first` is the tool's first one.
void refuse_extras(const Tool& tool, const Command& command, std::string_view first, const std::vector<std::string>& extras) {
  if (extras.empty()) return;
  const auto flag_like = std::find_if(extras.begin(), extras.end(), [](const std::string& extra) { return extra.starts_with('-') and extra.size() > 1; });
  const std::string words = words_of(tool, command.name);
  if (flag_like == extras.end()) {
    std::string hint = hint_for_argument(command, extras[0]);
    usage_error(tool, command.name, fmt::format("{}: {} is one argument too many", words, quoted(extras[0])), hint.empty() ? did_you_mean(first, names_of_commands(tool)) : std::move(hint));
  }
  const std::string name = flag_like->substr(0, flag_like->find('='));
  usage_error(tool, command.name, fmt::format("{} has no flag {}", words, quoted(name)), hint_for_flag(tool, command, name));
}

/// A variable of the shell that is not set gives an empty value, which would count as none.
void refuse_empty(const Tool& tool, const Command& command, const CLI::App& parser) {
  for (const Flag& flag : command.flags) {
    const auto* const* text = std::get_if<std::string*>(&flag.target);
    if (text == nullptr or not (*text)->empty() or is_argument(flag)) continue;
    if (parser.get_option(long_name(flag))->count() > 0) usage_error(tool, command.name, fmt::format("{} is given nothing: its value is empty", long_name(flag)), fmt::format("leave it out, or say {}; is a variable of the shell not set?", with_value(flag)));
  }
}

/// What the parser says of a value, in our words: "Could not convert: --steps = abc", "--out: At Most 1 required but received 2".
std::string in_our_words(const CLI::ParseError& problem) {
  const std::string text = problem.what();
  constexpr std::string_view kNoNumber = "Could not convert: ", kMost = ": At Most 1 required but received ";
  if (const std::size_t equals = text.find(" = "); text.starts_with(kNoNumber) and equals != std::string::npos)
    return fmt::format("{} {}: expected a number", text.substr(kNoNumber.size(), equals - kNoNumber.size()), quoted(text.substr(equals + 3)));
  if (const std::size_t most = text.find(kMost); most != std::string::npos) return fmt::format("{} is given {} times, and takes one value", text.substr(0, most), text.substr(most + kMost.size()));
  return text;
}

/// What the parser says of a flag that is missing does not say what it is.
std::string hint_for_missing(const Tool& tool, const Command& command, std::string_view problem) {
  for (const Flag& flag : command.flags)
    if (flag.required and problem == long_name(flag) + " is required") return fmt::format("{}: {}; see {} --help", with_value(flag), flag.doc, words_of(tool, command.name));
  return "";
}

/// Is the flag among the command's words?
bool is_typed(const Command& command, const Flag& flag, int argc, const char* const* argv) {
  return std::any_of(argv + 1, argv + argc, [&](std::string_view word) { return find_flag(command, word.substr(0, word.find('='))) == &flag; });
}

/// What the environment says of the flag, where the command does not; else null.
const char* from_environment(const Command& command, const Flag& flag, int argc, const char* const* argv) {
  return is_argument(flag) or is_typed(command, flag, argc, argv) ? nullptr : std::getenv(environment_name(flag).c_str());
}

/// Those that were typed and say more of a flag that was not given. What the environment says is for many commands, so some have no use for it.
void note_idle_flags(const Command& command, const CLI::App& parser, int argc, const char* const* argv) {
  for (const Flag& flag : command.flags)
    if (not flag.for_flag.empty() and is_typed(command, flag, argc, argv) and parser.get_option(flag.for_flag)->count() == 0)
      print_message(fmt::format("note: {} changes nothing without {}, which is not given", long_name(flag), with_value(*find_flag(command, flag.for_flag))));
}

/// A value that the environment gives is no part of the command, where it would be looked for.
std::string hint_for_environment(const Command& command, int argc, const char* const* argv, std::string_view problem) {
  for (const Flag& flag : command.flags) {
    if (problem.find(long_name(flag)) == std::string_view::npos) continue;
    if (const char* value = from_environment(command, flag, argc, argv)) return fmt::format("the environment says so: {0}={1}; correct it, or unset {0}", environment_name(flag), printable(value));
  }
  return "";
}

/// A variable is one text: a flag that may be given several times has a line of it each time, and one whose value may be left out is a switch where it says so.
void read_environment(const Command& command, int argc, const char* const* argv) {
  for (const Flag& flag : command.flags) {
    const char* value = from_environment(command, flag, argc, argv);
    if (value == nullptr) continue;
    if (auto* const* list = std::get_if<std::vector<std::string>*>(&flag.target)) {
      **list = split(value, '\n');
      std::erase(**list, "");
    }
    if (auto* const* text = std::get_if<std::optional<std::string>*>(&flag.target); text != nullptr and (value == std::string_view("1") or value == std::string_view("true"))) **text = "";
  }
}

const Command* find_command(const Tool& tool, std::string_view name) {
  const auto found = std::find_if(tool.commands.begin(), tool.commands.end(), [&](const Command& command) { return command.name == name; });
  return found == tool.commands.end() ? nullptr : &*found;
}

/// The subcommand is looked at before the flags, so that a misspelled one is not taken for something else.
void check_subcommand(const Tool& tool, int argc, const char* const* argv) {
  if (find_command(tool, "") != nullptr) return;
  const std::vector<std::string> names = names_of_commands(tool);
  const std::string list = fmt::format("{} can {}; see {} --help", tool.name, join(names, ", "), tool.name);
  if (argc < 2) usage_error(tool, "", tool.name + ": what to do is missing", list);
  const std::string word = argv[1];
  if (word.starts_with('-') or find_command(tool, word) != nullptr) return;
  std::string hint = hint_for_other_name("command", word);
  if (hint.empty()) hint = did_you_mean(word, names);
  usage_error(tool, "", fmt::format("{} cannot {}", tool.name, quoted(word)), hint.empty() ? list : hint);
}

/// What --explain asks for, wherever it stands: it needs nothing else of the command.
std::optional<std::string> asked_codes(int argc, const char* const* argv) {
  constexpr std::string_view kFlag = "--explain";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") break;
    if (word == kFlag) return i + 1 < argc ? argv[i + 1] : "";
    if (word.starts_with(kFlag) and word.substr(kFlag.size()).starts_with('=')) return std::string(word.substr(kFlag.size() + 1));
  }
  return std::nullopt;
}

int parse_and_run(const Tool& tool, int argc, const char* const* argv) {
  if (const auto codes = asked_codes(argc, argv)) return print_data(explain_codes(*codes, tool.name)), 0;
  check_subcommand(tool, argc, argv);
  CLI::App app(tool.doc, tool.name);
  app.footer("--explain HN-0107 prints the page of an error code, --explain codes the list of them");
  app.set_version_flag("--version", fmt::format("{} {}", tool.name, HONE_VERSION));
  const std::string_view first = argc > 1 ? argv[1] : "";
  const Command* const named = first.empty() ? nullptr : find_command(tool, first);
  const Command* const nameless = find_command(tool, "");
  const Command& command = named != nullptr ? *named : nameless != nullptr ? *nameless : tool.commands[0];
  CLI::App* parser = &app;
  for (const Command& each : tool.commands) {  // of a nameless one the flags are the tool's, unless another one is meant
    if (each.name.empty() and named != nullptr) continue;
    CLI::App* const made = each.name.empty() ? &app : app.add_subcommand(each.name, each.doc);
    if (not each.name.empty() and nameless != nullptr and named == nullptr) continue;  // listed in the help alone: an argument of the nameless one is no command
    add_flags(*made, each, &each == &command);
    if (&each == &command) parser = made;
  }
  if (nameless == nullptr) app.require_subcommand(1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);  // --help, --version
    refuse_extras(tool, command, first, parser->remaining());
    std::string hint = hint_for_environment(command, argc, argv, problem.what());
    usage_error(tool, command.name, in_our_words(problem), hint.empty() ? hint_for_missing(tool, command, problem.what()) : std::move(hint));
  }
  refuse_extras(tool, command, first, parser->remaining());
  refuse_empty(tool, command, *parser);
  read_environment(command, argc, argv);
  note_idle_flags(command, *parser, argc, argv);
  try {
    return command.run();
  } catch (const Error& error) {  // what a flag says is checked there
    const Diag& problem = error.diags().front();
    const std::string hint = hint_for_environment(command, argc, argv, problem.message + " " + problem.loc.file);
    if (hint.empty()) throw;
    throw with_note(error, hint);
  }
}

}  // namespace

int run_tool(const Tool& tool, int argc, const char* const* argv) {
  say_bus_errors(tool.name);
  std::signal(SIGXFSZ, SIG_IGN);  // beyond the shell's limit for files (ulimit -f) writing fails with EFBIG, and is said like a full disk
  try {
    return parse_and_run(tool, argc, argv);
  } catch (const Error& error) {
    print_message(error.what() + hint_of_pages(error, tool.name));
    return error.exit_code();
  } catch (const InternalError& error) {
    print_message(error.what());
    return kInternalExit;
  } catch (const std::bad_alloc&) {
    print_message(
        fmt::format("error[{}]: there is not enough memory\n  note: take a smaller --batch, or a machine with more memory", to_string(Code::kMemory)));
    return kMemoryExit;
  } catch (const std::exception& error) {
    print_message(fmt::format("internal error: {}\n  note: this is a mistake in Hone; please report it with the command that led here", error.what()));
    return kInternalExit;
  }
}

void print_data(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() and std::fflush(stdout) == 0;
  if (not written)
    throw Error(Code::kFileWrite, fmt::format("cannot write to standard output: {}", std::strerror(errno)), {},
                {"was the reader of the pipe closed, or the disk full?"});
}

void print_message(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fputc('\n', stderr);
}

void check_batch_flag(std::int64_t batch) {
  if (batch < 0) throw Error(Code::kUsage, fmt::format("--batch {}: expected a number of samples", batch), {}, {"leave it out for the recipe's"});
}

namespace {

/// What an item of --dim says of a size; the same may be said twice.
template <typename Sizes>
void add_size(Sizes& sizes, const std::string& item, const typename Sizes::mapped_type& said) {
  const auto [before, is_new] = sizes.emplace(item.substr(0, item.find('=')), said);
  if (before->second != said) throw Error(Code::kUsage, fmt::format("--dim {}: it is given as {}, too", quoted(item), before->second), {}, {"leave one of them out"});
}

}  // namespace

std::map<std::string, std::string> take_equal_sizes(std::vector<std::string>& items) {
  std::map<std::string, std::string> equal;
  std::erase_if(items, [&](const std::string& item) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos or equals == 0 or equals + 1 == item.size() or not(std::isalpha(static_cast<unsigned char>(item[equals + 1])) or item[equals + 1] == '_')) return false;
    add_size(equal, item, item.substr(equals + 1));
    return true;
  });
  return equal;
}

DimBindings sizes_of_flag(const std::vector<std::string>& items, std::uint64_t least) {
  DimBindings sizes;
  for (const std::string& item : items) {
    const std::size_t equals = item.find('=');
    const auto size = equals == std::string::npos or equals == 0 ? std::nullopt : parse_bytes(item.substr(equals + 1));
    if (not size or *size < least) throw Error(Code::kUsage, fmt::format("--dim {}: expected NAME=NUMBER", quoted(item)), {}, {"for example --dim T=128"});
    add_size(sizes, item, checked_cast<std::int64_t>(*size, "--dim"));
  }
  return sizes;
}

std::int64_t bytes_of_flag(std::string_view flag, std::string_view text, std::string_view example) {
  const auto bytes = parse_bytes(text);
  if (not bytes or *bytes == 0) throw Error(Code::kUsage, fmt::format("{} {}: expected a number of bytes", flag, quoted(text)), {}, {fmt::format("for example {} {}", flag, example)});
  return checked_cast<std::int64_t>(*bytes, flag);
}

}  // namespace hone
