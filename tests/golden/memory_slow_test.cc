// Every recorded model's memory: within a twentieth of what must be alive at one step, and what the compiler says of it is what the run takes.
#include <gtest/gtest.h>

#include "tests/golden/recorded_run.h"

namespace hone::test {
namespace {

class Memory : public testing::TestWithParam<std::string> {};

TEST_P(Memory, IsNearTheLowerBoundAsTheCompilerSaid) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  for (const RecordedMemory& memory : memory_of_recorded(GetParam())) {
    EXPECT_LE(memory.run.arena * 20, memory.run.lower_bound * 21) << memory.entry;
    EXPECT_EQ(memory.run.arena, memory.compiler.bytes) << memory.entry;
    EXPECT_EQ(memory.run.lower_bound, memory.compiler.lower_bound) << memory.entry;
    RecordProperty(memory.entry, std::to_string(memory.run.arena) + " of at least " + std::to_string(memory.run.lower_bound));
  }
}

INSTANTIATE_TEST_SUITE_P(, Memory, testing::ValuesIn(recorded(Recorded::kRuns)), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::test
