// A wrong input, and what must come of it: the exit code, a message that helps, and no trace in the file system.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace hone::test {

struct ErrorCase {
  const char* name;
  std::string command;                                  ///< as run_tool() takes it
  int exit;                                             ///< DESIGN.md, section 7
  std::vector<std::string> says;                        ///< parts of the message: what, where, why, a way out
  std::function<void(const TempFolder&)> prepare = {};  ///< writes the inputs
  std::vector<std::string> leaves = {};                 ///< names that may be new afterwards
};

/// Runs the command twice (in bounded memory and time): where its output does not exist, which it must not create, and where it does, which must stay as it was. Besides what the case
/// says, every message has an error code whose kind is that of the exit code and a note, and shows nothing of Hone's own insides.
void check_error_case(const ErrorCase& wrong);

/// The message says a way out, and shows nothing of Hone's own insides, such as the expression that found it.
void expect_helpful(const std::string& message);

std::ostream& operator<<(std::ostream& stream, const ErrorCase& wrong);

}  // namespace hone::test

/// One test for each ErrorCase of the table `cases`.
#define HONE_ERROR_CASES(Suite, cases)                                                           \
  class Suite : public ::testing::TestWithParam<::hone::test::ErrorCase> {};                     \
  TEST_P(Suite, SaysWhatIsWrongAndLeavesNothing) { ::hone::test::check_error_case(GetParam()); } \
  INSTANTIATE_TEST_SUITE_P(Wrong, Suite, ::testing::ValuesIn(cases), [](const auto& each) { return std::string(each.param.name); })
