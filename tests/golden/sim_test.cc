// Small recorded models, compiled for GPUs and played by the host, train as in their framework.
#include <gtest/gtest.h>

#include "tests/golden/recorded_run.h"

namespace hone::test {
namespace {

class SmallOnSim : public testing::TestWithParam<const char*> {};

TEST_P(SmallOnSim, TrainsAsItsFramework) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  expect_trains_as_recorded(GetParam(), {.target = "sim"});
}

INSTANTIATE_TEST_SUITE_P(, SmallOnSim, testing::Values("keras_fashion_mlp", "torch_mlp"), [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hone::test
