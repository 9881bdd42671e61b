#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/collective/nested_communicators.h"
#include "runtime/collective/thread_communicators.h"
#include "runtime/collective/tree_sum.h"
#include "tests/collective/conformance.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

/// Runs the cases in a thread for each rank.
void expect_conform(int size, const std::function<Communicator&(int rank)>& of, std::span<const ConformanceCase> cases = conformance_cases()) {
  for (const ConformanceCase& each : cases) {
    SCOPED_TRACE(each.name);
    std::vector<std::string> wrong(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        try {
          wrong[static_cast<std::size_t>(rank)] = each.run(of(rank));
        } catch (const std::exception& error) {
          wrong[static_cast<std::size_t>(rank)] = error.what();
          of(rank).fail(error.what());
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& each_wrong : wrong) EXPECT_EQ(each_wrong, "");
  }
}

class ThreadDriver : public testing::TestWithParam<int> {};

TEST_P(ThreadDriver, Conform) {
  ThreadCommunicators communicators(GetParam());
  expect_conform(GetParam(), [&](int rank) -> Communicator& { return communicators.of(rank); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadDriver, testing::Values(1, 2, 3, 4, 5, 8, 13));

TEST(ThreadCommunicators, ExchangeAgainWhenTheyAreRenewedAfterAFailure) {
  ThreadCommunicators communicators(3);
  const auto of = [&](int rank) -> Communicator& { return communicators.of(rank); };
  for (int round = 0; round < 2; ++round) {
    expect_conform(3, of, conformance_cases().first(1));
    expect_conform(3, of, conformance_cases().last(1));  // a failure
    communicators.renew();
  }
}

/// So many "processes" of so many replicas each.
class NestedDriver : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(NestedDriver, Conform) {
  const auto [processes, local] = GetParam();
  ThreadCommunicators between(processes);
  std::vector<std::unique_ptr<NestedCommunicators>> nested;
  for (int process = 0; process < processes; ++process) nested.push_back(std::make_unique<NestedCommunicators>(between.of(process), local));
  expect_conform(processes * local, [&, each = local](int rank) -> Communicator& { return nested[static_cast<std::size_t>(rank / each)]->of(rank % each); });
}

INSTANTIATE_TEST_SUITE_P(Sizes, NestedDriver, testing::Values(std::pair(1, 2), std::pair(2, 1), std::pair(2, 2), std::pair(3, 2), std::pair(2, 4)),
                         [](const auto& info) { return std::to_string(info.param.first) + "x" + std::to_string(info.param.second); });

TEST(NestedCommunicators, RefusesANumberWhoseSumIsNoPartOfTheTree) {
  ThreadCommunicators between(2);
  expect_error(Code::kUsage, "several processes of 3 replicas each", [&] { NestedCommunicators(between.of(0), 3); });
}

/// Of sizes so far apart that another order of sums gives other bits.
float element_of(std::size_t term, std::size_t batch, std::size_t i) { return static_cast<float>((term * 7919 + batch * 31 + i * 104'729) % 9973) * (term % 3 == 0 ? 1e-4f : 10.f); }

std::vector<std::vector<float>> terms_of(std::size_t count, std::size_t elements) {
  std::vector<std::vector<float>> terms(count, std::vector<float>(elements));
  for (std::size_t t = 0; t < count; ++t)
    for (std::size_t i = 0; i < elements; ++i) terms[t][i] = element_of(t, 0, i);
  return terms;
}

/// Each of them in memory of its own.
std::vector<float> sum_of(std::span<const std::vector<float>> terms) {
  std::vector<const void*> pointers;
  for (const std::vector<float>& term : terms) pointers.push_back(term.data());
  std::vector<float> result(terms.front().size());
  void* const to = result.data();
  sum_in_tree(DType::kF32, pointers, {0, static_cast<std::int64_t>(result.size())}, {&to, 1});
  return result;
}

/// Batches leave the last shards without samples.
TEST(ShardSums, OfSeveralBatchesDoNotDependOnHowShardsAreSpread) {
  constexpr std::size_t kElements = 1500, kShards = 8, kBatches = 3;
  const auto term = [](std::size_t shard, std::size_t batch) {
    std::vector<float> values(kElements);
    for (std::size_t i = 0; i < kElements; ++i) values[i] = element_of(shard, batch, i);
    return values;
  };
  const auto sum = [&](std::size_t each) {
    std::vector<std::vector<float>> devices;
    for (std::size_t first = 0; first < kShards; first += each) {
      ShardSums sums;
      for (std::size_t batch = 0; batch < kBatches; ++batch)
        for (std::size_t shard = first; shard < std::min(first + each, kShards - batch); ++shard) {
          std::vector<float> values = term(shard, batch);
          const ExchangedTensor tensor = {DType::kF32, kElements, values.data()};
          sums.add(shard - first, {&tensor, 1});
        }
      const ExchangedTensor to = {DType::kF32, kElements, devices.emplace_back(kElements, 1.f).data()};
      sums.take(each, {&to, 1});
    }
    return sum_of(devices);
  };
  const std::vector<float> want = sum(1);
  for (const std::size_t each : {2, 4, 8}) EXPECT_EQ(sum(each), want) << each << " on a device";
  double exact = 0;
  for (std::size_t batch = 0; batch < kBatches; ++batch)
    for (std::size_t shard = 0; shard < kShards - batch; ++shard) exact += term(shard, batch)[7];
  EXPECT_NEAR(want[7], exact, 1e-5 * exact);
}

TEST(TreeSum, IsCutForAnyNumberOfDevices) {
  using Shares = std::vector<int>;
  EXPECT_EQ(cut_tree(8, 1), Shares({8}));
  EXPECT_EQ(cut_tree(8, 3), Shares({2, 2, 4}));
  EXPECT_EQ(cut_tree(8, 4), Shares({2, 2, 2, 2}));
  EXPECT_EQ(cut_tree(12, 3), Shares({4, 4, 4}));
  EXPECT_EQ(cut_tree(12, 6), Shares({2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(cut_tree(6, 2), Shares({4, 2}));
  EXPECT_EQ(cut_tree(9, 6), std::nullopt);
  EXPECT_EQ(cut_tree(4, 5), std::nullopt);
  EXPECT_EQ(cut_tree(4, 0), std::nullopt);
  for (int parts = 1; parts <= 64; ++parts) EXPECT_TRUE(cut_tree(64, parts)) << parts;
}

/// Devices that have unequal numbers of terms, as the tree is cut.
TEST(TreeSum, OfUnequalSharesIsThatOfAllTerms) {
  constexpr std::size_t kElements = 300;
  for (int count = 1; count <= 17; ++count) {
    const std::vector<std::vector<float>> terms = terms_of(static_cast<std::size_t>(count), kElements);
    for (int devices = 1; devices <= count; ++devices) {
      const std::optional<std::vector<int>> shares = cut_tree(count, devices);
      if (not shares) continue;
      std::vector<std::vector<float>> sums;
      std::size_t first = 0;
      for (const int share : *shares) {
        sums.push_back(sum_of(std::span(terms).subspan(first, static_cast<std::size_t>(share))));
        first += static_cast<std::size_t>(share);
      }
      EXPECT_EQ(first, terms.size());
      EXPECT_EQ(sum_of(sums), sum_of(terms)) << count << " terms on " << devices << " devices";
    }
  }
}

/// Terms that come one after the other on some devices, and are then summed over those, are summed as if each had a device of its own.
TEST(TreeSum, DoesNotDependOnHowTermsAreSpread) {
  constexpr std::size_t kElements = 1500;
  for (const std::size_t count : {1, 2, 3, 6, 7, 8, 12, 16, 24}) {
    const std::vector<std::vector<float>> terms = terms_of(count, kElements);
    const auto sum = [&](std::size_t each) {  // so many neighbours on a device
      auto copy = terms;
      std::vector<std::vector<float>> devices;
      for (std::size_t first = 0; first < count; first += each) {
        TreeSum on_device;
        for (std::size_t t = first; t < first + each; ++t) {
          const ExchangedTensor term = {DType::kF32, kElements, copy[t].data()};
          on_device.add({&term, 1});
        }
        const ExchangedTensor sum = {DType::kF32, kElements, copy[first].data()};
        on_device.take(each, {&sum, 1});
        devices.push_back(copy[first]);
      }
      return sum_of(devices);
    };
    const std::vector<float> want = sum(1);
    EXPECT_EQ(sum(count), want) << count << " on one device";
    for (std::size_t each = 2; each < count; each *= 2)
      if (count % each == 0) EXPECT_EQ(sum(each), want) << count << ", " << each << " on a device";
  }
}

}  // namespace
}  // namespace hone::test
