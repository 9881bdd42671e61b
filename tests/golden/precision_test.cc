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

}  // namespace
}  // namespace hone::test
