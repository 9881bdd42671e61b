#include "api/code_levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/host_level.h"

namespace hone {
namespace {

using ::testing::ElementsAre;

CodeLevels levels(const std::vector<std::string>& names) { return code_levels(names); }

TEST(CodeLevels, AreThoseThatAreNamed) {
  EXPECT_THAT(levels({"x86-64-v4", "sm_90", "x86-64-v3"}).cpu, ElementsAre("x86-64-v4", "x86-64-v3"));
  EXPECT_THAT(levels({"x86-64-v4", "sm_90", "x86-64-v3"}).gpu, ElementsAre("sm_90"));
}

TEST(CodeLevels, OfWhatIsNotNamedAreTheUsualOnes) {
  const CodeLevels usual;
  EXPECT_EQ(levels({}).cpu, usual.cpu);
  EXPECT_EQ(levels({"sm_80"}).cpu, usual.cpu);
  EXPECT_EQ(levels({"x86-64-v3"}).gpu, usual.gpu);
}

TEST(CodeLevels, NativeIsThisMachine) { EXPECT_THAT(levels({"native"}).cpu, ElementsAre(test::host_level())); }

}  // namespace
}  // namespace hone
