// The kernels of all recorded models assemble for every kind of GPU.
#include <gtest/gtest.h>

#include "tests/golden/ptx.h"
#include "tests/golden/recorded_run.h"

namespace hone::test {
namespace {

class AllPtx : public testing::TestWithParam<std::string> {};

TEST_P(AllPtx, AssemblesForEveryGpuWithoutSpills) { expect_assembles_without_spills(GetParam()); }

INSTANTIATE_TEST_SUITE_P(, AllPtx, testing::ValuesIn(recorded(Recorded::kModels)), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::test
