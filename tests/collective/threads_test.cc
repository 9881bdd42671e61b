#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "runtime/collective/thread_communicators.h"
#include "runtime/collective/tree_sum.h"
#include "tests/collective/conformance.h"

namespace hone::test {
namespace {

class ThreadDriver : public testing::TestWithParam<int> {};

TEST_P(ThreadDriver, Conform) {
  const int size = GetParam();
  ThreadCommunicators communicators(size);
  for (const ConformanceCase& each : conformance_cases()) {
    SCOPED_TRACE(each.name);
    std::vector<std::string> wrong(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        try {
          wrong[static_cast<std::size_t>(rank)] = each.run(communicators.of(rank));
        } catch (const std::exception& error) {
          wrong[static_cast<std::size_t>(rank)] = error.what();
          communicators.of(rank).fail(error.what());
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& each_wrong : wrong) EXPECT_EQ(each_wrong, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadDriver, testing::Values(1, 2, 3, 4, 5, 8, 13));

/// Terms that come one after the other on some devices, and are then summed over those, are summed as if each had a device of its own.
TEST(TreeSum, DoesNotDependOnHowTermsAreSpread) {
  constexpr std::size_t kElements = 1500;
  for (const std::size_t count : {1, 2, 3, 6, 7, 8, 12, 16, 24}) {
    std::vector<std::vector<float>> terms(count, std::vector<float>(kElements));
    for (std::size_t t = 0; t < count; ++t)
      for (std::size_t i = 0; i < kElements; ++i) terms[t][i] = static_cast<float>((t * 7919 + i * 104'729) % 9973) * (t % 3 == 0 ? 1e-4f : 10.f);
    const auto sum = [&](std::size_t each) {  // so many neighbours on a device
      auto copy = terms;
      std::vector<const void*> devices;
      for (std::size_t first = 0; first < count; first += each) {
        TreeSum on_device;
        for (std::size_t t = first; t < first + each; ++t) {
          const ExchangedTensor term = {DType::kF32, kElements, copy[t].data()};
          on_device.add({&term, 1});
        }
        const ExchangedTensor sum = {DType::kF32, kElements, copy[first].data()};
        on_device.take(each, {&sum, 1});
        devices.push_back(sum.data);
      }
      std::vector<float> result(kElements);
      void* const to = result.data();
      sum_in_tree(DType::kF32, devices, {0, kElements}, {&to, 1});
      return result;
    };
    const std::vector<float> want = sum(1);
    EXPECT_EQ(sum(count), want) << count << " on one device";
    for (std::size_t each = 2; each < count; each *= 2)
      if (count % each == 0) EXPECT_EQ(sum(each), want) << count << ", " << each << " on a device";
  }
}

}  // namespace
}  // namespace hone::test
