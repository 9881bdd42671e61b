// Every recorded model's memory: within a twentieth of what must be alive at one step, and what the compiler says of it is what the run takes; and three of them under a limit.
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

/// Weights, states and six tenths of what the activations take.
class LimitedMemory : public testing::TestWithParam<std::string> {
 protected:
  static RecordedMemory of_step(const Setting& setting) {
    for (const RecordedMemory& memory : memory_of_recorded(GetParam(), setting))
      if (memory.entry == plan::kTrainStep) return memory;
    ADD_FAILURE() << "no step";
    return {};
  }
};

TEST_P(LimitedMemory, TrainsToTheSameBits) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  const Setting wide = {.memory_limit = std::int64_t{1} << 40};
  const MemoryReport whole = of_step(wide).run;
  const Setting limited = {.memory_limit = whole.persistent + whole.arena * 6 / 10};
  const RecordedMemory less = of_step(limited);
  EXPECT_LE(less.run.persistent + less.run.arena, limited.memory_limit);
  EXPECT_EQ(less.run.arena, less.compiler.bytes) << "the peak that was predicted";
  EXPECT_EQ(trained_weights(GetParam(), limited), trained_weights(GetParam(), wide));
}

INSTANTIATE_TEST_SUITE_P(, LimitedMemory, testing::Values("torch_unet_tiny", "torch_gpt_tiny", "torch_resnet_tiny"), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::test
