// A selection of the recorded runs in bf16; all of them are in precision_slow_test.cc.
#include <gtest/gtest.h>

#include "tests/golden/precision.h"
#include "tests/golden/recorded_run.h"

namespace hone::test {
namespace {

class Bf16 : public testing::TestWithParam<std::string> {};

TEST_P(Bf16, TrainsAsInF32) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  expect_trains_as_in_f32(GetParam(), "bf16");
}

INSTANTIATE_TEST_SUITE_P(Selected, Bf16, testing::Values("torch_mlp", "keras_mnist_cnn"), [](const auto& info) { return info.param; });

TEST(Tf32, IsF32WhereNothingMultipliesFaster) {
  if (not is_recorded("torch_lenet")) GTEST_SKIP() << kNotRecorded;
  EXPECT_EQ(losses_of_training("torch_lenet", {.precision = "tf32"}), losses_of_training("torch_lenet", {}));
}

}  // namespace
}  // namespace hone::test
