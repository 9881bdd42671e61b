// Exchanges between GPUs, with an NCCL that works on the host's memory: sums and parts are those of the replicas' own communicators, and nobody waits forever. Of the real library, where it is installed,
// that it has what is asked of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>

#include "base/diag.h"
#include "runtime/collective/thread_communicators.h"
#include "runtime/device/nccl_communicator.h"
#include "runtime/device/team.h"
#include "tests/runtime/fake_nccl.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Stream kStream{0};

nccl::Gpu any_gpu() {
  return {.use = [](Stream) { return cuda::StreamHandle{}; }, .is_done = [](Stream) { return true; }};
}

/// As the replicas' own communicator, but for how long it has patience.
class Impatient final : public Communicator {
 public:
  Impatient(Communicator& other, std::chrono::milliseconds timeout) : other_(other), timeout_(timeout) {}
  int rank() const override { return other_.rank(); }
  int size() const override { return other_.size(); }
  void all_reduce(std::span<const ExchangedTensor> tensors) override { other_.all_reduce(tensors); }
  void reduce_scatter(std::span<const ExchangedTensor> tensors) override { other_.reduce_scatter(tensors); }
  void all_gather(std::span<const ExchangedTensor> tensors) override { other_.all_gather(tensors); }
  void broadcast(std::span<const ExchangedTensor> tensors, int root) override { other_.broadcast(tensors, root); }
  void barrier() override { other_.barrier(); }
  std::chrono::milliseconds timeout() const override { return timeout_; }
  void check_peers() override { other_.check_peers(); }
  void fail(const char* why) noexcept override { other_.fail(why); }

 private:
  Communicator& other_;
  const std::chrono::milliseconds timeout_;
};

/// Runs `work` as each of so many replicas; what each of them threw, or "".
std::vector<std::string> as_replicas(int size, const std::function<void(Communicator& replicas)>& work) {
  ThreadCommunicators communicators(size);
  std::vector<std::string> said(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        try {
          work(communicators.of(rank));
        } catch (const Error& error) {
          EXPECT_EQ(error.diags().front().code, Code::kPeer);
          said[static_cast<std::size_t>(rank)] = error.what();
        }
      });
  }
  return said;
}

TEST(Nccl, ExchangesWhatTheReplicasOwnCommunicatorsDo) {
  for (const int size : {2, 3, 5}) {
    FakeNccl fake;
    const nccl::Library library = library_of(fake);
    const auto said = as_replicas(size, [&](Communicator& replicas) {
      const auto gpus = nccl::connect(library, replicas, any_gpu());
      const auto rank = static_cast<float>(replicas.rank());
      std::vector<float> sums(1000), parts(1000), gathered(1000, -1);
      std::iota(sums.begin(), sums.end(), rank);
      std::iota(parts.begin(), parts.end(), 2 * rank);
      const RangePiece own = piece_of(1000, size, replicas.rank());
      std::fill(gathered.begin() + own.begin, gathered.begin() + own.end, rank);
      std::vector<float> expected_sums = sums, expected_parts = parts, expected_gathered = gathered;
      std::vector<std::int32_t> counts = {1, replicas.rank()};
      const auto tensor = [](std::vector<float>& numbers) { return ExchangedTensor{DType::kF32, static_cast<std::int64_t>(numbers.size()), numbers.data()}; };
      gpus->all_reduce(kStream, std::array{tensor(sums), ExchangedTensor{DType::kI32, 2, counts.data()}, ExchangedTensor{DType::kF32, 0, nullptr}});
      gpus->reduce_scatter(kStream, std::array{tensor(parts)});
      gpus->all_gather(kStream, std::array{tensor(gathered)});
      gpus->synchronize(kStream);
      replicas.all_reduce(std::array{tensor(expected_sums)});
      replicas.reduce_scatter(std::array{tensor(expected_parts)});
      replicas.all_gather(std::array{tensor(expected_gathered)});
      EXPECT_EQ(sums, expected_sums) << "whole numbers, whose sums have no order";
      EXPECT_EQ(parts, expected_parts);
      EXPECT_EQ(gathered, expected_gathered);
      EXPECT_THAT(counts, ElementsAre(size, size * (size - 1) / 2));
    });
    EXPECT_THAT(said, Each(""));
    EXPECT_EQ(fake.alive, 0);
  }
}

TEST(Nccl, TensorsOfOneExchangeAreOneOperation) {
  FakeNccl fake;
  const nccl::Library library = library_of(fake);
  (void)as_replicas(2, [&](Communicator& replicas) {
    const auto gpus = nccl::connect(library, replicas, any_gpu());
    std::vector<float> a(300), b(7);
    gpus->reduce_scatter(kStream, std::array{ExchangedTensor{DType::kF32, 300, a.data()}, ExchangedTensor{DType::kF32, 7, b.data()}});
  });
  const RangePiece first = piece_of(300, 2, 0), second = piece_of(300, 2, 1);
  ASSERT_GE(fake.told.size(), 3U);
  EXPECT_EQ(fake.told[0], "reduce " + std::to_string(first.end) + " to 0");
  EXPECT_EQ(fake.told[1], "reduce " + std::to_string(second.end - second.begin) + " to 1");
}

TEST(Nccl, AReplicaThatDoesNotComeIsGivenUp) {
  FakeNccl fake;
  const nccl::Library library = library_of(fake);
  const auto said = as_replicas(2, [&](Communicator& replicas) {
    Impatient impatient(replicas, std::chrono::milliseconds(30));
    if (replicas.rank() == 0) return (void)nccl::connect(library, impatient, any_gpu());
    char id[sizeof(std::int32_t) + sizeof(nccl::UniqueId)];
    const ExchangedTensor tensor = {DType::kU8, sizeof(id), id};
    replicas.broadcast({&tensor, 1}, 0);  // it hears of the id, and goes away
  });
  EXPECT_THAT(said[0], AllOf(HasSubstr("replica 0 of 2"), HasSubstr("did not all connect within 0.03 s"), HasSubstr("--collective-timeout")));
  EXPECT_EQ(fake.aborted, 1);
}

TEST(Nccl, AReplicaThatSaysThatItFailsIsNotWaitedFor) {
  FakeNccl fake;
  const nccl::Library library = library_of(fake);
  const auto said = as_replicas(2, [&](Communicator& replicas) {
    const auto gpus = nccl::connect(library, replicas, {.use = [](Stream) { return cuda::StreamHandle{}; }, .is_done = [&](Stream) { return replicas.rank() == 1; }});
    if (replicas.rank() == 1) return replicas.fail("its disk is full");
    gpus->synchronize(kStream);
  });
  EXPECT_THAT(said[0], HasSubstr("replica 1 has failed: its disk is full"));
  EXPECT_EQ(said[1], "");
}

TEST(Nccl, WhatGoesWrongOnTheWayIsToldInTheLibrarysWords) {
  FakeNccl fake;
  const nccl::Library library = library_of(fake);
  const auto said = as_replicas(2, [&](Communicator& replicas) {
    const auto gpus = nccl::connect(library, replicas, any_gpu());
    replicas.barrier();
    if (replicas.rank() == 0) fake.next_failure = 2;
    replicas.barrier();
    try {
      gpus->synchronize(kStream);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error&) {
    }
    gpus->synchronize(kStream);
  });
  EXPECT_THAT(said, Each(HasSubstr("exchanges nothing any more")));
  EXPECT_EQ(fake.aborted, 2);
}

TEST(Nccl, AFirstReplicaWithoutAnIdTellsTheOthers) {
  FakeNccl fake{.has_id = false};
  const nccl::Library library = library_of(fake);
  const auto said = as_replicas(3, [&](Communicator& replicas) { (void)nccl::connect(library, replicas, any_gpu()); });
  EXPECT_THAT(said, Each(HasSubstr("does not start")));
}

TEST(Nccl, ALibraryThatIsNoneIsRefused) {
  std::string why;
  const char* const other[] = {"libm.so.6"};
  EXPECT_EQ(open_library<nccl::Library>(other, &why), nullptr);
  EXPECT_THAT(why, HasSubstr("ncclGetVersion"));
}

TEST(Nccl, TheRealLibraryHasWhatIsAskedOfIt) {
  std::string why;
  const nccl::Library* library = nccl::library(&why);
  if (library == nullptr) GTEST_SKIP() << "no NCCL here: " << why;
  EXPECT_THAT(library->version(), HasSubstr("2."));
  EXPECT_THAT(library->text(2, nullptr), HasSubstr("system error"));
}

}  // namespace
}  // namespace hone::test
