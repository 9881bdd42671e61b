// The kernels of all recorded models assemble for every kind of GPU.
#include <gtest/gtest.h>

#include "tests/golden/ptx.h"
#include "tests/golden/recorded_run.h"

namespace hone::test {
namespace {

class AllPtx : public testing::TestWithParam<std::string> {};

TEST_P(AllPtx, AssemblesForEveryGpu) { expect_assembles(GetParam(), Spills::kAny); }

INSTANTIATE_TEST_SUITE_P(, AllPtx, testing::ValuesIn(recorded(Recorded::kModels)), [](const auto& info) { return info.param; });

/// Of models whose speed is measured.
TEST(BenchmarkedPtx, KeepsItsValuesInRegisters) { expect_assembles("keras_reuters_cnn", Spills::kNone); }

}  // namespace
}  // namespace hone::test
