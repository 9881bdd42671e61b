// cuBLASLt and cuDNN take the products, convolutions and recurrent layers of small recorded models.
#include <gtest/gtest.h>

#include "tests/golden/device_calls.h"

namespace hone::test {
namespace {

TEST(DeviceCalls, LibrariesTakeProducts) { expect_libraries_take("keras_fashion_mlp"); }
TEST(DeviceCalls, LibrariesTakeConvolutions) { expect_libraries_take("keras_reuters_cnn"); }
TEST(DeviceCalls, LibrariesTakeRecurrentLayers) { expect_libraries_take("torch_lstm"); }

}  // namespace
}  // namespace hone::test
