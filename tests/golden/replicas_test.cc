// Recorded runs on several replicas: split batches give what whole ones gave, and in shards the same bits for any number of replicas. The batch at the end leaves some with fewer
// samples, or none.
#include <gtest/gtest.h>

#include "tests/golden/recorded_run.h"

namespace hone::test {
namespace {

constexpr int kReplicas[] = {2, 3, 4, 8};

struct Split {
  std::string model;
  bool sync_batch_norm = false;
};

class SplitRun : public testing::TestWithParam<Split> {};

TEST_P(SplitRun, TrainsAsItsFramework) {
  const auto& [model, sync] = GetParam();
  if (not is_recorded(model)) GTEST_SKIP() << kNotRecorded;
  for (const int replicas : kReplicas) {
    SCOPED_TRACE(std::to_string(replicas) + " replicas");
    expect_trains_as_recorded(model, {.threads = 1, .tries = sync ? 3 : 1, .replicas = {.local = replicas}, .sync_batch_norm = sync});
  }
}

const Split kSplits[] = {{"keras_fashion_mlp"}, {"keras_reuters_cnn"}, {"torch_gpt_tiny"}, {"torch_resnet_tiny", true}};
INSTANTIATE_TEST_SUITE_P(, SplitRun, testing::ValuesIn(kSplits), [](const auto& info) { return info.param.model; });

class ShardedRun : public testing::TestWithParam<std::string> {};

TEST_P(ShardedRun, GivesTheSameBitsForAnyNumberOfReplicas) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  const auto trained = [&](int replicas) { return trained_weights(GetParam(), {.threads = 1, .replicas = {.local = replicas, .shards = 8}}); };
  const auto alone = trained(1);
  for (const int replicas : kReplicas) EXPECT_EQ(trained(replicas), alone) << replicas << " replicas";
}

INSTANTIATE_TEST_SUITE_P(, ShardedRun, testing::Values("keras_fashion_mlp", "keras_reuters_cnn", "torch_resnet_tiny", "torch_gpt_tiny"), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::test
