// All recorded models, compiled for GPUs and played by the host, train as in their framework.
#include <gtest/gtest.h>

#include "tests/golden/recorded_run.h"

namespace hone::test {
namespace {

class AllOnSim : public testing::TestWithParam<std::string> {};

TEST_P(AllOnSim, TrainsAsItsFramework) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  constexpr int kTries = 2;  // its sums are not in the order in which the plan for the cpu was found to hold
  expect_trains_as_recorded(GetParam(), {.tries = kTries, .target = "sim"});
}

INSTANTIATE_TEST_SUITE_P(, AllOnSim, testing::ValuesIn(recorded(Recorded::kRuns)), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::test
