// Models as their exporters wrote them: they train as in their framework, and nothing is wrong with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/golden/recorded_run.h"
#include "tests/support/tools/run_tool.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, TrainsAsItsFramework) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  expect_trains_as_recorded(GetParam(), {.threads = 1});
}

INSTANTIATE_TEST_SUITE_P(Small, Golden, testing::ValuesIn(recorded(Recorded::kSmall)), [](const auto& info) { return info.param; });

class GoldenModel : public testing::TestWithParam<std::string> {};

TEST_P(GoldenModel, CheckFindsNoProblem) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  const TempFolder folder;
  write_recorded(folder, GetParam());
  for (const std::string recipe : {"", " -r train.toml"}) {
    const ToolRun run = run_well(folder.path(), "hone-compile model.onnx --check" + recipe);
    EXPECT_THAT(run.out, HasSubstr(" 0 are not reached by a gradient; 0 problems"));
  }
}

INSTANTIATE_TEST_SUITE_P(, GoldenModel, testing::ValuesIn(recorded(Recorded::kModels)), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::test
