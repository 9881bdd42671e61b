// The sim device: every mistake that a real device might forgive is found and named. What it does as every device is in device_conformance.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "base/diag.h"
#include "runtime/collective/thread_communicators.h"
#include "runtime/device/sim_device.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kBytes = 256;

/// A device with two streams, an event and four blocks of memory, of which `a` holds sevens.
struct Bench {
  SimDevice device{{.memory_bytes = 1 << 20}};
  Stream first = device.make_stream(), second = device.make_stream();
  Event event = device.make_event();
  std::byte *a = device.allocate(kBytes, "a"), *b = device.allocate(kBytes, "b"), *c = device.allocate(kBytes, "c"), *d = device.allocate(kBytes, "d");
  std::vector<std::byte> sevens = std::vector<std::byte>(kBytes, std::byte{7});

  Bench() {
    device.copy_in(first, a, sevens.data(), kBytes);
    device.synchronize(first);
  }
  std::vector<std::byte> content(Stream stream, const std::byte* memory) {
    std::vector<std::byte> bytes(kBytes);
    device.copy_out(stream, bytes.data(), memory, kBytes);
    device.synchronize(stream);
    return bytes;
  }
};

TEST(SimDevice, TimesAreToldWhenTheHostHasWaited) {
  Bench bench;
  const Event begin = bench.device.make_timed_event(), end = bench.device.make_timed_event();
  EXPECT_EQ(bench.device.time_between(begin, end), std::nullopt) << "never recorded";
  bench.device.record_time(begin, bench.first);
  bench.device.copy(bench.first, bench.b, bench.a, kBytes);
  bench.device.record_time(end, bench.first);
  EXPECT_EQ(bench.device.time_between(begin, end), std::nullopt);
  bench.device.synchronize(bench.second);
  EXPECT_EQ(bench.device.time_between(begin, end), std::nullopt) << "that was the other stream";
  bench.device.synchronize(bench.first);
  const auto time = bench.device.time_between(begin, end);
  ASSERT_TRUE(time.has_value());
  EXPECT_GT(*time, 0);
  EXPECT_EQ(bench.device.time_between(end, begin), -*time);
}

TEST(SimDevice, FreshMemoryHoldsNaNs) {
  Bench bench;
  float value = 0;
  std::memcpy(&value, bench.content(bench.first, bench.b).data(), sizeof(value));
  EXPECT_TRUE(std::isnan(value));
}

TEST(SimDevice, ResultsAreNotThereBeforeTheHostHasWaited) {
  Bench bench;
  std::vector<std::byte> bytes(kBytes, std::byte{1});
  bench.device.copy_out(bench.first, bytes.data(), bench.a, kBytes);
  EXPECT_EQ(bytes[0], std::byte{0xff});
  bench.device.synchronize(bench.second);
  EXPECT_EQ(bytes[0], std::byte{0xff}) << "that was the other stream";
  bench.device.synchronize(bench.first);
  EXPECT_EQ(bytes, bench.sevens);
}

TEST(SimDevice, MoreThanItHasIsRefused) {
  Bench bench;
  try {
    (void)bench.device.allocate(2 << 20, "the arena");
    FAIL() << "2 MiB of 1 MiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.diags().front().code, Code::kMemory);
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("the arena"), HasSubstr("2 MiB"), HasSubstr("sim:0")));
  }
}

/// Two replicas, each on a device of its own, exchange two buckets, the second one of them in the other order. What each of them throws.
void exchange_in_another_order(std::int64_t first_count, std::int64_t second_count) {
  ThreadCommunicators communicators(2);
  std::exception_ptr found[2];
  const auto replica = [&](int rank) {
    try {
      SimDevice device({.number = rank});
      const Stream stream = device.make_stream();
      const auto bucket = [&](std::int64_t number, std::int64_t count) { return ExchangedTensor{DType::kF32, count, device.allocate(static_cast<std::size_t>(count) * sizeof(float), "a bucket"), number}; };
      const ExchangedTensor buckets[] = {bucket(0, first_count), bucket(1, second_count)};
      const std::unique_ptr<DeviceCommunicator> exchange = device.connect(communicators.of(rank));
      for (const int number : {rank, 1 - rank}) exchange->all_reduce(stream, {&buckets[number], 1});
    } catch (...) { found[rank] = std::current_exception(); }
  };
  {
    const std::jthread other([&] { replica(1); });
    replica(0);
  }
  ASSERT_TRUE(found[0] and found[1]) << "each of them is told";
  std::rethrow_exception(found[0]);
}

struct Mistake {
  const char* name;
  void (*make)(Bench&);
  const char* found;  ///< in the message
};

// Each is a program that is right but for one thing.
const Mistake kMistakes[] = {
    {"ReadsWithoutWaiting",
     [](Bench& t) {
       t.device.copy(t.first, t.b, t.a, kBytes);
       t.device.record(t.event, t.first);
       t.device.copy(t.second, t.c, t.b, kBytes);
     },
     "nothing orders the two"},
    {"OverwritesWhatIsStillRead",
     [](Bench& t) {
       t.device.copy(t.first, t.b, t.a, kBytes);
       t.device.copy_in(t.second, t.a, t.sevens.data(), kBytes);
     },
     "nothing orders the two"},
    {"WritesWhatAnotherWrites",
     [](Bench& t) {
       t.device.copy(t.first, t.b, t.a, kBytes);
       t.device.copy(t.second, t.b, t.a, kBytes);
     },
     "nothing orders the two"},
    {"OverlapsByOneByte",
     [](Bench& t) {
       t.device.copy(t.first, t.b, t.a, 129);
       t.device.copy(t.second, t.b + 128, t.a, 128);
     },
     "nothing orders the two"},
    {"RecordsTooEarly",
     [](Bench& t) {
       t.device.record(t.event, t.first);
       t.device.copy(t.first, t.b, t.a, kBytes);
       t.device.wait(t.second, t.event);
       t.device.copy(t.second, t.c, t.b, kBytes);
     },
     "nothing orders the two"},
    {"WaitsTooLate",
     [](Bench& t) {
       t.device.copy(t.first, t.b, t.a, kBytes);
       t.device.record(t.event, t.first);
       t.device.copy(t.second, t.c, t.b, kBytes);
       t.device.wait(t.second, t.event);
     },
     "nothing orders the two"},
    {"WaitsForTheWrongStream",
     [](Bench& t) {
       t.device.copy(t.first, t.b, t.a, kBytes);
       t.device.record(t.event, t.second);
       t.device.wait(t.second, t.event);
       t.device.copy(t.second, t.c, t.b, kBytes);
     },
     "nothing orders the two"},
    {"WaitsForNothing", [](Bench& t) { t.device.wait(t.second, t.event); }, "never recorded"},
    {"HostWaitsForTheWrongStream",
     [](Bench& t) {
       t.device.copy(t.first, t.b, t.a, kBytes);
       t.device.synchronize(t.second);
       t.device.copy(t.second, t.c, t.b, kBytes);
     },
     "nothing orders the two"},
    {"ReadsResultsInAnotherStream",
     [](Bench& t) {
       std::vector<std::byte> bytes(kBytes);
       t.device.copy(t.first, t.b, t.a, kBytes);
       t.device.copy_out(t.second, bytes.data(), t.b, kBytes);
     },
     "nothing orders the two"},
    {"ReleasesWhatIsInUse",
     [](Bench& t) {
       t.device.copy(t.first, t.b, t.a, kBytes);
       t.device.release(t.b);
       t.device.synchronize(t.first);
     },
     "may still be writing"},
    {"ReleasesWhatIsRead",
     [](Bench& t) {
       t.device.copy(t.first, t.b, t.a, kBytes);
       t.device.release(t.a);
       t.device.synchronize(t.first);
     },
     "may still be reading"},
    {"ReleasesTwice",
     [](Bench& t) {
       t.device.release(t.b);
       t.device.release(t.b);
       t.device.synchronize(t.first);
     },
     "not any more"},
    {"UsesWhatWasReleased",
     [](Bench& t) {
       t.device.release(t.a);
       t.device.copy(t.first, t.b, t.a, kBytes);
     },
     "not any more"},
    {"WritesBehindTheEnd", [](Bench& t) { t.device.copy(t.first, t.b + 1, t.a, kBytes); }, "not allocated"},
    {"ReadsWhatNeverWas", [](Bench& t) { t.device.copy(t.first, t.b, t.sevens.data(), kBytes); }, "not allocated"},
    {"CopiesOntoItself", [](Bench& t) { t.device.copy(t.first, t.a + 1, t.a, kBytes - 1); }, "onto itself"},
    {"ChangesPinnedMemoryBeforeItIsCopied",
     [](Bench& t) {
       std::byte* const pinned = t.device.allocate_pinned(kBytes);
       std::memset(pinned, 1, kBytes);
       t.device.copy_in(t.first, t.b, pinned, kBytes);
       pinned[17] = std::byte{2};
       t.device.synchronize(t.first);
     },
     "from which a copy to the device was under way"},
    {"ReleasesPinnedMemoryBeforeItIsCopied",
     [](Bench& t) {
       std::byte* const pinned = t.device.allocate_pinned(kBytes);
       t.device.copy_in(t.first, t.b, pinned, kBytes);
       t.device.release_pinned(pinned);
       t.device.synchronize(t.first);
     },
     "may still be reading"},
    {"WaitsWhileCapturing",
     [](Bench& t) {
       t.device.begin_capture(t.first);
       t.device.synchronize(t.first);
     },
     "captured"},
    {"CapturesAFeed",
     [](Bench& t) {
       t.device.begin_capture(t.first);
       t.device.copy_in(t.first, t.b, t.sevens.data(), kBytes);
     },
     "from the host is captured"},
    {"CapturesAResult",
     [](Bench& t) {
       t.device.begin_capture(t.first);
       t.device.copy_out(t.first, t.sevens.data(), t.a, kBytes);
     },
     "to the host is captured"},
    {"CapturedStreamWaitsForOneThatIsNot",
     [](Bench& t) {
       t.device.record(t.event, t.second);
       t.device.begin_capture(t.first);
       t.device.wait(t.first, t.event);
     },
     "an event that is not"},
    {"WaitsForWhatWasOnlyCaptured",
     [](Bench& t) {
       t.device.begin_capture(t.first);
       t.device.record(t.event, t.first);
       (void)t.device.end_capture(t.first);
       t.device.wait(t.second, t.event);
     },
     "a capture that has ended"},
    {"CapturesTwice",
     [](Bench& t) {
       t.device.begin_capture(t.first);
       t.device.begin_capture(t.second);
     },
     "while a graph is captured"},
    {"CapturesWhereNoGraphsAreMade",
     [](Bench&) {
       SimDevice device(sim_options("graphs=0", 0));
       device.begin_capture(device.make_stream());
     },
     "makes no graphs"},
    {"EndsAnotherCapture",
     [](Bench& t) {
       t.device.begin_capture(t.first);
       (void)t.device.end_capture(t.second);
     },
     "did not begin here"},
    {"ReplaysWhatWasForgotten",
     [](Bench& t) {
       t.device.begin_capture(t.first);
       const StepGraph graph = t.device.end_capture(t.first);
       t.device.forget(graph);
       t.device.replay(t.first, graph);
     },
     "was forgotten"},
    {"ReadsBesideAReplay",
     [](Bench& t) {
       t.device.begin_capture(t.first);
       t.device.copy(t.first, t.b, t.a, kBytes);
       t.device.replay(t.first, t.device.end_capture(t.first));
       t.device.copy(t.second, t.c, t.b, kBytes);
     },
     "nothing orders the two"},
    {"RacesInsideAGraph",
     [](Bench& t) {
       t.device.begin_capture(t.first);
       t.device.record(t.event, t.first);
       t.device.wait(t.second, t.event);
       t.device.copy(t.first, t.b, t.a, kBytes);
       t.device.copy(t.second, t.c, t.b, kBytes);
       t.device.replay(t.first, t.device.end_capture(t.first));
     },
     "nothing orders the two"},
    {"ExchangesBucketsInAnotherOrder", [](Bench&) { exchange_in_another_order(64, 64); }, "of 1 number 0 is 64 elements of f32 in bucket 0 in replica 0, and 64 elements of f32 in bucket 1 in replica 1"},
    {"ExchangesBucketsOfOtherSizes", [](Bench&) { exchange_in_another_order(64, 4096); }, "and 4096 elements of f32 in bucket 1 in replica 1"},
};

class SimMistake : public testing::TestWithParam<Mistake> {};

TEST_P(SimMistake, IsFound) {
  Bench bench;
  try {
    GetParam().make(bench);
    FAIL() << "nothing was found";
  } catch (const InternalError& error) { EXPECT_THAT(error.what(), HasSubstr(GetParam().found)); }
}

INSTANTIATE_TEST_SUITE_P(, SimMistake, testing::ValuesIn(kMistakes), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone
