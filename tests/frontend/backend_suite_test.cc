// ONNX's backend node cases through import and interpreter: every case whose operators are there passes, but for those listed with a reason
// (tests/support/backend_cases/suite.cc). HONE_CASES=PATTERN ("test_conv_*") runs those cases only, and says what the others lack.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/backend_cases/suite.h"

namespace hone::test {
namespace {

/// Passed when this was written; more operators, more cases.
constexpr int kAtLeast = 1750;
/// Of them, those whose small inputs had to be known when compiling.
constexpr int kFixedAtMost = 18;

TEST(BackendSuite, CasesOfSupportedOperatorsPass) {
  const std::vector<std::string> names = backend_case_names();
  if (names.empty()) GTEST_SKIP() << "ONNX's backend cases are not beside the repository";
  const Tally tally = expect_cases_pass(names, run_interpreted);
  fmt::print("{}\n", tally.text());
  if (std::getenv("HONE_CASES") != nullptr) return;
  EXPECT_GE(tally.passed, kAtLeast);
  EXPECT_LE(tally.fixed, kFixedAtMost);
}

}  // namespace
}  // namespace hone::test
