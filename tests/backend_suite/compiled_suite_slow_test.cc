// Every case, compiled and run. In shards, so that ctest runs them side by side.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/backend_suite/compiled_suite.h"

namespace hone::test {
namespace {

constexpr std::size_t kShards = 16;

class CompiledSuite : public testing::TestWithParam<std::size_t> {
 public:
  static void TearDownTestSuite() { fmt::print("compiled: {}\n", total.text()); }
  static Tally total;  ///< of the shards that ran in this process
};
Tally CompiledSuite::total;

TEST_P(CompiledSuite, ShardPasses) {
  const std::vector<std::string> names = shard_of_cases(GetParam(), kShards);
  if (names.empty()) GTEST_SKIP() << "no cases: ONNX's backend cases are not beside the repository, or HONE_CASES leaves none to this shard";
  total += expect_cases_pass(names, run_compiled);
}

INSTANTIATE_TEST_SUITE_P(, CompiledSuite, testing::Range(std::size_t{0}, kShards));

/// The program for GPUs, played by the host.
class SimulatedSuite : public testing::TestWithParam<std::size_t> {};

TEST_P(SimulatedSuite, ShardPasses) {
  const std::vector<std::string> names = shard_of_cases(GetParam(), kShards);
  if (names.empty()) GTEST_SKIP() << "no cases: ONNX's backend cases are not beside the repository, or HONE_CASES leaves none to this shard";
  fmt::print("simulated: {}\n", expect_cases_pass(names, run_simulated).text());
}

INSTANTIATE_TEST_SUITE_P(, SimulatedSuite, testing::Range(std::size_t{0}, kShards));

}  // namespace
}  // namespace hone::test
