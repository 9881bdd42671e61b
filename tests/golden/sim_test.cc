// Small recorded models, compiled for GPUs and played by the host, train as in their framework.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/golden/recorded_run.h"
#include "tests/support/environment.h"

namespace hone::test {
namespace {

class SmallOnSim : public testing::TestWithParam<const char*> {};

TEST_P(SmallOnSim, TrainsAsItsFramework) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  expect_trains_as_recorded(GetParam(), {.target = "sim"});
}

INSTANTIATE_TEST_SUITE_P(, SmallOnSim, testing::Values("keras_fashion_mlp", "torch_mlp", "torch_lstm"), [](const auto& info) { return std::string(info.param); });

/// What is a call where there are libraries is its body.
TEST(OnSim, RecurrentLayersTrainAsTheFrameworkWithoutLibraries) {
  if (not is_recorded("torch_lstm")) GTEST_SKIP() << kNotRecorded;
  const ScopedVariable without("HONE_SIM", "libraries=0");
  expect_trains_as_recorded("torch_lstm", {.target = "sim"});
}

/// A replica on each of two devices, and of eight.
TEST(OnSim, ReplicasTrainAsTheFramework) {
  if (not is_recorded("keras_fashion_mlp")) GTEST_SKIP() << kNotRecorded;
  expect_trains_as_recorded("keras_fashion_mlp", {.replicas = {.devices = {"sim:0", "sim:1"}, .local = 2}, .target = "sim"});
  expect_trains_as_recorded("keras_fashion_mlp", {.replicas = {.devices = {"sim:0", "sim:1", "sim:2", "sim:3", "sim:4", "sim:5", "sim:6", "sim:7"}, .local = 8}, .target = "sim"});
}

}  // namespace
}  // namespace hone::test
