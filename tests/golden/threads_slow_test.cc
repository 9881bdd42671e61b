// All recorded models give the same bits on one thread and on several.
#include <gtest/gtest.h>

#include "tests/golden/recorded_run.h"
#include "tests/golden/threads.h"

namespace hone::test {
namespace {

class AllGoldenThreads : public testing::TestWithParam<std::string> {};

TEST_P(AllGoldenThreads, GiveTheSameBits) { expect_same_bits_on_threads(GetParam(), Library::kUsed); }
TEST_P(AllGoldenThreads, GiveTheSameBitsWithoutTheLibrary) { expect_same_bits_on_threads(GetParam(), Library::kLeftOut); }

INSTANTIATE_TEST_SUITE_P(, AllGoldenThreads, testing::ValuesIn(recorded(Recorded::kRuns)), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::test
