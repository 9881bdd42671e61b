// Recorded runs on several replicas: split batches give what whole ones gave, and in shards the same bits for any number of replicas. The batch at the end leaves some with fewer
// samples, or none.
#include <gtest/gtest.h>

#include "tests/golden/recorded_run.h"

namespace hone::test {
namespace {

struct Split {
  std::string model;
  int replicas;
  bool sync_batch_norm = false;
};

class SplitRun : public testing::TestWithParam<Split> {};

TEST_P(SplitRun, TrainsAsItsFramework) {
  const auto& [model, replicas, sync] = GetParam();
  if (not is_recorded(model)) GTEST_SKIP() << kNotRecorded;
  expect_trains_as_recorded(model, {.threads = 1, .tries = sync ? 3 : 1, .replicas = {.local = replicas}, .sync_batch_norm = sync});
}

const Split kSplits[] = {{"keras_fashion_mlp", 2},
                         {"keras_fashion_mlp", 3},
                         {"keras_fashion_mlp", 4},
                         {"keras_fashion_mlp", 8},
                         {"keras_reuters_cnn", 2},
                         {"keras_reuters_cnn", 3},
                         {"keras_reuters_cnn", 4},
                         {"keras_reuters_cnn", 8},
                         {"torch_gpt_tiny", 2},
                         {"torch_gpt_tiny", 3},
                         {"torch_gpt_tiny", 4},
                         {"torch_gpt_tiny", 8},
                         {"torch_resnet_tiny", 2, true},
                         {"torch_resnet_tiny", 3, true},
                         {"torch_resnet_tiny", 4, true},
                         {"torch_resnet_tiny", 8, true}};
INSTANTIATE_TEST_SUITE_P(, SplitRun, testing::ValuesIn(kSplits),
                         [](const auto& info) { return info.param.model + "_on_" + std::to_string(info.param.replicas); });

class ShardedRun : public testing::TestWithParam<std::string> {};

TEST_P(ShardedRun, GivesTheSameBitsForAnyNumberOfReplicas) {
  if (not is_recorded(GetParam())) GTEST_SKIP() << kNotRecorded;
  const auto trained = [&](int replicas) { return trained_weights(GetParam(), {.threads = 1, .replicas = {.local = replicas, .shards = 8}}); };
  const auto alone = trained(1);
  for (const int replicas : {2, 3, 4, 8}) EXPECT_EQ(trained(replicas), alone) << replicas << " replicas";
}

INSTANTIATE_TEST_SUITE_P(, ShardedRun, testing::Values("keras_fashion_mlp", "keras_reuters_cnn", "torch_resnet_tiny", "torch_gpt_tiny"), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::test
