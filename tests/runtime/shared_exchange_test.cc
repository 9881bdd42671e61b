// Replicas that share a device: what it adds up in its memory is what their own communicator would, bit by bit, and who fails is heard of.
#include "runtime/device/shared_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <thread>

#include "base/check.h"
#include "base/diag.h"
#include "runtime/collective/thread_communicators.h"
#include "runtime/device/sim_device.h"
#include "tests/runtime/random_tensor.h"

namespace hone::test {
namespace {

/// A replica with the device that it shares, of which each has a driver of its own.
struct Sharer {
  Communicator& replicas;
  SimDevice device{SimOptions{}};
  Stream stream = device.make_stream();
  SharedExchange exchange{device, replicas};

  using Exchange = void (DeviceCommunicator::*)(Stream, std::span<const ExchangedTensor>);
  /// What becomes of the numbers, and of another tensor that is empty.
  std::vector<std::byte> after(Exchange how, DType dtype, std::vector<std::byte> numbers) {
    std::byte* const memory = device.allocate(numbers.size(), "numbers");
    device.copy_in(stream, memory, numbers.data(), numbers.size());
    const std::array tensors = {ExchangedTensor{dtype, static_cast<std::int64_t>(numbers.size() / size_of(dtype)), memory}, ExchangedTensor{dtype, 0, nullptr}};
    (exchange.*how)(stream, tensors);
    device.copy_out(stream, numbers.data(), memory, numbers.size());
    exchange.synchronize(stream);
    device.release(memory);
    return numbers;
  }
};

/// Runs `work` as each of so many replicas; what each of them threw, or "".
std::vector<std::string> as_sharers(int size, const std::function<void(Sharer&)>& work) {
  ThreadCommunicators communicators(size);
  std::vector<std::string> said(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        try {
          Sharer sharer{communicators.of(rank)};
          work(sharer);
        } catch (const Error& error) {
          EXPECT_EQ(error.diags().front().code, Code::kPeer);
          said[static_cast<std::size_t>(rank)] = error.what();
        } catch (const InternalError& mistake) { said[static_cast<std::size_t>(rank)] = mistake.what(); }
      });
  }
  return said;
}

/// Each of them knows.
TEST(SharedExchange, OfOtherTensorsIsFound) {
  const auto exchange = [](std::int64_t extra_elements, std::int64_t bucket) {
    return as_sharers(3, [=](Sharer& sharer) {
      const bool is_other = sharer.replicas.rank() == 1;
      const ExchangedTensor tensor = {DType::kF32, 16 + (is_other ? extra_elements : 0), sharer.device.allocate(1024, "numbers"), is_other ? bucket : 0};
      sharer.exchange.all_reduce(sharer.stream, {&tensor, 1});
    });
  };
  EXPECT_THAT(exchange(16, 0), testing::Each(testing::HasSubstr("exchange different tensors")));
  EXPECT_THAT(exchange(0, 1), testing::Each(testing::HasSubstr("exchange different tensors")));
}

TEST(SharedExchange, GivesTheBitsOfTheReplicasOwnCommunicator) {
  using OnHost = void (Communicator::*)(std::span<const ExchangedTensor>);
  const std::pair<Sharer::Exchange, OnHost> exchanges[] = {{&DeviceCommunicator::all_reduce, &Communicator::all_reduce},
                                                           {&DeviceCommunicator::reduce_scatter, &Communicator::reduce_scatter},
                                                           {&DeviceCommunicator::all_gather, &Communicator::all_gather}};
  for (const int size : {2, 3, 5})
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const auto said = as_sharers(size, [&](Sharer& sharer) {
        RandomTensors random(static_cast<unsigned>(sharer.replicas.rank() + 10));
        for (const auto& [on_device, on_host] : exchanges) {
          std::vector<std::byte> expected = random.numbers({dtype, {1003}});
          const std::vector<std::byte> found = sharer.after(on_device, dtype, expected);
          const ExchangedTensor tensor = {dtype, 1003, expected.data()};
          (sharer.replicas.*on_host)({&tensor, 1});
          EXPECT_EQ(found, expected) << size << " replicas, " << to_string(dtype);
        }
      });
      EXPECT_THAT(said, testing::Each(""));
    }
}

TEST(SharedExchange, WaitsForOthersAndIsNotCaptured) {
  const auto said = as_sharers(2, [](Sharer& sharer) {
    EXPECT_FALSE(sharer.exchange.can_be_captured());
    if (sharer.replicas.rank() == 1) return sharer.replicas.fail("the disk is full");
    (void)sharer.after(&DeviceCommunicator::all_reduce, DType::kF32, std::vector<std::byte>(64));
  });
  EXPECT_THAT(said[0], testing::HasSubstr("the disk is full"));
}

}  // namespace
}  // namespace hone::test
