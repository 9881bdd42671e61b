#include "tests/errors/error_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/text.h"
#include "tests/support/tools/run_tool.h"

namespace hone::test {

namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kMostMib = 1024, kMostSeconds = 20;  // several times what the tools take for nothing at all, under sanitizers, too

using Contents = std::map<std::string, std::string>;

Contents contents_of(const TempFolder& folder, const std::vector<std::string>& but) {
  Contents contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    const std::string name = entry.path().lexically_relative(folder.path()).string();
    if (std::find(but.begin(), but.end(), split(name, '/')[0]) != but.end()) continue;
    std::error_code unreadable;  // a symbolic link to itself
    contents[name] = entry.is_regular_file(unreadable) ? folder.read(name) : "not a file";
  }
  return contents;
}

/// The files in the folder that the command would write.
std::vector<std::string> outputs_of(const std::string& command) {
  std::vector<std::string> outputs;
  const std::vector<std::string> words = split(command, ' ');
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if ((words[i] == "-o" or words[i] == "--out") and words[i + 1].find('/') == std::string::npos and words[i + 1] != "-") outputs.push_back(words[i + 1]);
  return outputs;
}

/// Each kind of problem has its own exit code: the hundreds digit of the error's code tells the kind.
void expect_matching_code(const std::string& message, int exit) {
  constexpr int kExitOfKind[] = {2, 3, 5, 4, 7, 10, 8, 6, 9};
  constexpr std::string_view kCode = "error[HN-";
  const std::size_t at = message.find(kCode);
  ASSERT_NE(at, std::string::npos) << "no error code in the message:\n" << message;
  const auto kind = static_cast<std::size_t>(std::stoi(message.substr(at + kCode.size(), 2)));
  ASSERT_LT(kind, std::size(kExitOfKind));
  EXPECT_EQ(kExitOfKind[kind], exit) << message;
}

void check_once(const ErrorCase& wrong, const TempFolder& folder) {
  const Contents before = contents_of(folder, wrong.leaves);
  const ToolRun run = run_tool(folder.path(), wrong.command);
  EXPECT_EQ(run.exit, wrong.exit) << run.err;
  EXPECT_EQ(run.out, "");
  for (const std::string& part : wrong.says) EXPECT_THAT(run.err, HasSubstr(part));
  expect_matching_code(run.err, wrong.exit);
  expect_helpful(run.err);
  EXPECT_LT(run.peak_mib, kMostMib) << "a wrong input must not take memory";
  EXPECT_LT(run.seconds, kMostSeconds) << "a wrong input must not take time";
  for (const auto& [name, content] : contents_of(folder, wrong.leaves)) {
    const auto old = before.find(name);
    EXPECT_TRUE(old != before.end()) << name << " was left behind";
    if (old != before.end()) EXPECT_TRUE(old->second == content) << name << " was changed";
  }
}

}  // namespace

void expect_helpful(const std::string& message) {
  EXPECT_THAT(message, HasSubstr("note: ")) << "the message shows no way out";
  EXPECT_THAT(message, Not(ContainsRegex(  // POSIX: std::regex trips gcc 12's warnings under sanitizers
                           R"(internal error|\.(cc|h):[0-9]+|0x[0-9a-f]{6,}|std::|operator\(\)|Assertion|terminate called|basic_string|_M_|what\(\)|#[0-9]+ )")));
}

void check_error_case(const ErrorCase& wrong) {
  const TempFolder folder;
  if (wrong.prepare) wrong.prepare(folder);
  check_once(wrong, folder);
  const std::vector<std::string> outputs = outputs_of(wrong.command);
  for (const std::string& output : outputs) folder.write(output, "what was there before");
  if (not outputs.empty() and not testing::Test::HasFailure()) check_once(wrong, folder);
}

std::ostream& operator<<(std::ostream& stream, const ErrorCase& wrong) { return stream << wrong.command; }

}  // namespace hone::test
