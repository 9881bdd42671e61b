// cuBLASLt and cuDNN take the products and convolutions of all recorded models.
#include <gtest/gtest.h>

#include "tests/golden/device_calls.h"
#include "tests/golden/recorded_run.h"

namespace hone::test {
namespace {

class AllDeviceCalls : public testing::TestWithParam<std::string> {};

TEST_P(AllDeviceCalls, AreTakenByTheLibraries) { expect_libraries_take(GetParam()); }
TEST_P(AllDeviceCalls, AreTakenByTheLibrariesInBf16) { expect_libraries_take(GetParam(), "bf16"); }
TEST_P(AllDeviceCalls, AreTakenByTheLibrariesInTf32) { expect_libraries_take(GetParam(), "tf32"); }

INSTANTIATE_TEST_SUITE_P(, AllDeviceCalls, testing::ValuesIn(recorded(Recorded::kRuns)), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::test
