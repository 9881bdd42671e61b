// Every recorded training run, fused and unfused, on one thread and on two; and every recorded model's own gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/golden/recorded_run.h"
#include "tests/support/tools/run_tool.h"

namespace hone::test {
namespace {

using ::testing::ContainsRegex;

class Golden : public testing::TestWithParam<std::string> {};

const PassChoice kUnfused("fold,simplify,cse,dce,loops,layout,library"), kNoPass("none");
constexpr int kTries = 2;  // their sums are not in the order in which the default plan was found to hold

TEST_P(Golden, TrainsAsItsFrameworkOnOneThread) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  expect_trains_as_recorded(GetParam(), {.threads = 1});
}

TEST_P(Golden, TrainsAsItsFrameworkOnTwoThreads) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  expect_trains_as_recorded(GetParam(), {.threads = 2});
}

TEST_P(Golden, TrainsUnfusedAsItsFrameworkOnOneThread) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  expect_trains_as_recorded(GetParam(), {.threads = 1, .passes = kUnfused, .tries = kTries});
}

TEST_P(Golden, TrainsUnfusedAsItsFrameworkOnTwoThreads) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  expect_trains_as_recorded(GetParam(), {.threads = 2, .passes = kUnfused, .tries = kTries});
}

TEST_P(Golden, TrainsAsItsFrameworkWithoutAnyPass) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  expect_trains_as_recorded(GetParam(), {.threads = 2, .passes = kNoPass, .tries = kTries});
}

INSTANTIATE_TEST_SUITE_P(, Golden, testing::ValuesIn(recorded(Recorded::kRuns)), [](const auto& info) { return info.param; });

class GoldenModel : public testing::TestWithParam<std::string> {};

TEST_P(GoldenModel, GradientsAgreeWithDifferences) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  const TempFolder folder;
  write_recorded(folder, GetParam());
  const ToolRun run = run_well(folder.path(), "hone-compile model.onnx --check-grad -r train.toml");
  EXPECT_THAT(run.out, ContainsRegex("all [0-9]+ gradients agree"));
}

INSTANTIATE_TEST_SUITE_P(, GoldenModel, testing::ValuesIn(recorded(Recorded::kModels)), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::test
