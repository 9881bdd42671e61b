// One case in twenty-five, compiled and run: what is quick enough to run always.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/backend_suite/compiled_suite.h"

namespace hone::test {
namespace {

TEST(CompiledSuiteSample, Passes) {
  const std::vector<std::string> names = shard_of_cases(7, 25);
  if (names.empty()) GTEST_SKIP() << "ONNX's backend cases are not beside the repository";
  fmt::print("compiled: {}\n", expect_cases_pass(names, run_compiled).text());
}

/// The program for GPUs, played by the host.
TEST(SimulatedSuiteSample, Passes) {
  const std::vector<std::string> names = shard_of_cases(11, 50);
  if (names.empty()) GTEST_SKIP() << "ONNX's backend cases are not beside the repository";
  fmt::print("simulated: {}\n", expect_cases_pass(names, run_simulated).text());
}

}  // namespace
}  // namespace hone::test
